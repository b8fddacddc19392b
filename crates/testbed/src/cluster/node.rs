//! The node: runs pods as processes of this machine.
//!
//! It does what a kubelet and a scheduler do, for one node and as far as tests need it: registers itself, takes every
//! pending pod, runs its containers in namespaces of their own, and reports. It talks to the API server only, and lives on
//! the thread that lives in the cluster's namespace.

mod events;
mod kubelet;
mod pod;
mod pods;
mod registration;
mod watched;

use std::{
    net::Ipv4Addr,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU32},
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client, runtime::reflector::Store};
use tokio::{sync::watch, task::JoinSet};

pub(super) use events::{Tone, tell};
pub(super) use watched::watched;

use super::{certificates::Certificates, images::Images, network::Network};

/// The port of the node's own server, which the API server asks for logs.
const KUBELET_PORT: u16 = 10250;

/// The name of the node.
pub(super) const NODE_NAME: &str = "testbed";

/// What a node is made of.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) network: Network,
    pub(super) images: Images,
    pub(super) certificates: Certificates,
    /// Where pods find the API server.
    pub(super) api: (Ipv4Addr, u16),
    /// Where pods keep their volumes and logs.
    pub(super) folder: PathBuf,
}

/// What all pods of the node share.
struct Node {
    client: Client,
    settings: Settings,
    secrets: Store<Secret>,
    config_maps: Store<ConfigMap>,
    /// Changes whenever a Secret or ConfigMap does.
    sources: watch::Receiver<u64>,
    logs: pod::LogBook,
    /// How many pods there have been.
    pods: AtomicU32,
}

impl Node {
    fn address(&self) -> Ipv4Addr {
        self.settings.network.subnet.node()
    }
}

/// Registers the node and starts its work, which ends when `tasks` is dropped.
pub(super) async fn start(client: Client, settings: Settings, tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let (changed, sources) = watch::channel(0);
    let changed = Arc::new(changed);
    let node = Arc::new(Node {
        secrets: watched(Api::all(client.clone()), &changed, tasks),
        config_maps: watched(Api::all(client.clone()), &changed, tasks),
        sources,
        logs: pod::LogBook::default(),
        pods: AtomicU32::new(0),
        client,
        settings,
    });
    kubelet::start(&node, tasks).await?;
    registration::register(&node).await?;
    tasks.spawn(registration::keep_fresh(Arc::clone(&node)));
    tasks.spawn(pods::run(node));
    Ok(())
}
