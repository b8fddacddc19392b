//! Compares everything now and then, although nothing says that it differs.
//!
//! Watches tell of every change, so this finds nothing; if it does, an event was lost or a fingerprint lies, and the count
//! says so. Reads only, in pages, and a difference counts only if it is still there after a moment.

use std::sync::Arc;

use ::kube::{Api, api::ListParams};
use ahash::AHashSet;
use gatewright_api::{Kind, ObjectName};

use super::{jobs::PATIENCE, queue::Job, run::Shared, state::State};
use crate::kube::{
    failure,
    observed::{Seen, is_observed},
    raw::Raw,
};

const PAGE: u32 = 500;

/// Runs for as long as the writer exists.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.settings.sweep).await;
        if shared.lock().is_active() {
            sweep(&shared).await;
        }
    }
}

/// An object that is not as it should be, or not as the watch told; with what the list shows of it.
type Suspect = (ObjectName, Option<Seen>);

async fn sweep(shared: &Shared) {
    let mut suspects: Vec<Suspect> = Vec::new();
    for &kind in Kind::ALL.iter().filter(|kind| is_observed(**kind)) {
        match list(shared, kind).await {
            Ok(found) => suspects.extend(found),
            Err(error) => {
                tracing::debug!(%kind, message = failure::message(&error), "not compared");
                return;
            }
        }
    }
    if !suspects.is_empty() {
        // What changes while it is being listed is no difference: everyone has this long to notice.
        tokio::time::sleep(shared.settings.sweep_moment).await;
    }
    let mut state = shared.lock();
    state.counters.sweeps += 1;
    for (name, listed) in suspects {
        let job = Job::Status(name.clone());
        let is_behind = is_behind(&state, &name, listed.as_ref());
        let is_different = !is_behind && state.needs_status(&name) && !state.queue.has(&job);
        if is_behind || is_different {
            state.counters.drift += 1;
            tracing::warn!(object = %name, is_behind, "differs from what the watch told");
        }
        if is_behind {
            state.observe(&name, listed);
        } else if is_different && state.is_active() {
            state.queue.push_gently(job);
        }
    }
    shared.wake(state);
}

/// Whether the list shows what the watch has not told.
fn is_behind(state: &State, name: &ObjectName, listed: Option<&Seen>) -> bool {
    let known = state.objects.get(name).and_then(|entry| entry.seen.as_ref());
    match (known, listed) {
        (Some(known), Some(listed)) => known.uid != listed.uid || known.is_older_than(listed),
        (known, listed) => known.is_some() != listed.is_some(),
    }
}

async fn list(shared: &Shared, kind: Kind) -> Result<Vec<Suspect>, ::kube::Error> {
    let namespaces = &shared.settings.namespaces;
    let resource = shared.cluster.served(kind);
    let api: Api<Raw> = Api::all_with(shared.cluster.client(), &resource);
    let mut parameters = ListParams::default().limit(PAGE);
    let mut suspects = Vec::new();
    let mut there = AHashSet::new();
    loop {
        let page = match failure::within(PATIENCE, api.list(&parameters)).await {
            Ok(page) => page,
            // Not there, or not for us: nothing to compare.
            Err(error) if matches!(failure::code(&error), Some(403 | 404)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let state = shared.lock();
        for raw in page.items {
            if kind == Kind::HttpRoute
                && !namespaces.is_empty()
                && !namespaces.iter().any(|name| name == raw.namespace())
            {
                continue;
            }
            let name = ObjectName {
                kind,
                namespace: raw.namespace().to_owned(),
                name: raw.name().to_owned(),
            };
            let listed = Seen::of(kind, &raw, &shared.settings.controller);
            if is_behind(&state, &name, Some(&listed)) || state.needs_status(&name) {
                suspects.push((name.clone(), Some(listed)));
            }
            there.insert(name);
        }
        drop(state);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => break,
        }
    }
    let state = shared.lock();
    let known = state
        .objects
        .iter()
        .filter(|(name, entry)| name.kind == kind && entry.seen.is_some());
    let gone = known.filter(|(name, _)| !there.contains(*name));
    suspects.extend(gone.map(|(name, _)| (name.clone(), None)));
    Ok(suspects)
}
