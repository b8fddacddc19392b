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
    reach::reach,
    writer::run::Shared,
};

/// The label by which our objects are found.
pub(in crate::kube::writer) fn selector() -> String {
    format!("{MANAGED_BY}={MANAGER}")
}

/// Whether an object has it.
pub(in crate::kube::writer) fn has_label(raw: &Raw) -> bool {
    let labels = raw.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(MANAGED_BY)).map(String::as_str) == Some(MANAGER)
}

/// Runs for as long as the writer exists.
pub(in crate::kube::writer) async fn follow(shared: Arc<Shared>, kind: OwnedKind) {
    let client = shared.cluster.client();
    let places = reach(&client, &kind.resource(), &shared.settings.namespaces).await;
    let each = places.into_iter().map(|place| follow_in(&shared, kind, place));
    futures::future::join_all(each).await;
}

async fn follow_in(shared: &Shared, kind: OwnedKind, place: Option<String>) {
    let selection = Selection {
        namespace: place.clone(),
        labels: Some(selector()),
        ..Selection::default()
    };
    let mut events = Events::new(shared.cluster.client(), &kind.resource(), selection);
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(15));
    let mut there = AHashSet::new();
    let mut is_complaining = false;
    let name_of = |raw: &Raw| OwnedName::of(kind, raw);
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
                    state.owned_listed(kind, place.as_deref(), &AHashSet::new());
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
                state.owned_listed(kind, place.as_deref(), &std::mem::take(&mut there));
            }
            Event::Watching => backoff.reset(),
            Event::Applied(raw) => state.owned_seen(name_of(&raw), raw),
            Event::Deleted(raw) => state.owned_gone(&name_of(&raw)),
        }
        shared.wake(state);
    }
}
