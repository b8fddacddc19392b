//! Watches the objects that carry our label, so that what is edited or deleted by hand is noticed.

use std::{sync::Arc, time::Duration};

use ::kube::{
    Api,
    runtime::watcher::{Config, Event},
};
use ahash::AHashSet;
use gatewright_world::desired::owned::{MANAGED_BY, MANAGER};

use super::{OwnedKind, OwnedName};
use crate::kube::{backoff::Backoff, failure, raw::Raw, resume::Events, writer::run::Shared};

/// Runs for as long as the writer exists.
pub(in crate::kube::writer) async fn follow(shared: Arc<Shared>, kind: OwnedKind) {
    let config = Config::default().labels(&format!("{MANAGED_BY}={MANAGER}"));
    let api: Api<Raw> = Api::all_with(shared.cluster.client(), &kind.resource());
    let mut events = Events::new(api, config);
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(15));
    let mut there = AHashSet::new();
    let mut is_complaining = false;
    let name_of = |raw: &Raw| OwnedName {
        kind,
        namespace: raw.namespace().to_owned(),
        name: raw.name().to_owned(),
    };
    loop {
        let event = match events.next().await {
            Ok(event) => event,
            Err(error) => {
                let code = failure::code(&error);
                if matches!(code, Some(403 | 404)) {
                    if !is_complaining {
                        is_complaining = true;
                        let message = failure::message(&error);
                        tracing::warn!(kind = kind.kind, message, "objects of ours cannot be watched");
                    }
                    // What we may not list we may still be allowed to make.
                    let mut state = shared.lock();
                    state.owned_listed(kind, &AHashSet::new());
                    shared.wake(state);
                }
                let wait = failure::retry_after(&error).unwrap_or_default();
                tokio::time::sleep(backoff.next().max(wait)).await;
                continue;
            }
        };
        let mut state = shared.lock();
        match event {
            Event::Init => there.clear(),
            Event::InitApply(raw) => {
                let name = name_of(&raw);
                there.insert(name.clone());
                state.owned_seen(name, raw);
            }
            Event::InitDone => {
                backoff.reset();
                is_complaining = false;
                state.owned_listed(kind, &std::mem::take(&mut there));
            }
            Event::Apply(raw) => {
                backoff.reset();
                state.owned_seen(name_of(&raw), raw);
            }
            Event::Delete(raw) => state.owned_gone(&name_of(&raw)),
        }
        shared.wake(state);
    }
}
