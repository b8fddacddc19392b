//! A process's part in a cluster: which one, what it reads there, what it writes, and how it comes and goes.
//!
//! [`run`](crate::run) reads the [`ClusterArgs`], [`app`](crate::app) [joins](join) and gets three things: the [`Link`]
//! for the spine, the [`Monitor`] for the admin API and the metrics, and the [`Membership`] with which it leaves. What
//! is written is decided by the plan and done by `source`; here is only the wiring.

mod args;
mod link;
mod membership;
mod monitor;
mod secret;

use std::time::Duration;

use gatewright_source::kube::{
    self, ConnectSettings, LeaseSettings, OwnedKind, ReplicaSettings, WatchSettings, WriterSettings,
};

use crate::failure::Failure;
pub(crate) use args::{ClusterArgs, ClusterSettings};
pub(crate) use link::{Link, News, Wishes};
pub(crate) use membership::{Leave, Membership};
pub(crate) use monitor::{ClusterSummary, Monitor, WatchSummary, WriterSummary};
use secret::SharedSecret;

/// A replica that has not renewed for so long is taken out of the Services of Gateways. Until then connections are still
/// sent to it, so this is shorter than what elects the writer.
const REPLICA_LEASE: Duration = Duration::from_secs(6);

/// The Lease that elects the writer. Installations of other controller names have one of their own.
pub(crate) fn writer_lease(controller: &str) -> String {
    args::lease_name("gatewright-writer", controller)
}

/// A process's part in a cluster.
pub(crate) struct Joined {
    pub(crate) link: Link,
    pub(crate) monitor: Monitor,
    pub(crate) membership: Membership,
}

/// Begins to watch, takes part in the election and shows itself to the other replicas.
///
/// Must be called within the runtime of everything that is not planning: a long plan must not cost the lease.
pub(crate) async fn join(settings: &ClusterSettings, controller: &str) -> Result<Joined, Failure> {
    let connect = ConnectSettings {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
    };
    let cluster = kube::connect(&connect)
        .await
        .map_err(|error| Failure::new(error.to_string()).hint(error.hint()))?;
    let identity = kube::identity();
    let namespace = settings
        .system_namespace
        .clone()
        .unwrap_or_else(|| cluster.namespace().to_owned());
    tracing::info!(server = cluster.server(), %identity, %namespace, "serving a cluster");
    if settings.addresses.is_empty() {
        tracing::warn!(
            "no address of this replica is known, so no Service of a Gateway can lead here; in a pod set POD_IPS, elsewhere use --replica-address"
        );
    }
    let watch = kube::watch(
        &cluster,
        WatchSettings {
            controller: controller.to_owned(),
            namespaces: settings.namespaces.clone(),
        },
    );
    let writer = kube::writer(
        &cluster,
        WriterSettings {
            namespaces: settings.namespaces.clone(),
            owned: vec![OwnedKind::SERVICE, OwnedKind::ENDPOINT_SLICE],
            ..WriterSettings::new(controller, &identity)
        },
    );
    let replicas = ReplicaSettings {
        installation: controller.to_owned(),
        owner: args::own_pod(),
        lease_duration: REPLICA_LEASE,
        ..ReplicaSettings::new(&namespace, &identity)
    };
    let replicas = kube::replicas(&cluster, replicas);
    let lease = LeaseSettings::new(namespace, writer_lease(controller), &identity);
    let lease = kube::lease(&cluster, lease);
    let monitor = Monitor::new(cluster.server(), &identity, watch.states(), writer.clone());
    let secret = SharedSecret::new(lease.uid());
    Ok(Joined {
        membership: Membership::new(lease, writer.clone(), settings.leave_delay),
        link: Link::new(watch, writer, replicas, secret, identity, settings),
        monitor,
    })
}
