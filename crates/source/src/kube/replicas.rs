//! What each replica publishes of itself, and what it learns of the others.
//!
//! Every replica keeps one Lease of its own, renews it, and puts its facts into an annotation of it. All of them watch these
//! Leases. The binary calls this: it publishes what its plane observed and tells the world about the others. Nothing here
//! knows what a fact means.
//!
//! A replica is gone when its Lease is deleted, or when it has not renewed it for the Lease's duration. That is measured by
//! the time at which *we* saw the last renewal, so clocks need not agree; and before a replica is given up, the API
//! server is asked once more. While the API server does not answer, nobody is given up: nobody could renew.
//!
//! Needs, in the namespace of the replicas and on `leases` of `coordination.k8s.io`: `get`, `list`, `watch`, `create`, `patch`
//! and `delete`.

mod follow;
mod names;
mod outbox;
mod publish;

use std::{sync::Arc, time::Duration};

use gatewright_world::Replica;
use outbox::Outbox;
use tokio::{sync::watch, task::JoinSet};

use super::Cluster;

/// Which Leases are those of replicas; the value says of which installation.
const LABEL: &str = "gatewright.dev/replica";
/// Where a replica's facts stand.
const ANNOTATION: &str = "gatewright.dev/replica";

/// How to publish this replica.
#[derive(Clone, Debug)]
pub struct ReplicaSettings {
    /// The namespace of the Leases: the one we run in.
    pub namespace: String,
    /// Which replica this is. See [`identity`](super::identity).
    pub identity: String,
    /// Replicas of the same installation know each other. Two installations may share a namespace.
    pub installation: String,
    /// The pod that this replica runs in, in the same namespace: the cluster removes the Lease together with it.
    pub owner: Option<OwnerPod>,
    /// So long after the last renewal a replica is given up. Renewed three times as often. At least a second.
    pub lease_duration: Duration,
}

/// The pod of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerPod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl ReplicaSettings {
    /// The usual settings.
    pub fn new(namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            identity: identity.into(),
            installation: "gatewright".to_owned(),
            owner: None,
            lease_duration: Duration::from_secs(15),
        }
    }

    /// How often the Lease is renewed.
    fn period(&self) -> Duration {
        self.lease_duration.max(Duration::from_secs(1)) / 3
    }
}

/// This replica among the others. Dropping it goes without a word: the others notice when the Lease runs out.
#[derive(Debug)]
pub struct Replicas {
    outbox: Arc<Outbox>,
    wanted: watch::Sender<Option<Replica>>,
    is_leaving: watch::Sender<bool>,
    has_left: watch::Receiver<bool>,
    // Dropped with this, which ends the tasks.
    _tasks: JoinSet<()>,
}

/// Joins the replicas. Must be called within a runtime. Nothing is published before [`Replicas::publish`].
pub fn replicas(cluster: &Cluster, settings: ReplicaSettings) -> Replicas {
    let settings = Arc::new(settings);
    let outbox = Arc::new(Outbox::default());
    let (wanted, wishes) = watch::channel(None);
    let (is_leaving, leaving) = watch::channel(false);
    let (left, has_left) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow::follow(cluster.clone(), settings.clone(), outbox.clone()));
    tasks.spawn(publish::publish(cluster.clone(), settings, wishes, leaving, left));
    Replicas {
        outbox,
        wanted,
        is_leaving,
        has_left,
        _tasks: tasks,
    }
}

impl Replicas {
    /// What the others should know of this replica. The newest wins; what is the same costs nothing.
    ///
    /// One that is about to stop says so with [`Replica::is_leaving`] and then, when it serves nobody any more, calls
    /// [`leave`](Self::leave).
    pub fn publish(&self, replica: Replica) {
        self.wanted.send_if_modified(|known| {
            let is_news = known.as_ref() != Some(&replica);
            if is_news {
                *known = Some(replica);
            }
            is_news
        });
    }

    /// What changed about the others since the last call: their identity and what they say of themselves; nothing for one
    /// that is gone. Never empty. May be dropped and called again without losing anything.
    pub async fn next(&mut self) -> Option<Vec<(String, Option<Replica>)>> {
        self.outbox.next().await
    }

    /// Says that this replica leaves, and then removes its Lease; the others know at once. Ends within a few seconds, also
    /// when the API server is away. What is published afterwards is not written.
    pub async fn leave(&self) {
        self.is_leaving.send_replace(true);
        let mut has_left = self.has_left.clone();
        // The task may have ended with the runtime.
        let _ = has_left.wait_for(|has_left| *has_left).await;
    }
}
