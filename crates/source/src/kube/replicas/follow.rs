//! Watches the Leases of the other replicas, and removes those that nobody renews.

use std::{sync::Arc, time::Duration};

use ::kube::{
    Api, Error,
    api::{DeleteParams, Preconditions},
};
use ahash::{AHashMap, AHashSet};
use gatewright_world::Replica;
use serde_json::Value;
use tokio::time::Instant;

use super::{LABEL, ReplicaSettings, names, outbox::Outbox, publish::said_by};
use crate::kube::{
    Cluster,
    backoff::Backoff,
    failure, lease,
    list_watch::{Event, Events, Selection},
    raw::Raw,
};

/// No Lease holds for longer, whatever it says: it may be anybody's.
const LONGEST: Duration = Duration::from_mins(5);
/// The answer about one Lease that seems to have run out.
const PATIENCE: Duration = Duration::from_secs(2);
/// A Lease that ran out so many of its durations ago is removed.
const LEFTOVER: u32 = 10;

/// Runs for as long as somebody listens.
pub(super) async fn follow(cluster: Cluster, settings: Arc<ReplicaSettings>, outbox: Arc<Outbox>) {
    // However this ends, whoever listens must not wait for ever.
    let outbox = CloseOnDrop(outbox);
    let resource = lease::resource();
    let selection = Selection {
        namespace: Some(settings.namespace.clone()),
        labels: Some(format!("{LABEL}={}", names::label(&settings.installation))),
        ..Selection::default()
    };
    let mut events = Events::new(cluster.client(), &resource, selection);
    let mut others = Others {
        api: Api::namespaced_with(cluster.client(), &settings.namespace, &resource),
        own: names::lease(&settings.identity),
        outbox: &outbox.0,
        known: AHashMap::new(),
        there: AHashSet::new(),
        is_away: false,
        not_before: Instant::now(),
    };
    let mut backoff = Backoff::new(
        Duration::from_millis(200),
        settings.period().min(Duration::from_secs(5)),
    );
    let mut is_complaining = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = due(others.next_due()) => {
                others.look().await;
                continue;
            }
        };
        match event {
            Ok(event) => {
                if let Event::Watching = event {
                    backoff.reset();
                    is_complaining = false;
                }
                others.take(event);
            }
            Err(error) => {
                others.is_away = true;
                if !is_complaining {
                    is_complaining = true;
                    let message = failure::message(&error);
                    tracing::warn!(message, "the leases of the other replicas cannot be watched");
                }
                let wait = failure::retry_after(&error).unwrap_or_default();
                tokio::time::sleep(backoff.next().max(wait)).await;
            }
        }
    }
}

struct CloseOnDrop(Arc<Outbox>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

struct Others<'a> {
    api: Api<Raw>,
    /// The name of our own Lease.
    own: String,
    outbox: &'a Outbox,
    known: AHashMap<String, Other>,
    /// The Leases of the list under way.
    there: AHashSet<String>,
    /// Whether the API server was last heard to be in trouble.
    is_away: bool,
    /// Nothing is asked about single Leases before.
    not_before: Instant,
}

/// Another replica.
struct Other {
    identity: String,
    uid: String,
    version: String,
    /// The last renewal, in the words of the replica's own clock: only whether it changes counts.
    renewal: String,
    duration: Duration,
    /// What it said last.
    text: Option<String>,
    /// When its Lease runs out, or is removed, unless something happens.
    due: Instant,
    is_dead: bool,
}

impl Others<'_> {
    fn take(&mut self, event: Event) {
        match event {
            Event::ListBegins => self.there.clear(),
            Event::Listed(raw) => {
                self.there.insert(raw.name().to_owned());
                self.see(&raw);
            }
            Event::ListEnds => {
                self.hear();
                let there = std::mem::take(&mut self.there);
                let gone = self.known.keys().filter(|name| !there.contains(*name));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.lose(&name);
                }
            }
            Event::Watching => self.hear(),
            Event::Applied(raw) => self.see(&raw),
            Event::Deleted(raw) => self.lose(raw.name()),
        }
    }

    /// The API server answers. If it did not before, nobody could renew: everyone has a whole duration from now.
    fn hear(&mut self) {
        if self.is_away {
            self.is_away = false;
            let now = Instant::now();
            for other in self.known.values_mut() {
                other.due = other.due.max(now + other.duration);
            }
        }
    }

    fn see(&mut self, raw: &Raw) {
        let name = raw.name();
        let field = |key: &str| raw.value.pointer(&format!("/spec/{key}"));
        let text = |key: &str| field(key).and_then(Value::as_str).unwrap_or_default();
        let identity = text("holderIdentity");
        // One that bears another's name says nothing.
        if name == self.own || names::lease(identity) != name {
            return;
        }
        let now = Instant::now();
        let seconds = field("leaseDurationSeconds").and_then(Value::as_u64).unwrap_or(0);
        let duration = Duration::from_secs(seconds).clamp(Duration::from_secs(1), LONGEST);
        let said = said_by(raw);
        let other = self.known.entry(name.to_owned()).or_insert_with(|| Other {
            identity: identity.to_owned(),
            uid: String::new(),
            version: String::new(),
            renewal: String::new(),
            duration,
            text: None,
            due: now + duration,
            is_dead: false,
        });
        let is_other = other.uid != raw.uid();
        let is_renewed = is_other || other.renewal != text("renewTime");
        raw.uid().clone_into(&mut other.uid);
        raw.resource_version().clone_into(&mut other.version);
        if is_renewed {
            text("renewTime").clone_into(&mut other.renewal);
            other.duration = duration;
            other.due = now + duration;
            if other.is_dead {
                other.is_dead = false;
                other.text = None;
            }
        }
        if other.is_dead || other.text.as_deref() == said {
            return;
        }
        other.text = said.map(str::to_owned);
        let replica = said.and_then(|text| {
            let read = Replica::decode(text);
            read.inspect_err(|error| {
                tracing::warn!(replica = identity, %error, "what another replica published cannot be read");
            })
            .ok()
        });
        self.outbox.put(identity, replica);
    }

    fn lose(&mut self, name: &str) {
        if let Some(other) = self.known.remove(name) {
            self.outbox.put(&other.identity, None);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let first = self.known.values().map(|other| other.due).min()?;
        Some(first.max(self.not_before))
    }

    /// Looks at every Lease whose time has come.
    async fn look(&mut self) {
        let now = Instant::now();
        let due = self.known.iter().filter(|(_, other)| other.due <= now);
        let due: Vec<(String, bool)> = due.map(|(name, other)| (name.clone(), other.is_dead)).collect();
        for (name, is_dead) in due {
            let looked = if is_dead {
                self.remove(&name).await
            } else {
                self.ask(&name).await
            };
            if let Err(error) = looked {
                tracing::debug!(name, message = failure::message(&error), "not looked at");
                self.is_away = true;
                self.not_before = Instant::now() + PATIENCE;
                return;
            }
        }
    }

    /// Gives a replica up, unless the API server knows of a renewal that the watch has not told.
    async fn ask(&mut self, name: &str) -> Result<(), Error> {
        let found = failure::within(PATIENCE, self.api.get_opt(name)).await?;
        self.hear();
        match found {
            Some(raw) => self.see(&raw),
            None => self.lose(name),
        }
        let Some(other) = self.known.get_mut(name) else {
            return Ok(());
        };
        let now = Instant::now();
        if other.due <= now {
            tracing::warn!(
                replica = other.identity,
                "a replica no longer renews its lease; it counts as gone"
            );
            other.is_dead = true;
            other.due = now + other.duration * LEFTOVER;
            self.outbox.put(&other.identity, None);
        }
        Ok(())
    }

    /// Removes what a dead replica left behind. Every replica tries; the first does it.
    async fn remove(&mut self, name: &str) -> Result<(), Error> {
        let Some(other) = self.known.get_mut(name) else {
            return Ok(());
        };
        other.due = Instant::now() + other.duration * LEFTOVER;
        let parameters = DeleteParams {
            // Should it live again, it stays.
            preconditions: Some(Preconditions {
                uid: Some(other.uid.clone()),
                resource_version: Some(other.version.clone()),
            }),
            ..DeleteParams::default()
        };
        match failure::within(PATIENCE, self.api.delete(name, &parameters)).await {
            Err(error) if !matches!(failure::code(&error), Some(403 | 404 | 409)) => Err(error),
            // What became of it the watch tells.
            _ => Ok(()),
        }
    }
}
