//! What the spine writes to the log, each thing once: when it begins and when it ends.

use gatewright_ir::{Fact, ListenerState};
use gatewright_source::files::Problem;
use gatewright_world::{World, origin};

use crate::{finding::Finding, view::View};

/// So many conditions are logged at once; the others are counted. `gatewright status` shows all.
const MOST_CONDITIONS: usize = 20;

/// Logs what a plane observed, if it is news. Called before the world takes it in.
pub(super) fn fact(world: &World, fact: &Fact) {
    match fact {
        Fact::Listener { origin, state, .. } => {
            if world.local_fact(origin).is_some_and(|known| known.state == *state) {
                return;
            }
            let listener = listener_text(origin);
            match state {
                ListenerState::Listening(addresses) => {
                    for address in addresses {
                        tracing::info!(%listener, %address, "listening");
                    }
                }
                ListenerState::Failed { address, failure } => {
                    tracing::error!(%listener, %address, %failure, "cannot listen");
                }
            }
        }
        Fact::Gone { origin } => {
            if world.local_fact(origin).is_some() {
                tracing::info!(listener = listener_text(origin), "closed");
            }
        }
    }
}

/// A listener as people write it: `shop/front/https`.
fn listener_text(origin: &gatewright_ir::Origin) -> String {
    match origin::parse(origin) {
        Some((gateway, Some(listener))) => format!("{}/{}/{listener}", gateway.namespace, gateway.name),
        _ => origin.to_string(),
    }
}

/// Logs problems of files that are new, and says how many of them are errors.
pub(super) fn problems(known: &[Problem], now: &[Problem]) -> u64 {
    let mut errors = 0;
    for problem in now.iter().filter(|problem| !known.contains(problem)) {
        let file = problem.file.display();
        let (code, line, column) = (problem.code, problem.line, problem.column);
        let text = Finding::from(problem);
        if problem.is_error() {
            errors += 1;
            tracing::error!(%code, %file, line, column, "{text}");
        } else {
            tracing::warn!(%code, %file, line, column, "{text}");
        }
    }
    let had_errors = known.iter().any(Problem::is_error);
    if had_errors && !now.iter().any(Problem::is_error) {
        tracing::info!("all files can be used again");
    }
    errors
}

/// Logs conditions that have become problems.
pub(super) fn conditions(fresh: &[Finding]) {
    for finding in fresh.iter().take(MOST_CONDITIONS) {
        let object = finding.object.as_deref().unwrap_or_default();
        let part = finding
            .part
            .as_ref()
            .map(|part| format!(", {part}"))
            .unwrap_or_default();
        tracing::warn!(code = finding.code, "{object}{part}: {}", finding.message);
    }
    if let Some(more) = fresh.len().checked_sub(MOST_CONDITIONS).filter(|more| *more > 0) {
        tracing::warn!("and {more} more; `gatewright status` shows them all");
    }
}

/// Logs the first load.
pub(super) fn loaded(view: &View) {
    let plan = view.plan_times.total();
    let Some(files) = &view.files else {
        let objects: usize = view.counts.iter().map(|(_, count)| count).sum();
        tracing::info!(objects, gateways = view.gateways.len(), ?plan, "the cluster is known");
        return;
    };
    let directory = files.directory.display();
    tracing::info!(%directory, files = files.files, objects = files.objects, ?plan, "loaded");
    if view.gateways.is_empty() {
        tracing::warn!("no Gateway can be served, so nothing listens; `gatewright check {directory}` says why");
    }
}

/// Why the process cannot count as ready, if it cannot. Only asked until it first is.
///
/// One listener that cannot be opened does not keep the others from their traffic; if none can be opened, sending traffic
/// here makes no sense.
pub(super) fn unready(world: &World, view: &View) -> Option<String> {
    let listeners: Vec<_> = view.gateways.values().flat_map(|gateway| &gateway.listeners).collect();
    let states: Vec<_> = listeners
        .iter()
        .map(|listener| world.local_fact(&listener.origin))
        .collect();
    let is_listening = |state: &ListenerState| matches!(state, ListenerState::Listening(_));
    if states.iter().any(Option::is_none) {
        return Some("listeners are being opened".to_owned());
    }
    let is_fine = states.is_empty() || states.iter().flatten().any(|fact| is_listening(&fact.state));
    (!is_fine).then(|| "none of the listeners could be opened".to_owned())
}
