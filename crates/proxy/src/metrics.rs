//! What the proxy counts, per worker, and the sum over workers that a scrape reads.
//!
//! Every counter has one writer, its worker, so counting is a load and a store without a lock or a shared cache line; a
//! scrape reads from outside. Names and formats of exported metrics are the binary's business: [`Metrics`] is numbers with
//! labels.

mod counters;
mod snapshot;

pub(crate) use counters::{BindCounters, Gauge, ListenerCounters, OpenStream, RouteCounters, WorkerMetrics};
pub(crate) use snapshot::merge;
pub use snapshot::{
    AnswerCount, BindConnections, Histogram, ListenerTraffic, Metrics, RequestCount, StreamTraffic, TlsFailureCount,
    UpstreamCounts,
};

#[cfg(test)]
mod tests;
