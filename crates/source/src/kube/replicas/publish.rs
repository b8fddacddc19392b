//! Keeps the Lease of this replica: made, changed, renewed and in the end removed.
//!
//! Always patched or created, never replaced, so that no right to `update` is needed.

use std::{sync::Arc, time::Duration};

use ::kube::{
    Api, Error,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use gatewright_world::Replica;
use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{ANNOTATION, LABEL, ReplicaSettings, names};
use crate::kube::{Cluster, backoff::Backoff, failure, lease, raw::Raw};

/// Changes are written no closer together than this; changes meanwhile gather.
const PACE: Duration = Duration::from_millis(200);
/// And so much longer for each KiB: every replica reads every write.
const PACE_PER_KIB: Duration = Duration::from_millis(4);
/// The last requests of a replica that leaves take no longer, each.
const FAREWELL: Duration = Duration::from_secs(3);

pub(super) async fn publish(
    cluster: Cluster,
    settings: Arc<ReplicaSettings>,
    mut wishes: watch::Receiver<Option<Replica>>,
    mut leaving: watch::Receiver<bool>,
    left: watch::Sender<bool>,
) {
    let mut own = Own {
        api: Api::namespaced_with(cluster.client(), &settings.namespace, &lease::resource()),
        name: names::lease(&settings.identity),
        settings,
        written: None,
        is_there: false,
        is_complaining: false,
        left_out: 0,
    };
    let is_asked = tokio::select! {
        () = own.keep(&mut wishes) => false,
        asked = leaving.wait_for(|is_leaving| *is_leaving) => asked.is_ok(),
    };
    // Whoever is dropped without a word goes without one.
    if is_asked {
        let last = wishes.borrow().clone();
        own.leave(last).await;
    }
    left.send_replace(true);
}

struct Own {
    api: Api<Raw>,
    name: String,
    settings: Arc<ReplicaSettings>,
    /// The text that stands in the Lease.
    written: Option<String>,
    /// Whether the Lease existed when we wrote last.
    is_there: bool,
    is_complaining: bool,
    left_out: usize,
}

impl Own {
    /// Writes what is wished and renews, until nobody can wish any more.
    async fn keep(&mut self, wishes: &mut watch::Receiver<Option<Replica>>) {
        let period = self.settings.period();
        let mut backoff = Backoff::new(PACE, period);
        let mut next = Instant::now();
        // Nothing to say yet.
        if wishes.wait_for(Option::is_some).await.is_err() {
            return;
        }
        loop {
            // A change comes at once if the last one is long ago, else when it is due.
            tokio::time::sleep_until(next).await;
            let Some(replica) = wishes.borrow_and_update().clone() else {
                return;
            };
            let started = Instant::now();
            let text = self.text(&replica);
            let result = self.write(&text, period.max(Duration::from_secs(1))).await;
            let renewal = match result {
                Ok(()) => {
                    backoff.reset();
                    self.is_complaining = false;
                    next = started + pace(&text);
                    self.written = Some(text);
                    started + period
                }
                Err(error) => {
                    self.complain(&error);
                    let wait = failure::retry_after(&error).unwrap_or_default();
                    next = Instant::now() + backoff.next().max(wait).min(period);
                    next
                }
            };
            tokio::select! {
                changed = wishes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(renewal) => {}
            }
        }
    }

    fn text(&mut self, replica: &Replica) -> String {
        let encoded = replica.encode();
        if encoded.left_out > 0 && self.left_out == 0 {
            tracing::warn!(
                left_out = encoded.left_out,
                "more listeners than this replica can publish; the others take the rest for closed"
            );
        }
        self.left_out = encoded.left_out;
        encoded.text
    }

    fn complain(&mut self, error: &Error) {
        if !self.is_complaining {
            self.is_complaining = true;
            tracing::warn!(
                namespace = self.settings.namespace,
                name = self.name,
                message = failure::message(error),
                "the lease by which the other replicas know this one cannot be written"
            );
        }
    }

    /// Makes the Lease say this, and be fresh.
    async fn write(&mut self, text: &str, limit: Duration) -> Result<(), Error> {
        if self.is_there {
            let is_said = self.written.as_deref() == Some(text);
            let change = if is_said { self.renewal() } else { self.whole(text) };
            match self.patch(&change, limit).await {
                Ok(made) if said_by(&made) == Some(text) => return Ok(()),
                // Somebody has edited it.
                Ok(_) => return self.patch(&self.whole(text), limit).await.map(drop),
                Err(error) if failure::code(&error) == Some(404) => self.is_there = false,
                Err(error) => return Err(error),
            }
        }
        let raw = Raw::of(self.whole(text)).map_err(Error::SerdeError)?;
        let parameters = PostParams::default();
        let made = failure::within(limit, self.api.create(&parameters, &raw)).await;
        match made {
            // A leftover of this very replica: what was it before it was started again.
            Err(error) if failure::code(&error) == Some(409) => self.patch(&self.whole(text), limit).await?,
            made => made?,
        };
        self.is_there = true;
        Ok(())
    }

    async fn patch(&self, change: &Value, limit: Duration) -> Result<Raw, Error> {
        let parameters = PatchParams::default();
        let change = Patch::Merge(change);
        failure::within(limit, self.api.patch(&self.name, &parameters, &change)).await
    }

    fn renewal(&self) -> Value {
        json!({ "spec": { "renewTime": lease::now(), "holderIdentity": self.settings.identity } })
    }

    fn whole(&self, text: &str) -> Value {
        let ReplicaSettings {
            namespace,
            identity,
            installation,
            owner,
            lease_duration,
        } = &*self.settings;
        let owner = owner
            .as_ref()
            .map(|owner| json!({ "apiVersion": "v1", "kind": "Pod", "name": owner.name, "uid": owner.uid }));
        let resource = lease::resource();
        json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "labels": { LABEL: names::label(installation) },
                "annotations": { ANNOTATION: text },
                "ownerReferences": Vec::from_iter(owner),
            },
            "spec": {
                "holderIdentity": identity,
                "leaseDurationSeconds": lease_duration.as_millis().div_ceil(1000).max(1),
                "renewTime": lease::now(),
            },
        })
    }

    /// Says that it leaves, and removes the Lease.
    async fn leave(&mut self, last: Option<Replica>) {
        let Some(replica) = last else { return };
        if self.is_there && !replica.is_leaving {
            let leaving = Replica {
                is_leaving: true,
                ..replica
            };
            // Should the Lease stay, it says at least this.
            let _ = self.write(&leaving.encode().text, FAREWELL).await;
        }
        // Also where it is not known to be there: it may just have been made.
        let parameters = DeleteParams::default();
        let deleted = failure::within(FAREWELL, self.api.delete(&self.name, &parameters)).await;
        if let Err(error) = deleted {
            tracing::debug!(
                message = failure::message(&error),
                "the lease of this replica was not removed; it runs out by itself"
            );
        }
    }
}

/// What a Lease says of its replica.
pub(super) fn said_by(lease: &Raw) -> Option<&str> {
    let annotations = lease.metadata.annotations.as_ref()?;
    annotations.get(ANNOTATION).map(String::as_str)
}

/// How long nothing is written after a text of this size.
fn pace(text: &str) -> Duration {
    let kib = u32::try_from(text.len() / 1024).unwrap_or(u32::MAX);
    PACE + PACE_PER_KIB.saturating_mul(kib)
}
