//! Writes the status of one object: reads what it shows, puts in what is ours, and only if nobody else wrote meanwhile.
//!
//! `status.parents` is one list that several controllers share, and the API server knows no owner of an entry. So every
//! write names the version it was made from; if that is no longer the newest, it is made again from the newest.

use std::sync::Arc;

use ::kube::{
    Api,
    api::{GetParams, Patch, PatchParams},
};
use gatewright_api::{Kind, ObjectName};
use gatewright_world::desired::{self, Stamps, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    entry::Want,
    events,
    jobs::{self, FIELD_MANAGER, MOST_CONFLICTS, PATIENCE, Trouble},
    run::Shared,
    shown,
};
use crate::kube::{failure, observed::Seen, raw::Raw};

/// A status as it stands in Kubernetes, its times to be filled in.
pub(super) fn render(status: &Status, controller: &str) -> Value {
    desired::render(status, controller, &Stamps::default())
}

/// What to write.
enum Wish {
    Status(Arc<Status>, u64),
    /// Nothing of ours; on a Gateway, ListenerSet or class the state in which nobody has looked at it yet.
    Nothing,
}

impl Wish {
    fn rendered(&self, kind: Kind, controller: &str) -> Value {
        match (self, kind.shared_status()) {
            (Self::Status(status, _), _) => render(status, controller),
            (Self::Nothing, Some((list, _))) => json!({ list: [] }),
            (Self::Nothing, None) => {
                let pending = |kind: &str| {
                    json!({
                        "type": kind,
                        "status": "Unknown",
                        "reason": "Pending",
                        "message": "Waiting for controller",
                    })
                };
                let has_listeners = matches!(kind, Kind::Gateway | Kind::ListenerSet);
                let conditions = [Some("Accepted"), has_listeners.then_some("Programmed")];
                json!({ "conditions": conditions.into_iter().flatten().map(pending).collect::<Vec<_>>() })
            }
        }
    }
}

/// Makes one object show what is wanted of it.
pub(super) async fn write(shared: &Shared, name: &ObjectName) -> Result<(), Trouble> {
    let Some((wish, seen)) = due(shared, name) else {
        return Ok(());
    };
    let api = jobs::api(shared, name);
    let controller = shared.settings.controller.as_str();
    let wanted = wish.rendered(name.kind, controller);
    let now = now();
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let mut base = if seen.is_blank {
        // Nothing to preserve: what was seen is enough to write from.
        Some((Value::Null, seen.resource_version.to_string()))
    } else {
        None
    };
    let mut is_certain = false;
    for _ in 0..MOST_CONFLICTS {
        let from = match base.take() {
            Some(from) => Some(from),
            None => read(shared, &api, name, &wish, &seen, is_certain).await?,
        };
        let Some((shown, version)) = from else {
            return Ok(());
        };
        let merged = shown::merge(name.kind, &shown, &wanted, controller, &now);
        let change = json!({
            "metadata": { "uid": seen.uid, "resourceVersion": version },
            "status": shown::patch(&shown, merged),
        });
        let change = Patch::Merge(&change);
        let request = api.patch_status(&name.name, &parameters, &change);
        match failure::within(PATIENCE, request).await {
            Ok(written) => {
                finish(shared, name, &wish, &shown, &written);
                return Ok(());
            }
            Err(error) if jobs::is_gone(&error) => return Ok(()),
            Err(error) if jobs::is_conflict(&error) => {
                shared.lock().counters.conflicts += 1;
                is_certain = true;
            }
            Err(error) => return Err(Trouble::of(&error)),
        }
    }
    Err(Trouble::new("Conflict", "somebody else keeps writing the same object"))
}

/// The status and version to write from; nothing when the object is gone or already shows what is wanted.
async fn read(
    shared: &Shared,
    api: &Api<Raw>,
    name: &ObjectName,
    wish: &Wish,
    seen: &Seen,
    is_certain: bool,
) -> Result<Option<(Value, String)>, Trouble> {
    // What was seen is in the server's cache; after a conflict only the newest will do.
    let asked = if is_certain {
        GetParams::default()
    } else {
        GetParams::at(&seen.resource_version)
    };
    match failure::within(PATIENCE, api.get_with(&name.name, &asked)).await {
        Ok(found) if found.uid() != &*seen.uid => Ok(None),
        Ok(found) => {
            let current = Seen::of(name.kind, &found, &shared.settings.controller);
            if is_shown(name.kind, wish, &current) {
                record(shared, name, current, None);
                return Ok(None);
            }
            Ok(Some((found.status().clone(), found.resource_version().to_owned())))
        }
        Err(error) if jobs::is_gone(&error) => Ok(None),
        Err(error) => Err(Trouble::of(&error)),
    }
}

/// What is wanted and shown now, if the two differ.
fn due(shared: &Shared, name: &ObjectName) -> Option<(Wish, Seen)> {
    let state = shared.lock();
    let entry = state.objects.get(name)?;
    if !state.is_active() || !entry.needs_status(name.kind) {
        return None;
    }
    let wish = match &entry.want {
        Want::Status(status, fingerprint) => Wish::Status(status.clone(), *fingerprint),
        Want::Unsaid | Want::Nothing { .. } => Wish::Nothing,
    };
    Some((wish, entry.seen.clone()?))
}

fn is_shown(kind: Kind, wish: &Wish, current: &Seen) -> bool {
    match wish {
        Wish::Status(_, fingerprint) => current.ours == *fingerprint,
        Wish::Nothing => kind.shared_status().is_some() && !current.has_ours,
    }
}

fn finish(shared: &Shared, name: &ObjectName, wish: &Wish, before: &Value, written: &Raw) {
    let controller = shared.settings.controller.as_str();
    let seen = Seen::of(name.kind, written, controller);
    let uid = seen.uid.clone();
    let made = match wish {
        Wish::Status(_, fingerprint) => Some((*fingerprint, seen.ours)),
        Wish::Nothing => None,
    };
    record(shared, name, seen, made);
    let mut state = shared.lock();
    state.count_write(name.kind.as_str(), "status");
    if let Wish::Nothing = wish
        && let Some(entry) = state.objects.get_mut(name)
        && let Want::Nothing { was } = &mut entry.want
    {
        *was = None;
    }
    if let Wish::Status(status, _) = wish
        && shared.settings.has_events
    {
        let changes = events::changes(status, before, written.status(), controller);
        state.note_events(name, &uid, changes);
        shared.events.notify_one();
    }
}

fn record(shared: &Shared, name: &ObjectName, seen: Seen, made: Option<(u64, u64)>) {
    let mut state = shared.lock();
    if let Some(entry) = state.objects.get_mut(name) {
        if made.is_some() {
            entry.made = made;
        }
        if entry.seen.as_ref().is_none_or(|known| !seen.is_older_than(known)) {
            entry.seen = Some(seen);
        }
    }
}

/// The time of a transition, to the second as Kubernetes has it.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    seconds.to_string()
}
