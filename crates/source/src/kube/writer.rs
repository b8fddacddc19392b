//! Makes the API server show what the plan says.
//!
//! The owner of the plan tells the [`Writer`] what each object should show and which objects should exist; the watch tells
//! it what is there. One task writes the difference: only differences, only what is ours, the newest wish only, at a bounded
//! rate, and only while this replica is the leader. Every call on the handle is quick and never waits for the network.

mod bucket;
mod entry;
mod events;
mod finalizer;
mod jobs;
mod owned;
mod queue;
mod report;
mod run;
pub(crate) mod shown;
mod state;
mod status;
mod sweep;

use std::{sync::Arc, time::Duration};

pub(crate) use entry::FINALIZER;
use gatewright_api::{Kind, ObjectName};
use gatewright_world::desired::Status;
pub(crate) use owned::CONTROLLER;
pub use owned::{OwnedConflict, OwnedKind, OwnedName, OwnedObject};
pub use report::{Failing, WriterReport};
use run::Shared;
use tokio::{sync::watch, task::JoinSet};

use super::{Cluster, Observed};

/// How to write.
#[derive(Clone, Debug)]
pub struct WriterSettings {
    /// The name by which our entries are known.
    pub controller: String,
    /// Which replica this is; Events say so.
    pub identity: String,
    /// So many requests a second at most, over time.
    pub rate: f64,
    /// So many at once after a pause.
    pub burst: u32,
    /// So many under way at the same time.
    pub in_flight: usize,
    /// How often everything is compared although nothing says that it differs.
    pub sweep: Duration,
    /// A difference that is found then counts if it is still there after so long.
    pub sweep_moment: Duration,
    /// The namespaces whose routes are watched; empty for all of them. The same as for the watch.
    pub namespaces: Vec<String>,
    /// The kinds of objects that may be owned. Each is watched by our label.
    pub owned: Vec<OwnedKind>,
    /// Whether to publish Events.
    pub has_events: bool,
}

impl WriterSettings {
    /// The usual settings.
    pub fn new(controller: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            controller: controller.into(),
            identity: identity.into(),
            rate: 200.0,
            burst: 200,
            in_flight: 16,
            sweep: Duration::from_hours(1),
            sweep_moment: Duration::from_secs(10),
            namespaces: Vec::new(),
            owned: Vec::new(),
            has_events: true,
        }
    }
}

/// The way to the writer. Cheap to clone; when the last one is dropped, writing ends.
#[derive(Clone, Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    // Dropped with the last handle, which ends the tasks.
    _tasks: Arc<JoinSet<()>>,
}

/// Starts a writer. Must be called within a runtime.
pub fn writer(cluster: &Cluster, settings: WriterSettings) -> Writer {
    let shared = Arc::new(Shared::new(cluster.clone(), settings));
    let mut tasks = JoinSet::new();
    tasks.spawn(run::run(shared.clone()));
    tasks.spawn(sweep::run(shared.clone()));
    if shared.settings.has_events {
        tasks.spawn(events::run(shared.clone()));
    }
    for kind in &shared.settings.owned {
        tasks.spawn(owned::follow(shared.clone(), *kind));
    }
    Writer {
        shared,
        _tasks: Arc::new(tasks),
    }
}

impl Writer {
    /// What the cluster shows, as the watch saw it. Call before planning the batch it came with.
    pub fn observe(&self, observed: Vec<Observed>) {
        let mut state = self.shared.lock();
        for Observed { name, seen } in observed {
            state.observe(&name, seen);
        }
        self.shared.wake(state);
    }

    /// What an object should show; nothing when it is no longer ours. Replaces what was said before.
    pub fn want(&self, name: ObjectName, status: Option<Arc<Status>>) {
        // Rendered outside the lock: this is most of the work.
        let status = status.map(|status| {
            let rendered = status::render(&status, &self.shared.settings.controller);
            let fingerprint = shown::fingerprint(name.kind, &rendered, &self.shared.settings.controller);
            (status, fingerprint)
        });
        let mut state = self.shared.lock();
        state.want(name, status);
        self.shared.wake(state);
    }

    /// Whether a GatewayClass is in use, and so keeps Gateway API's finalizer until its last Gateway is gone.
    pub fn keep_class(&self, class: &str, is_used: bool) {
        let name = ObjectName {
            kind: Kind::GatewayClass,
            namespace: String::new(),
            name: class.to_owned(),
        };
        let mut state = self.shared.lock();
        state.keep(&name, is_used);
        self.shared.wake(state);
    }

    /// That an object of ours should exist, and how; nothing when it should not. Replaces what was said before.
    pub fn own(&self, name: OwnedName, object: Option<OwnedObject>) {
        let mut state = self.shared.lock();
        state.own(name, object.map(Arc::new));
        self.shared.wake(state);
    }

    /// That everything the plan says has been said. Call after every plan.
    ///
    /// Nothing is written before the first call. What is ours in the cluster and was not wanted by now is removed.
    pub fn planned(&self) {
        let mut state = self.shared.lock();
        state.planned();
        self.shared.wake(state);
    }

    /// Whether objects that are not planned stay as they are. Whoever cannot see the objects that ours belong to plans none
    /// of ours, and must not take the addresses of all Gateways away for that.
    pub fn set_keeping(&self, is_keeping: bool) {
        let mut state = self.shared.lock();
        state.set_keeping(is_keeping);
        self.shared.wake(state);
    }

    /// Whether this replica is the one that writes.
    pub fn set_leader(&self, is_leader: bool) {
        let mut state = self.shared.lock();
        state.set_leader(is_leader);
        self.shared.wake(state);
    }

    /// Objects that cannot be made because others have their names; always the complete list.
    pub fn conflicts(&self) -> watch::Receiver<Arc<Vec<OwnedConflict>>> {
        self.shared.conflicts.subscribe()
    }

    /// What has been written and what cannot be.
    pub fn report(&self) -> WriterReport {
        self.shared.lock().report()
    }

    /// Waits until nothing is left to write that can be written now: what fails is not waited for.
    pub async fn settled(&self) {
        let mut settled = self.shared.settled.subscribe();
        // The sender lives in `shared`.
        let _ = settled.wait_for(|is_settled| *is_settled).await;
    }
}
