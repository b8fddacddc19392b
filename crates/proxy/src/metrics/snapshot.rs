//! The sum over all workers, as plain numbers with labels.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed},
};

use ahash::AHashMap;
use gatewright_ir::{Origin, Transport};

use super::counters::{BOUNDS, BUCKETS, WorkerMetrics};
use crate::worker::BindAddress;

/// Everything the proxy counted since it started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Responses, by listener, route and status.
    pub requests: Vec<RequestCount>,
    /// Latency and bytes, by listener.
    pub listeners: Vec<ListenerTraffic>,
    /// Answers that the proxy gave itself, by listener and reason.
    pub answers: Vec<AnswerCount>,
    /// Connections and flows of datagrams that are routed as a whole, by listener.
    pub streams: Vec<StreamTraffic>,
    /// Connections that were refused, and datagrams that were dropped, by listener and reason.
    pub refused_streams: Vec<AnswerCount>,
    /// Connections of clients, by address.
    pub connections: Vec<BindConnections>,
    /// TLS handshakes that failed, by address and reason.
    pub tls_failures: Vec<TlsFailureCount>,
    /// Connections to backends.
    pub upstream: UpstreamCounts,
}

/// How many responses of one status a route gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCount {
    /// The listener.
    pub listener: Origin,
    /// The route, if the request belonged to one.
    pub route: Option<Origin>,
    /// The status; 499 when the client went away before the response began. A route with more than 64 different codes
    /// counts the others as one of them.
    pub status: u16,
    /// How many.
    pub count: u64,
}

/// What a listener handled.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerTraffic {
    /// The listener.
    pub listener: Origin,
    /// From the request's head to the response's last byte.
    pub latency: Histogram,
    /// Bytes of request bodies.
    pub received_bytes: u64,
    /// Bytes of response bodies.
    pub sent_bytes: u64,
}

/// Durations, sorted into buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The upper bound of each bucket in seconds and how many durations were at most that long; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all durations in seconds.
    pub sum: f64,
}

/// How often the proxy answered itself, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerCount {
    /// The listener.
    pub listener: Origin,
    /// A stable label of the reason.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

/// What a listener carried without looking into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamTraffic {
    /// The listener.
    pub listener: Origin,
    /// Connections, or flows of datagrams, open now.
    pub open: u64,
    /// Opened since the start.
    pub opened: u64,
    /// Bytes from clients.
    pub received_bytes: u64,
    /// Bytes to clients.
    pub sent_bytes: u64,
}

/// The connections of clients to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindConnections {
    /// The address.
    pub address: SocketAddr,
    /// What carries them; of datagrams, the flows of each client count.
    pub transport: Transport,
    /// Open now.
    pub open: u64,
    /// Accepted since the start.
    pub accepted: u64,
    /// Refused because there were too many.
    pub refused: u64,
}

/// TLS handshakes that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFailureCount {
    /// The address.
    pub address: SocketAddr,
    /// A stable label of the reason.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
}

/// Connections to backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCounts {
    /// Open now, used or not.
    pub open: u64,
    /// Opened since the start.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Requests that used a connection which was open already.
    pub reused: u64,
    /// Requests that were sent once more.
    pub retried: u64,
    /// Copies that were begun for mirrors.
    pub mirrored: u64,
    /// Copies for mirrors that were given up, begun or not: too slow, too many, or refused.
    pub mirrors_dropped: u64,
}

#[derive(Default)]
struct Sum {
    latency: [u64; BUCKETS],
    time: u64,
    received: u64,
    sent: u64,
    answers: AHashMap<&'static str, u64>,
    is_whole: bool,
    opened: u64,
    closed: u64,
    refused: AHashMap<&'static str, u64>,
    requests: AHashMap<(Option<Origin>, u16), u64>,
}

/// Adds up what the workers counted, in a stable order.
pub(crate) fn merge<'a>(workers: impl Iterator<Item = &'a Arc<WorkerMetrics>>) -> Metrics {
    let mut metrics = Metrics::default();
    let mut listeners: AHashMap<Origin, Sum> = AHashMap::default();
    let mut binds: AHashMap<BindAddress, BindConnections> = AHashMap::default();
    let mut failures: AHashMap<(SocketAddr, &'static str), u64> = AHashMap::default();
    for worker in workers {
        let upstream = &worker.upstream;
        metrics.upstream.opened += upstream.opened.get();
        metrics.upstream.open += upstream.opened.get().saturating_sub(upstream.closed.get());
        metrics.upstream.failed += upstream.failed.get();
        metrics.upstream.reused += upstream.reused.get();
        metrics.upstream.retried += upstream.retried.get();
        metrics.upstream.mirrored += upstream.mirrored.get();
        metrics.upstream.mirrors_dropped += upstream.mirrors_dropped.get();
        for (origin, counters) in &*worker.listeners.lock() {
            let sum = listeners.entry(origin.clone()).or_default();
            let (latency, time) = counters.latency();
            for (total, count) in sum.latency.iter_mut().zip(latency) {
                *total += count;
            }
            sum.time += time;
            sum.received += counters.received.get();
            sum.sent += counters.sent.get();
            for (reason, count) in counters.answers().filter(|(_, count)| *count > 0) {
                *sum.answers.entry(reason.label()).or_default() += count;
            }
            sum.is_whole |= counters.streams.is_whole.load(Relaxed);
            sum.opened += counters.streams.opened.get();
            sum.closed += counters.streams.closed.get();
            for (reason, count) in &*counters.streams.refused.lock() {
                *sum.refused.entry(reason).or_default() += count;
            }
            for (status, count) in counters.unrouted.counts() {
                *sum.requests.entry((None, status)).or_default() += count;
            }
            counters.each_route(|route, counters| {
                for (status, count) in counters.counts() {
                    *sum.requests.entry((Some(route.clone()), status)).or_default() += count;
                }
            });
        }
        for (address, counters) in &*worker.binds.lock() {
            let sum = binds.entry(*address).or_insert(BindConnections {
                address: address.socket,
                transport: address.transport,
                open: 0,
                accepted: 0,
                refused: 0,
            });
            sum.accepted += counters.accepted.get();
            sum.open += counters.accepted.get().saturating_sub(counters.closed.get());
            sum.refused += counters.refused.get();
            for (reason, count) in &*counters.tls_failures.lock() {
                *failures.entry((address.socket, reason)).or_default() += count;
            }
        }
    }
    for (listener, sum) in listeners {
        add_listener(&mut metrics, &listener, sum);
    }
    metrics.connections = binds.into_values().collect();
    metrics.tls_failures = failures
        .into_iter()
        .map(|((address, reason), count)| TlsFailureCount { address, reason, count })
        .collect();
    sort(&mut metrics);
    metrics
}

fn add_listener(metrics: &mut Metrics, listener: &Origin, sum: Sum) {
    let Sum {
        latency,
        time,
        received,
        sent,
        answers,
        is_whole,
        opened,
        closed,
        refused,
        requests,
    } = sum;
    let refused = refused.into_iter().map(|(reason, count)| AnswerCount {
        listener: listener.clone(),
        reason,
        count,
    });
    metrics.refused_streams.extend(refused);
    if is_whole {
        metrics.streams.push(StreamTraffic {
            listener: listener.clone(),
            open: opened.saturating_sub(closed),
            opened,
            received_bytes: received,
            sent_bytes: sent,
        });
        return;
    }
    let requests = requests.into_iter().map(|((route, status), count)| RequestCount {
        listener: listener.clone(),
        route,
        status,
        count,
    });
    metrics.requests.extend(requests);
    let answers = answers.into_iter().map(|(reason, count)| AnswerCount {
        listener: listener.clone(),
        reason,
        count,
    });
    metrics.answers.extend(answers);
    let mut so_far = 0;
    let bounds = BOUNDS.iter().map(|bound| seconds(*bound)).chain([f64::INFINITY]);
    let buckets = bounds.zip(latency).map(|(bound, count)| {
        so_far += count;
        (bound, so_far)
    });
    metrics.listeners.push(ListenerTraffic {
        listener: listener.clone(),
        latency: Histogram {
            buckets: buckets.collect(),
            sum: seconds(time),
        },
        received_bytes: received,
        sent_bytes: sent,
    });
}

#[expect(
    clippy::cast_precision_loss,
    reason = "beyond 2^53 microseconds, 285 years, a microsecond more or less is lost"
)]
fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}

fn sort(metrics: &mut Metrics) {
    metrics
        .requests
        .sort_by(|a, b| (&a.listener, &a.route, a.status).cmp(&(&b.listener, &b.route, b.status)));
    metrics.listeners.sort_by(|a, b| a.listener.cmp(&b.listener));
    metrics
        .answers
        .sort_by(|a, b| (&a.listener, a.reason).cmp(&(&b.listener, b.reason)));
    metrics.streams.sort_by(|a, b| a.listener.cmp(&b.listener));
    metrics
        .refused_streams
        .sort_by(|a, b| (&a.listener, a.reason).cmp(&(&b.listener, b.reason)));
    metrics.connections.sort_by_key(|bind| (bind.address, bind.transport));
    metrics
        .tls_failures
        .sort_by_key(|failure| (failure.address, failure.reason));
}
