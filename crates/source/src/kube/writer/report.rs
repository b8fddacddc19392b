//! What the writer tells of itself, for metrics and the status page.

use std::collections::BTreeMap;

use serde::Serialize;

use super::state::{Counters, State};

/// So many failing objects are named.
const MOST_NAMED: usize = 100;

/// What has been written, and what cannot be.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriterReport {
    /// Whether this replica writes.
    pub is_leader: bool,
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs under way.
    pub in_flight: usize,
    /// Requests that changed something, by kind and what was done (`status`, `finalizer`, `apply`, `delete`).
    #[serde(skip)]
    pub writes: BTreeMap<(&'static str, &'static str), u64>,
    /// Requests that failed, by kind and reason.
    #[serde(skip)]
    pub failures: BTreeMap<(&'static str, String), u64>,
    /// Writes that met a newer version and were done again.
    pub conflicts: u64,
    /// Differences that only the regular comparison found. Expected: none.
    pub drift: u64,
    /// How often everything was compared.
    pub sweeps: u64,
    /// Events published.
    pub events: u64,
    /// Events that were not, because there were too many.
    pub events_dropped: u64,
    /// How many objects cannot be written now.
    pub failing_count: usize,
    /// The first of them.
    pub failing: Vec<Failing>,
}

/// An object that cannot be written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failing {
    /// Which, as kind, namespace and name.
    pub object: String,
    /// What is being done: `status`, `finalizer` or `apply`.
    pub action: &'static str,
    /// Why not, in one word.
    pub reason: String,
    /// Why not, in the words of the API server.
    pub message: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Since when.
    pub since: String,
}

impl WriterReport {
    /// All requests that changed something.
    pub fn total_writes(&self) -> u64 {
        self.writes.values().sum()
    }
}

impl State {
    pub(super) fn report(&self) -> WriterReport {
        let (queued, in_flight) = self.queue.len();
        let Counters {
            writes,
            failures,
            conflicts,
            drift,
            sweeps,
            events,
            events_dropped,
        } = self.counters.clone();
        let mut failing: Vec<Failing> = self
            .failures
            .iter()
            .map(|(job, failure)| Failing {
                object: job.object(),
                action: job.action(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                attempts: failure.attempts,
                since: failure.since.to_string(),
            })
            .collect();
        failing.sort_unstable_by(|one, other| one.object.cmp(&other.object));
        let failing_count = failing.len();
        failing.truncate(MOST_NAMED);
        WriterReport {
            is_leader: self.is_leader,
            queued,
            in_flight,
            writes,
            failures,
            conflicts,
            drift,
            sweeps,
            events,
            events_dropped,
            failing_count,
            failing,
        }
    }
}
