//! How the part in the cluster goes, for the admin API and the metrics.
//!
//! Asked when somebody looks, and made of what `source` counts; the spine is not involved.

use gatewright_source::kube::{KindState, Standing, States, Writer, WriterReport};
use serde::{Deserialize, Serialize};

use crate::{advice::Advice, finding::Finding};

/// So many objects that cannot be written are named among the problems.
const MOST_FAILING: usize = 20;

/// Reads the watches and the writer.
#[derive(Clone)]
pub(crate) struct Monitor {
    server: String,
    identity: String,
    states: States,
    writer: Writer,
}

/// The cluster, as `/status` shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterSummary {
    /// The API server.
    pub(crate) server: String,
    /// Which replica this is.
    pub(crate) identity: String,
    pub(crate) watches: Vec<WatchSummary>,
    pub(crate) writer: WriterSummary,
}

/// The watch of a kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WatchSummary {
    pub(crate) kind: String,
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    pub(crate) state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) objects: usize,
    pub(crate) invalid: usize,
    pub(crate) lists: u64,
    pub(crate) errors: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
}

/// The writer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WriterSummary {
    /// Whether this replica writes.
    pub(crate) is_leader: bool,
    pub(crate) queued: usize,
    pub(crate) in_flight: usize,
    /// Requests that changed something, by kind and action.
    pub(crate) writes: Vec<(String, String, u64)>,
    /// Requests that failed, by kind and reason.
    pub(crate) failures: Vec<(String, String, u64)>,
    pub(crate) conflicts: u64,
    pub(crate) drift: u64,
    pub(crate) sweeps: u64,
    pub(crate) events: u64,
    pub(crate) events_dropped: u64,
    pub(crate) failing_count: usize,
    pub(crate) failing: Vec<FailingSummary>,
}

/// An object that cannot be written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FailingSummary {
    pub(crate) object: String,
    pub(crate) action: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) attempts: u32,
    pub(crate) since: String,
}

impl Monitor {
    pub(super) fn new(server: &str, identity: &str, states: States, writer: Writer) -> Self {
        Self {
            server: server.to_owned(),
            identity: identity.to_owned(),
            states,
            writer,
        }
    }

    /// How it goes now.
    pub(crate) fn read(&self) -> ClusterSummary {
        ClusterSummary {
            server: self.server.clone(),
            identity: self.identity.clone(),
            watches: self.states.get().into_iter().map(WatchSummary::from).collect(),
            writer: WriterSummary::from(self.writer.report()),
        }
    }

    /// What somebody should mend.
    pub(crate) fn problems(&self) -> Vec<Finding> {
        let mut findings = watch_problems(&self.server, &self.states.get());
        let report = self.writer.report();
        for failing in report.failing.iter().take(MOST_FAILING) {
            let message = format!(
                "{} cannot be written since {} ({} attempts, {}): {}",
                failing.action, failing.since, failing.attempts, failing.reason, failing.message
            );
            let mut finding = Advice::CannotWrite.finding(message);
            finding.object = Some(failing.object.clone());
            findings.push(finding);
        }
        findings
    }
}

fn watch_problems(server: &str, states: &[KindState]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut is_away = false;
    for state in states {
        let kind = state.kind;
        let place = state
            .namespace
            .as_ref()
            .map(|namespace| format!(" in namespace {namespace}"))
            .unwrap_or_default();
        let error = state.last_error.as_deref().unwrap_or_default();
        match state.standing {
            Standing::Absent => findings.push(Advice::KindMissing.finding(format!(
                "the cluster does not know {kind} of {}; it counts as empty",
                kind.group()
            ))),
            Standing::Forbidden => findings
                .push(Advice::KindForbidden.finding(format!("{kind}{place} may not be listed and watched: {error}"))),
            Standing::Unreachable if !is_away => {
                is_away = true;
                let message = format!("the API server at {server} does not answer: {error}");
                findings.push(Advice::ServerAway.finding(message));
            }
            // One line for all kinds.
            Standing::Unreachable | Standing::Listing | Standing::Watching => {}
        }
    }
    findings
}

impl From<KindState> for WatchSummary {
    fn from(state: KindState) -> Self {
        let KindState {
            kind,
            namespace,
            standing,
            version,
            objects,
            invalid,
            lists,
            errors,
            last_error,
        } = state;
        Self {
            kind: kind.as_str().to_owned(),
            namespace: namespace.unwrap_or_default(),
            state: standing.as_str().to_owned(),
            version: version.map(str::to_owned),
            objects,
            invalid,
            lists,
            errors,
            last_error,
        }
    }
}

impl From<WriterReport> for WriterSummary {
    fn from(report: WriterReport) -> Self {
        let WriterReport {
            is_leader,
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
        } = report;
        let writes = writes
            .into_iter()
            .map(|((kind, action), count)| (kind.to_owned(), action.to_owned(), count));
        let failures = failures
            .into_iter()
            .map(|((kind, reason), count)| (kind.to_owned(), reason, count));
        let failing = failing.into_iter().map(|failing| FailingSummary {
            object: failing.object,
            action: failing.action.to_owned(),
            reason: failing.reason,
            message: failing.message,
            attempts: failing.attempts,
            since: failing.since,
        });
        Self {
            is_leader,
            queued,
            in_flight,
            writes: writes.collect(),
            failures: failures.collect(),
            conflicts,
            drift,
            sweeps,
            events,
            events_dropped,
            failing_count,
            failing: failing.collect(),
        }
    }
}
