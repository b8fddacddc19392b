//! Compares everything now and then, although nothing says that it differs.
//!
//! Watches tell of every change, so this finds nothing; if it does, an event was lost or a fingerprint lies, and the count
//! says so. Reads only, in pages, and a difference counts only if it is still there after a moment.

use std::{sync::Arc, time::Duration};

use ::kube::{Api, api::ListParams};
use gatewright_api::{Kind, ObjectName};

use super::{jobs::PATIENCE, queue::Job, run::Shared};
use crate::kube::{
    failure,
    observed::{Seen, is_observed},
    raw::Raw,
};

const PAGE: u32 = 500;
/// What changes while it is being listed is no difference: everyone has this long to notice.
const MOMENT: Duration = Duration::from_secs(10);

/// Runs for as long as the writer exists.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(shared.settings.sweep).await;
        if shared.lock().is_active() {
            sweep(&shared, MOMENT).await;
        }
    }
}

async fn sweep(shared: &Shared, moment: Duration) {
    let mut suspects = Vec::new();
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
        tokio::time::sleep(moment).await;
    }
    let mut state = shared.lock();
    state.counters.sweeps += 1;
    for (name, listed) in suspects {
        let job = Job::Status(name.clone());
        let known = state.objects.get(&name).and_then(|entry| entry.seen.as_ref());
        let is_behind = known.is_none_or(|known| known.is_older_than(&listed));
        let is_different = !is_behind && state.needs_status(&name) && !state.queue.has(&job);
        if is_behind || is_different {
            state.counters.drift += 1;
            tracing::warn!(object = %name, is_behind, "differs from what the watch told");
        }
        if is_behind && state.objects.contains_key(&name) {
            state.observe(name, Some(listed));
        } else if is_different && state.is_active() {
            state.queue.push_gently(job);
        }
    }
    shared.wake(state);
}

/// Objects that are not as they should be, or newer than what is known.
async fn list(shared: &Shared, kind: Kind) -> Result<Vec<(ObjectName, Seen)>, ::kube::Error> {
    let resource = shared.cluster.served(kind);
    let api: Api<Raw> = Api::all_with(shared.cluster.client(), &resource);
    let mut parameters = ListParams::default().limit(PAGE);
    let mut suspects = Vec::new();
    loop {
        let page = match failure::within(PATIENCE, api.list(&parameters)).await {
            Ok(page) => page,
            // Not there, or not for us: nothing to compare.
            Err(error) if matches!(failure::code(&error), Some(403 | 404)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let state = shared.lock();
        for raw in page.items {
            let name = ObjectName {
                kind,
                namespace: raw.namespace().to_owned(),
                name: raw.name().to_owned(),
            };
            let Some(entry) = state.objects.get(&name) else {
                continue;
            };
            let listed = Seen::of(kind, &raw, &shared.settings.controller);
            let is_behind = entry.seen.as_ref().is_none_or(|known| known.is_older_than(&listed));
            if is_behind || entry.needs_status(kind) {
                suspects.push((name, listed));
            }
        }
        drop(state);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters = parameters.continue_token(&token),
            None => return Ok(suspects),
        }
    }
}
