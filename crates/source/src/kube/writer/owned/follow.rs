//! Watches the objects that carry our label, so that what is edited or deleted by hand is noticed.

use std::{sync::Arc, time::Duration};

use ahash::AHashSet;
use gatewright_world::desired::owned::{MANAGED_BY, MANAGER};

use super::{OwnedKind, OwnedName};
use crate::kube::{
    backoff::Backoff,
    failure,
    list_watch::{Event, Events, Selection},
    raw::Raw,
    writer::run::Shared,
};

/// Runs for as long as the writer exists.
pub(in crate::kube::writer) async fn follow(shared: Arc<Shared>, kind: OwnedKind) {
    let selection = Selection {
        labels: Some(format!("{MANAGED_BY}={MANAGER}")),
        ..Selection::default()
    };
    let mut events = Events::new(shared.cluster.client(), &kind.resource(), selection);
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
            Event::ListBegins => there.clear(),
            Event::Listed(raw) => {
                let name = name_of(&raw);
                there.insert(name.clone());
                state.owned_seen(name, raw);
            }
            Event::ListEnds => {
                is_complaining = false;
                state.owned_listed(kind, &std::mem::take(&mut there));
            }
            Event::Watching => backoff.reset(),
            Event::Applied(raw) => state.owned_seen(name_of(&raw), raw),
            Event::Deleted(raw) => state.owned_gone(&name_of(&raw)),
        }
        shared.wake(state);
    }
}
