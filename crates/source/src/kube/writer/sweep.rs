//! Compares everything now and then, although nothing says that it differs: statuses and the objects we make.
//!
//! Watches tell of every change, so this finds nothing; if it does, an event was lost or a fingerprint lies, and the count
//! says so. Reads only, in pages, and a difference counts only if it is still there after a moment.

use std::sync::Arc;

use ::kube::{
    Api, Error,
    api::{ApiResource, ListParams},
};
use ahash::AHashSet;
use gatewright_api::{Kind, ObjectName};

use super::{
    OwnedKind, OwnedName,
    jobs::{self, PATIENCE},
    owned,
    queue::Job,
    run::Shared,
    state::State,
};
use crate::kube::{failure, observed::Seen, raw::Raw, reach::reach};

const PAGE: u32 = 500;

/// Runs for as long as the writer exists.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.settings.sweep).await;
        if shared.lock().is_active()
            && let Err(error) = sweep(&shared).await
        {
            tracing::debug!(message = failure::message(&error), "not compared");
        }
    }
}

async fn sweep(shared: &Shared) -> Result<(), Error> {
    let mut statuses: Vec<ObjectName> = Vec::new();
    for &kind in Kind::ALL.iter().filter(|kind| kind.has_status()) {
        statuses.extend(compare_statuses(shared, kind).await?);
    }
    let mut objects: Vec<OwnedName> = Vec::new();
    for kind in &shared.settings.owned {
        objects.extend(compare_owned(shared, *kind).await?);
    }
    if !(statuses.is_empty() && objects.is_empty()) {
        // What changes while it is being listed is no difference: everyone has this long to notice. Then each is looked at
        // again.
        tokio::time::sleep(shared.settings.sweep_moment).await;
    }
    for name in statuses {
        let found = failure::within(PATIENCE, jobs::api(shared, &name).get_opt(&name.name)).await?;
        let found = found.map(|raw| Seen::of(name.kind, &raw, &shared.settings.controller));
        judge_status(shared, &name, found);
    }
    for name in objects {
        let api: Api<Raw> = Api::namespaced_with(shared.cluster.client(), &name.namespace, &name.kind.resource());
        let found = failure::within(PATIENCE, api.get_opt(&name.name)).await?;
        judge_owned(shared, &name, found.filter(owned::has_label));
    }
    shared.lock().counters.sweeps += 1;
    Ok(())
}

fn judge_status(shared: &Shared, name: &ObjectName, found: Option<Seen>) {
    let mut state = shared.lock();
    let job = Job::Status(name.clone());
    let is_behind = is_behind(&state, name, found.as_ref());
    let is_different = !is_behind && state.needs_status(name) && !state.queue.has(&job);
    if is_behind || is_different {
        state.counters.drift += 1;
        tracing::warn!(object = %name, is_behind, "differs from what the watch told");
    }
    if is_behind {
        state.observe(name, found);
    } else if is_different && state.is_active() {
        state.queue.push_gently(job);
    }
    shared.wake(state);
}

fn judge_owned(shared: &Shared, name: &OwnedName, found: Option<Raw>) {
    let mut state = shared.lock();
    let is_behind = state.owned_is_behind(name, found.as_ref());
    let is_amiss = !is_behind && is_amiss(shared, &mut state, name);
    if is_behind || is_amiss {
        state.counters.drift += 1;
        tracing::warn!(object = %name, is_behind, "differs from what the watch told");
    }
    if is_behind {
        state.owned_catch_up(name, found);
    } else if is_amiss {
        state.queue.push_gently(Job::Owned(name.clone()));
    }
    shared.wake(state);
}

fn is_amiss(shared: &Shared, state: &mut State, name: &OwnedName) -> bool {
    state.owned_is_amiss(name, &shared.cluster, &shared.settings.controller)
}

/// Whether the list shows what the watch has not told.
fn is_behind(state: &State, name: &ObjectName, listed: Option<&Seen>) -> bool {
    let known = state.objects.get(name).and_then(|entry| entry.seen.as_ref());
    match (known, listed) {
        (Some(known), Some(listed)) => known.uid != listed.uid || known.is_older_than(listed),
        (known, listed) => known.is_some() != listed.is_some(),
    }
}

/// Objects that do not show what they should, or are not as the watch told.
async fn compare_statuses(shared: &Shared, kind: Kind) -> Result<Vec<ObjectName>, Error> {
    let resource = shared.cluster.served(kind);
    let namespaces = &shared.settings.namespaces;
    // The same places that the watch reads.
    let places = match kind {
        _ if kind.is_route() && !namespaces.is_empty() => namespaces.iter().cloned().map(Some).collect(),
        _ if kind.is_namespaced() => reach(&shared.cluster.client(), &resource, namespaces).await,
        _ => vec![None],
    };
    let mut suspects = Vec::new();
    let mut there = AHashSet::new();
    let is_complete = list(shared, &resource, places, None, |state, raw| {
        let name = ObjectName {
            kind,
            namespace: raw.namespace().to_owned(),
            name: raw.name().to_owned(),
        };
        let listed = Seen::of(kind, &raw, &shared.settings.controller);
        if is_behind(state, &name, Some(&listed)) || state.needs_status(&name) {
            suspects.push(name.clone());
        }
        there.insert(name);
    })
    .await?;
    if !is_complete {
        return Ok(Vec::new());
    }
    let state = shared.lock();
    let known = state
        .objects
        .iter()
        .filter(|(name, entry)| name.kind == kind && entry.seen.is_some());
    let gone = known.filter(|(name, _)| !there.contains(*name));
    suspects.extend(gone.map(|(name, _)| name.clone()));
    Ok(suspects)
}

/// Objects of ours that are not as they should be, or not as the watch told.
async fn compare_owned(shared: &Shared, kind: OwnedKind) -> Result<Vec<OwnedName>, Error> {
    let resource = kind.resource();
    let places = reach(&shared.cluster.client(), &resource, &shared.settings.namespaces).await;
    let mut suspects = Vec::new();
    let mut there = AHashSet::new();
    let labels = Some(owned::selector());
    let is_complete = list(shared, &resource, places, labels, |state, raw| {
        let name = OwnedName::of(kind, &raw);
        if state.owned_is_behind(&name, Some(&raw)) || is_amiss(shared, state, &name) {
            suspects.push(name.clone());
        }
        there.insert(name);
    })
    .await?;
    if !is_complete {
        return Ok(Vec::new());
    }
    let mut state = shared.lock();
    let absent: Vec<OwnedName> = state
        .owned_of(kind)
        .filter(|name| !there.contains(*name))
        .cloned()
        .collect();
    let absent = absent.into_iter();
    suspects.extend(absent.filter(|name| state.owned_is_behind(name, None) || is_amiss(shared, &mut state, name)));
    Ok(suspects)
}

/// Reads everything of a kind in some places; says no when it is not there, or not for us.
async fn list(
    shared: &Shared,
    resource: &ApiResource,
    places: Vec<Option<String>>,
    labels: Option<String>,
    mut each: impl FnMut(&mut State, Raw),
) -> Result<bool, Error> {
    for place in places {
        let client = shared.cluster.client();
        let api: Api<Raw> = match place {
            Some(namespace) => Api::namespaced_with(client, &namespace, resource),
            None => Api::all_with(client, resource),
        };
        let mut parameters = ListParams {
            label_selector: labels.clone(),
            ..ListParams::default().limit(PAGE)
        };
        loop {
            let page = match failure::within(PATIENCE, api.list(&parameters)).await {
                Ok(page) => page,
                Err(error) if matches!(failure::code(&error), Some(403 | 404)) => return Ok(false),
                Err(error) => return Err(error),
            };
            let mut state = shared.lock();
            for raw in page.items {
                each(&mut state, raw);
            }
            drop(state);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => break,
            }
        }
    }
    Ok(true)
}
