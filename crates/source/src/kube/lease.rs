//! Elects the replica that writes, by a Lease as every Kubernetes controller does.
//!
//! A holder that has not renewed for the whole duration has lost it. How long that is each replica measures on its own
//! clock, from when it saw the last renewal: clocks that differ by hours elect just the same. A holder that cannot renew stops
//! being leader before anyone else can become it.

use std::{env, fs, time::Duration};

use ::kube::{
    Api, Error,
    api::{ApiResource, Patch, PatchParams, PostParams},
};
use ahash::RandomState;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::Instant,
};

use super::{Cluster, failure, raw::Raw};

/// How to elect.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// The namespace of the Lease: the one we run in.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which replica this is. See [`identity`].
    pub identity: String,
    /// So long after the last renewal the next replica may take it.
    pub duration: Duration,
    /// So long after its last renewal a holder that cannot renew stops being leader. Shorter than `duration`.
    pub deadline: Duration,
    /// How often it is renewed or tried for.
    pub period: Duration,
}

impl LeaseSettings {
    /// The usual settings.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            period: Duration::from_secs(2),
        }
    }
}

/// Part in an election. Dropping it leaves without releasing; another replica takes over after the lease's duration.
#[derive(Debug)]
pub struct Lease {
    is_leader: watch::Receiver<bool>,
    uid: watch::Receiver<Option<String>>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Lease {
    /// Whether this replica is the leader, now and later.
    pub fn is_leader(&self) -> watch::Receiver<bool> {
        self.is_leader.clone()
    }

    /// The UID of the Lease as it is in the cluster, the same for all who take part; none until it has been seen.
    pub fn uid(&self) -> watch::Receiver<Option<String>> {
        self.uid.clone()
    }

    /// Stops, and lets another replica take over at once.
    pub async fn release(mut self) {
        if let Some(stop) = self.stop.take() {
            // The task may have ended with the runtime.
            let _ = stop.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A name for this replica: that of its pod, or of its host with something random.
pub fn identity() -> String {
    if let Some(pod) = env::var("POD_NAME").ok().filter(|name| !name.is_empty()) {
        return pod;
    }
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "gatewright",
        host => host,
    };
    format!("{host}_{:016x}", RandomState::new().hash_one(host))
}

/// Takes part in an election. Must be called within a runtime.
pub fn lease(cluster: &Cluster, settings: LeaseSettings) -> Lease {
    let (leads, is_leader) = watch::channel(false);
    let (sees, uid) = watch::channel(None);
    let (stop, stopped) = oneshot::channel();
    let api = Api::namespaced_with(cluster.client(), &settings.namespace, &resource());
    let candidate = Candidate {
        api,
        settings,
        leads,
        sees,
        held: None,
        last: None,
        is_complaining: false,
    };
    Lease {
        is_leader,
        uid,
        stop: Some(stop),
        task: tokio::spawn(candidate.run(stopped)),
    }
}

struct Candidate {
    api: Api<Raw>,
    settings: LeaseSettings,
    leads: watch::Sender<bool>,
    sees: watch::Sender<Option<String>>,
    /// When we renewed last and the version that made, while we hold it.
    held: Option<(Instant, String)>,
    /// The last renewal by anyone that we saw, and when we saw it.
    last: Option<(String, Instant)>,
    is_complaining: bool,
}

impl Candidate {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            // A holder's request must not outlive its right to hold.
            let limit = self.settings.deadline / 2;
            let step = tokio::select! {
                _ = &mut stopped => break,
                step = within(limit, self.step()) => step,
            };
            if let Err(error) = step {
                self.complain(&error);
            }
            self.show();
            let wait = self.settings.period.min(self.settings.deadline / 4);
            tokio::select! {
                _ = &mut stopped => break,
                () = tokio::time::sleep(wait) => self.show(),
            }
        }
        let _ = self.leads.send_replace(false);
        if self.held.is_some() {
            let released = within(self.settings.deadline / 2, self.let_go()).await;
            if let Err(error) = released {
                tracing::debug!(
                    message = failure::message(&error),
                    "the lease was not released; it runs out by itself"
                );
            }
        }
    }

    fn complain(&mut self, error: &Error) {
        if !self.is_complaining {
            self.is_complaining = true;
            let LeaseSettings { namespace, name, .. } = &self.settings;
            tracing::warn!(
                namespace,
                name,
                message = failure::message(error),
                "the lease that elects the writer cannot be read or written"
            );
        }
    }

    /// Shows whether we are the leader by now.
    fn show(&mut self) {
        let is_leader = self
            .held
            .as_ref()
            .is_some_and(|(renewed, _)| renewed.elapsed() < self.settings.deadline);
        let is_news = self.leads.send_if_modified(|known| {
            let is_news = *known != is_leader;
            *known = is_leader;
            is_news
        });
        if is_news {
            let identity = &self.settings.identity;
            if is_leader {
                tracing::info!(identity, "this replica writes status");
            } else {
                tracing::info!(identity, "this replica no longer writes status");
            }
        }
    }

    /// Renews, takes or watches the lease.
    async fn step(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        let name = self.settings.name.clone();
        let Some(found) = self.api.get_opt(&name).await? else {
            let made = self.create().await;
            return self.took(made, started);
        };
        self.see(&found);
        let field = |key: &str| found.value.pointer(&format!("/spec/{key}"));
        let text = |key: &str| field(key).and_then(Value::as_str).unwrap_or_default();
        let holder = text("holderIdentity");
        let renewal = format!("{holder} {} {}", text("renewTime"), found.resource_version());
        if self.last.as_ref().is_none_or(|(known, _)| *known != renewal) {
            self.last = Some((renewal, started));
        }
        let is_ours = holder == self.settings.identity;
        let seconds = field("leaseDurationSeconds").and_then(Value::as_u64).unwrap_or(0);
        let duration = Duration::from_secs(seconds).max(Duration::from_secs(1));
        let is_over = self.last.as_ref().is_none_or(|(_, seen)| seen.elapsed() > duration);
        if !(is_ours || holder.is_empty() || is_over) {
            self.held = None;
            self.is_complaining = false;
            return Ok(());
        }
        let transitions = field("leaseTransitions").and_then(Value::as_i64).unwrap_or(0);
        let acquired = text("acquireTime");
        let is_kept = is_ours && !acquired.is_empty();
        let now = now();
        let spec = json!({
            "holderIdentity": self.settings.identity,
            "leaseDurationSeconds": self.seconds(),
            "acquireTime": if is_kept { acquired } else { &now },
            "renewTime": now,
            "leaseTransitions": transitions + i64::from(!is_kept),
        });
        let made = self.patch(found.resource_version(), spec).await;
        self.took(made, started)
    }

    /// Says which Lease it is.
    fn see(&self, lease: &Raw) {
        self.sees.send_if_modified(|known| {
            let is_news = *known != lease.metadata.uid;
            if is_news {
                known.clone_from(&lease.metadata.uid);
            }
            is_news
        });
    }

    /// Takes note of a lease that we wrote; somebody quicker is no error.
    fn took(&mut self, made: Result<Raw, Error>, started: Instant) -> Result<(), Error> {
        match made {
            Ok(made) => {
                self.see(&made);
                // From before the request: others count from after it.
                self.held = Some((started, made.resource_version().to_owned()));
                self.is_complaining = false;
                Ok(())
            }
            Err(error) if failure::code(&error) == Some(409) => {
                self.held = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    async fn create(&self) -> Result<Raw, Error> {
        let LeaseSettings { namespace, name, .. } = &self.settings;
        let now = now();
        let value = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": name, "namespace": namespace },
            "spec": {
                "holderIdentity": self.settings.identity,
                "leaseDurationSeconds": self.seconds(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        });
        let raw = Raw::of(value).map_err(Error::SerdeError)?;
        self.api.create(&PostParams::default(), &raw).await
    }

    async fn patch(&self, version: &str, spec: Value) -> Result<Raw, Error> {
        let change = json!({ "metadata": { "resourceVersion": version }, "spec": spec });
        let parameters = PatchParams::default();
        self.api
            .patch(&self.settings.name, &parameters, &Patch::Merge(&change))
            .await
    }

    async fn let_go(&mut self) -> Result<(), Error> {
        let Some((_, version)) = self.held.take() else {
            return Ok(());
        };
        let spec = json!({ "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now() });
        match self.patch(&version, spec).await {
            Err(error) if failure::code(&error) == Some(409) => Ok(()),
            done => done.map(|_| ()),
        }
    }

    fn seconds(&self) -> u64 {
        self.settings.duration.as_secs().max(1)
    }
}

async fn within<T>(limit: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    failure::within(limit, request).await
}

/// What a Lease is to the API server.
pub(super) fn resource() -> ApiResource {
    ApiResource {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "coordination.k8s.io/v1".to_owned(),
        kind: "Lease".to_owned(),
        plural: "leases".to_owned(),
    }
}

/// The time, as Leases have it.
pub(super) fn now() -> String {
    format!("{:.6}", Timestamp::now())
}
