//! The metrics of a part in a cluster: the watches, the writer, the replicas.

use super::{catalogue as family, exposition::Exposition};
use crate::{
    admin::document::ReplicaSummary,
    cluster::{ClusterSummary, WatchSummary, WriterSummary},
};

/// Renders what only a cluster has.
pub(super) fn render(out: &mut Exposition, cluster: &ClusterSummary, replicas: &[ReplicaSummary]) {
    watches(out, &cluster.watches);
    writer(out, &cluster.writer);
    out.family(&family::REPLICAS);
    out.sample(&[], replicas.len() as u64);
}

fn watches(out: &mut Exposition, watches: &[WatchSummary]) {
    out.family(&family::WATCHES);
    for watch in watches {
        out.sample(&[&watch.kind, &watch.namespace, &watch.state], 1);
    }
    out.family(&family::INVALID_OBJECTS);
    for watch in watches {
        out.sample(&[&watch.kind, &watch.namespace], watch.invalid as u64);
    }
    out.family(&family::LISTS);
    for watch in watches {
        out.sample(&[&watch.kind, &watch.namespace], watch.lists);
    }
    out.family(&family::WATCH_ERRORS);
    for watch in watches {
        out.sample(&[&watch.kind, &watch.namespace], watch.errors);
    }
}

fn writer(out: &mut Exposition, writer: &WriterSummary) {
    out.family(&family::WRITES);
    for (kind, action, count) in &writer.writes {
        out.sample(&[kind, action], *count);
    }
    out.family(&family::WRITE_FAILURES);
    for (kind, reason, count) in &writer.failures {
        out.sample(&[kind, reason], *count);
    }
    for (family, value) in [
        (&family::LEADER, u64::from(writer.is_leader)),
        (&family::WRITES_QUEUED, (writer.queued + writer.in_flight) as u64),
        (&family::WRITES_FAILING, writer.failing_count as u64),
        (&family::WRITE_CONFLICTS, writer.conflicts),
        (&family::SWEEPS, writer.sweeps),
        (&family::DRIFT, writer.drift),
        (&family::EVENTS, writer.events),
        (&family::EVENTS_DROPPED, writer.events_dropped),
    ] {
        out.family(family);
        out.sample(&[], value);
    }
}
