//! Adds and removes the finalizer that keeps a GatewayClass for as long as a Gateway uses it.

use ::kube::api::{Patch, PatchParams};
use gatewright_api::ObjectName;
use serde_json::json;

use super::{
    entry::{Entry, FINALIZER},
    jobs::{self, FIELD_MANAGER, MOST_CONFLICTS, PATIENCE, Trouble},
    run::Shared,
};
use crate::kube::{failure, observed::Seen};

/// Makes one class have the finalizer, or not.
pub(super) async fn write(shared: &Shared, name: &ObjectName) -> Result<(), Trouble> {
    let Some((mut seen, keep)) = due(shared, name) else {
        return Ok(());
    };
    let api = jobs::api(shared, name);
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    for _ in 0..MOST_CONFLICTS {
        let mut finalizers: Vec<&str> = seen.finalizers.iter().map(|finalizer| &**finalizer).collect();
        finalizers.retain(|finalizer| *finalizer != FINALIZER);
        if keep {
            finalizers.push(FINALIZER);
        }
        let change = json!({
            "metadata": { "uid": seen.uid, "resourceVersion": seen.resource_version, "finalizers": finalizers },
        });
        let change = Patch::Merge(&change);
        let request = api.patch(&name.name, &parameters, &change);
        match failure::within(PATIENCE, request).await {
            Ok(written) => {
                let mut state = shared.lock();
                state.count_write(name.kind.as_str(), "finalizer");
                let seen = Seen::of(name.kind, &written, &shared.settings.controller);
                state.observe(name, Some(seen));
                return Ok(());
            }
            Err(error) if jobs::is_gone(&error) => return Ok(()),
            Err(error) if jobs::is_conflict(&error) => shared.lock().counters.conflicts += 1,
            Err(error) => return Err(Trouble::of(&error)),
        }
        match failure::within(PATIENCE, api.get(&name.name)).await {
            Ok(found) => {
                let current = Seen::of(name.kind, &found, &shared.settings.controller);
                let uid = current.uid.clone();
                shared.lock().observe(name, Some(current.clone()));
                if uid != seen.uid || due(shared, name).is_none() {
                    return Ok(());
                }
                seen = current;
            }
            Err(error) if jobs::is_gone(&error) => return Ok(()),
            Err(error) => return Err(Trouble::of(&error)),
        }
    }
    Err(Trouble::new("Conflict", "somebody else keeps writing the same object"))
}

fn due(shared: &Shared, name: &ObjectName) -> Option<(Seen, bool)> {
    let state = shared.lock();
    let entry = state.objects.get(name).filter(|entry| Entry::needs_finalizer(entry))?;
    if !state.is_active() {
        return None;
    }
    Some((entry.seen.clone()?, entry.keep?))
}
