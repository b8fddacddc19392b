//! Events from conditions that change, so that `kubectl describe` tells the story of an object.
//!
//! Only what an operator wants to hear becomes one: trouble, the end of trouble, and a Gateway that begins to serve. At
//! most one per object and reason in a minute, and never so many that the status waits for them.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ::kube::{
    Api,
    api::{ApiResource, PostParams},
};
use ahash::AHashMap;
use gatewright_api::{Kind, ObjectName};
use gatewright_world::desired::Status;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{bucket::Bucket, jobs::PATIENCE, run::Shared, state::State};
use crate::kube::{failure, raw::Raw};

/// More than this are not kept.
const MOST_WAITING: usize = 1000;
const PER_OBJECT_AND_REASON: Duration = Duration::from_mins(1);
const RATE: f64 = 10.0;
const BURST: u32 = 50;
/// What the API server takes.
const LONGEST_NOTE: usize = 1024;

/// Events that wait to be published.
#[derive(Debug, Default)]
pub(super) struct Pending {
    queue: VecDeque<Event>,
    recent: AHashMap<(ObjectName, String), Instant>,
}

#[derive(Clone, Debug)]
struct Event {
    object: ObjectName,
    uid: Box<str>,
    change: Change,
    time: Timestamp,
}

/// A condition that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) is_warning: bool,
    pub(super) reason: String,
    pub(super) note: String,
}

/// What is worth telling about a status that was written.
pub(super) fn changes(status: &Status, before: &Value, after: &Value, controller: &str) -> Vec<Change> {
    let typed = status.conditions();
    let mut changes: Vec<Change> = Vec::new();
    for (holder, old, scope) in holders(before, after, controller) {
        for condition in list(holder, "conditions") {
            let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            let (kind, state, reason, message) = (text("type"), text("status"), text("reason"), text("message"));
            let ours = typed.iter().map(|(_, condition)| condition);
            let Some(ours) = ours.into_iter().find(|ours| {
                ours.kind.as_str() == kind && ours.reason.as_str() == reason && ours.state.as_str() == state
            }) else {
                continue;
            };
            let known =
                old.and_then(|old| list(old, "conditions").find(|known| known.get("type") == condition.get("type")));
            let was = |key: &str| {
                known
                    .and_then(|known| known.get(key))
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            let (old_state, old_reason) = (was("status"), was("reason"));
            let is_warning = ours.is_problem();
            let is_new = matches!(old_state, "" | "Unknown");
            let is_news = if is_warning {
                // A plane that has not answered yet is no trouble.
                (old_state != state || old_reason != reason) && reason != "Pending"
            } else {
                let is_first_service = is_new && scope.is_none() && kind == "Programmed";
                is_first_service
                    || (!is_new && old_state != state && old_reason != "Pending")
                    || (old_reason == "Pending" && scope.is_none() && kind == "Programmed" && state == "True")
            };
            if is_news {
                let note = match &scope {
                    Some(scope) => format!("{scope}: {message}"),
                    None => message.to_owned(),
                };
                let change = Change {
                    is_warning,
                    reason: reason.to_owned(),
                    note: truncated(&note, LONGEST_NOTE).to_owned(),
                };
                if !changes.iter().any(|known| known.reason == change.reason) {
                    changes.push(change);
                }
            }
        }
    }
    changes
}

type Holder<'a> = (&'a Value, Option<&'a Value>, Option<String>);

/// The lists that controllers share, what an entry of each is about, and what that is called.
const SHARED: [(&str, &str, &str); 2] = [
    ("parents", "parentRef", "parent"),
    ("ancestors", "ancestorRef", "ancestor"),
];

/// The object, its listeners, its parents or its ancestors, each as it is and as it was.
fn holders<'a>(before: &'a Value, after: &'a Value, controller: &str) -> Vec<Holder<'a>> {
    let mut holders: Vec<Holder<'a>> = vec![(after, Some(before), None)];
    for listener in list(after, "listeners") {
        let name = listener.get("name");
        let old = list(before, "listeners").find(|old| old.get("name") == name);
        let scope = format!("listener {}", name.and_then(Value::as_str).unwrap_or_default());
        holders.push((listener, old, Some(scope)));
    }
    for (key, about, called) in SHARED {
        for entry in list(after, key) {
            if entry.get("controllerName").and_then(Value::as_str) != Some(controller) {
                continue;
            }
            let is_same = |old: &&Value| {
                old.get(about) == entry.get(about) && old.get("controllerName") == entry.get("controllerName")
            };
            let old = list(before, key).find(is_same);
            let name = entry
                .get(about)
                .and_then(|about| about.get("name"))
                .and_then(Value::as_str);
            holders.push((entry, old, Some(format!("{called} {}", name.unwrap_or_default()))));
        }
    }
    holders
}

fn list<'a>(holder: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    holder.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn truncated(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

impl State {
    pub(super) fn note_events(&mut self, object: &ObjectName, uid: &str, changes: Vec<Change>) {
        let now = Instant::now();
        if self.events.recent.len() > 10 * MOST_WAITING {
            self.events.recent.retain(|_, at| now < *at + PER_OBJECT_AND_REASON);
        }
        for change in changes {
            let key = (object.clone(), change.reason.clone());
            let is_recent = self
                .events
                .recent
                .get(&key)
                .is_some_and(|at| now < *at + PER_OBJECT_AND_REASON);
            if is_recent || self.events.queue.len() >= MOST_WAITING {
                self.counters.events_dropped += 1;
                continue;
            }
            self.events.recent.insert(key, now);
            self.events.queue.push_back(Event {
                object: object.clone(),
                uid: uid.into(),
                change,
                time: Timestamp::now(),
            });
        }
    }
}

/// Publishes what waits, for as long as the writer exists.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut bucket = Bucket::new(RATE, BURST);
    let mut is_complaining = false;
    loop {
        let next = shared.lock().events.queue.pop_front();
        let Some(event) = next else {
            shared.events.notified().await;
            continue;
        };
        if let Err(wait) = bucket.take(Instant::now()) {
            tokio::time::sleep(wait).await;
        }
        match publish(&shared, &event).await {
            Ok(()) => {
                is_complaining = false;
                shared.lock().counters.events += 1;
            }
            Err(error) => {
                // An Event is a courtesy: it is not worth a second attempt.
                if !is_complaining {
                    is_complaining = true;
                    let (reason, message) = (failure::reason(&error), failure::message(&error));
                    tracing::warn!(reason, message, "Events cannot be published");
                }
                let mut state = shared.lock();
                *state
                    .counters
                    .failures
                    .entry(("Event", failure::reason(&error)))
                    .or_default() += 1;
            }
        }
    }
}

async fn publish(shared: &Shared, event: &Event) -> Result<(), ::kube::Error> {
    let resource = ApiResource {
        group: "events.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "events.k8s.io/v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
    };
    let Event {
        object,
        uid,
        change,
        time,
    } = event;
    let namespace = namespace_of(object);
    let api: Api<Raw> = Api::namespaced_with(shared.cluster.client(), namespace, &resource);
    let about = shared.cluster.served(object.kind);
    let regarding = json!({
        "apiVersion": about.api_version,
        "kind": about.kind,
        // A class has none, and says so by null.
        "namespace": Some(&object.namespace).filter(|namespace| !namespace.is_empty()),
        "name": object.name,
        "uid": uid,
    });
    let value = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": { "name": event_name(&object.name, *time), "namespace": namespace },
        "eventTime": format!("{time:.6}"),
        "reportingController": shared.settings.controller,
        "reportingInstance": truncated(&shared.settings.identity, 128),
        "action": "Plan",
        "reason": change.reason,
        "note": change.note,
        "type": if change.is_warning { "Warning" } else { "Normal" },
        "regarding": regarding,
    });
    let raw = Raw::of(value).map_err(::kube::Error::SerdeError)?;
    failure::within(PATIENCE, api.create(&PostParams::default(), &raw)).await?;
    Ok(())
}

/// Where an Event about an object is kept.
fn namespace_of(object: &ObjectName) -> &str {
    match object.kind {
        Kind::GatewayClass => "default",
        _ => &object.namespace,
    }
}

/// A legal name whatever the length of the object's.
fn event_name(object: &str, time: Timestamp) -> String {
    let start = truncated(object, 220).trim_end_matches(['-', '.']);
    format!("{start}.{:x}", time.as_nanosecond())
}

#[cfg(test)]
mod tests;
