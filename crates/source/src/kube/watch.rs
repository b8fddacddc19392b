//! Follows every kind we read and says what changed.
//!
//! Each kind has a task of its own ([`follow`]); one more gathers what they say into [`Batch`]es. The first batch that
//! [is synced](Batch::is_synced) comes when every kind has been listed, where a kind that is absent or that we may not list
//! counts as listed and empty. While the API server is away nothing is said, and afterwards only what is different.

mod convert;
mod definitions;
mod follow;
mod gather;
mod states;

use std::{collections::BTreeMap, sync::Arc};

use gatewright_api::Kind;
pub use states::{KindState, Standing, States};
use tokio::{sync::mpsc, task::JoinSet};

use super::{Cluster, observed::Observed};
use crate::Change;

/// How to watch.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    /// The name by which our entries in a status are known.
    pub controller: String,
    /// The namespaces whose routes count; empty for all of them.
    ///
    /// Limits routes. Gateways, their Services, certificates and settings, the backends of routes and ReferenceGrants are
    /// read everywhere, because routes attach to Gateways, and refer to backends, of any namespace; where we may not list a
    /// kind everywhere, it is read in these namespaces.
    pub namespaces: Vec<String>,
}

/// What changed in the cluster.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Declared objects that changed, in the order in which the changes were seen.
    pub changes: Vec<Change>,
    /// What objects with a status show now. Hand it to the writer before planning.
    pub observed: Vec<Observed>,
    /// The definitions of Gateway API, if they have changed: their names, each with the version it says it is of.
    pub definitions: Option<BTreeMap<String, Option<String>>>,
    /// Whether every kind has been listed. Nothing may be planned before; once true it stays true.
    pub is_synced: bool,
}

/// A watched cluster. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    batches: mpsc::Receiver<Batch>,
    states: States,
    // Dropped with the watch, which ends the tasks.
    _tasks: JoinSet<()>,
}

impl Watch {
    /// The next batch. May be dropped and called again without losing one; while nobody asks, changes gather.
    pub async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }

    /// How the watch of each kind stands, now and later.
    pub fn states(&self) -> States {
        self.states.clone()
    }
}

/// In which namespaces a kind is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// In those that are watched.
    Limited,
    /// Everywhere, if we may.
    Everywhere,
}

impl Scope {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => Self::Limited,
            Kind::GatewayClass
            | Kind::Gateway
            | Kind::Service
            | Kind::EndpointSlice
            | Kind::ReferenceGrant
            | Kind::ListenerSet
            | Kind::BackendTlsPolicy
            | Kind::BackendTrafficPolicy
            | Kind::Secret
            | Kind::ConfigMap
            | Kind::Namespace
            | Kind::GatewayConfig => Self::Everywhere,
        }
    }
}

/// Watches a cluster. Must be called within a runtime.
pub fn watch(cluster: &Cluster, settings: WatchSettings) -> Watch {
    let WatchSettings {
        controller,
        mut namespaces,
    } = settings;
    namespaces.sort_unstable();
    namespaces.dedup();
    let states = States::new(cluster.server());
    let mut tasks = JoinSet::new();
    let (messages_in, messages) = mpsc::channel(1024);
    let (changed, definitions) = tokio::sync::watch::channel(0);
    tasks.spawn(definitions::follow(cluster.client(), changed, messages_in.clone()));
    let controller: Arc<str> = controller.into();
    // Definitions are listed, too.
    let mut waiting = 1;
    for &kind in Kind::ALL {
        let follow = |namespace: Option<String>| follow::Task {
            cluster: cluster.clone(),
            controller: controller.clone(),
            kind,
            namespace,
            messages: messages_in.clone(),
            states: states.clone(),
            definitions: definitions.clone(),
        };
        match Scope::of(kind) {
            Scope::Limited if !namespaces.is_empty() => {
                waiting += namespaces.len();
                for namespace in &namespaces {
                    tasks.spawn(follow(Some(namespace.clone())).run());
                }
            }
            Scope::Limited | Scope::Everywhere => {
                waiting += 1;
                let fallback = if kind.is_namespaced() {
                    namespaces.clone()
                } else {
                    Vec::new()
                };
                tasks.spawn(follow(None).run_or_fall_back(fallback));
            }
        }
    }
    let (batches_in, batches) = mpsc::channel(1);
    tasks.spawn(gather::gather(messages, batches_in, waiting));
    Watch {
        batches,
        states,
        _tasks: tasks,
    }
}
