//! The counters that one worker writes and anybody reads.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ahash::AHashMap;
use gatewright_ir::Origin;
use parking_lot::Mutex;

use crate::{forward::Reason, worker::BindAddress};

/// Upper bounds of the latency buckets in microseconds; what is slower than the last counts in one more bucket.
pub(super) const BOUNDS: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];
/// Number of latency buckets.
pub(super) const BUCKETS: usize = BOUNDS.len() + 1;

/// How long the counters of a route without requests are kept.
const FORGET_AFTER: Duration = Duration::from_hours(1);

/// A number that only grows and that only one thread writes.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to the number. Only the owning worker may call this.
    pub(crate) fn add(&self, count: u64) {
        // One writer: no read-modify-write is needed.
        self.0.store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// The number.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Everything that one worker counts.
#[derive(Debug, Default)]
pub(crate) struct WorkerMetrics {
    pub(super) upstream: Arc<UpstreamCounters>,
    /// Locked when a listener appears and when metrics are read, never for a request.
    pub(super) listeners: Mutex<AHashMap<Origin, Arc<ListenerCounters>>>,
    pub(super) binds: Mutex<AHashMap<BindAddress, Arc<BindCounters>>>,
}

/// What is counted about connections to backends.
#[derive(Debug, Default)]
pub(crate) struct UpstreamCounters {
    pub(super) opened: Counter,
    pub(super) closed: Counter,
    pub(super) failed: Counter,
    pub(super) reused: Counter,
    pub(super) retried: Counter,
    pub(super) mirrored: Counter,
    pub(super) mirrors_dropped: Counter,
}

/// What is counted about the connections of clients to one address.
#[derive(Debug, Default)]
pub(crate) struct BindCounters {
    /// Connections accepted.
    pub(crate) accepted: Counter,
    /// Of these, connections closed again.
    pub(crate) closed: Counter,
    /// Connections refused because there were too many.
    pub(crate) refused: Counter,
    pub(super) tls_failures: Mutex<AHashMap<&'static str, u64>>,
}

/// What is counted about the requests of one listener.
#[derive(Debug)]
pub(crate) struct ListenerCounters {
    latency: [Counter; BUCKETS],
    latency_sum: Counter,
    answers: Vec<Counter>,
    /// Bytes of requests, as far as they were bodies.
    pub(crate) received: Counter,
    /// Bytes of responses, as far as they were bodies.
    pub(crate) sent: Counter,
    /// Connections and flows of datagrams that are routed as a whole. Their bytes are received and sent ones, too.
    pub(crate) streams: Arc<StreamCounters>,
    /// Requests that belong to no route.
    pub(crate) unrouted: RouteCounters,
    routes: Mutex<AHashMap<Origin, Counted>>,
}

/// What is counted about connections and flows of datagrams that are routed as a whole.
#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    /// Whether the listener routes connections, or datagrams, and not requests.
    pub(super) is_whole: AtomicBool,
    pub(super) opened: Counter,
    pub(super) closed: Counter,
    /// Locked when something is refused and when metrics are read.
    pub(super) refused: Mutex<AHashMap<&'static str, u64>>,
}

/// Counts an open connection or flow until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(Arc<StreamCounters>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.closed.add(1);
    }
}

impl StreamCounters {
    /// Says that the listener routes connections, or datagrams, and not requests.
    pub(crate) fn mark_whole(&self) {
        self.is_whole.store(true, Relaxed);
    }

    /// Counts one that has a backend.
    pub(crate) fn open(self: &Arc<Self>) -> OpenStream {
        self.opened.add(1);
        OpenStream(Arc::clone(self))
    }

    /// Counts one that was refused, or a datagram that was dropped.
    pub(crate) fn refused(&self, reason: &'static str) {
        *self.refused.lock().entry(reason).or_default() += 1;
    }
}

/// A route that had requests.
#[derive(Debug)]
struct Counted {
    counters: Arc<RouteCounters>,
    /// When a worker last began to count for it.
    begun: Instant,
}

/// The requests of one route, by status.
#[derive(Debug, Default)]
pub(crate) struct RouteCounters {
    first: [StatusCount; 4],
    more: OnceLock<Box<[StatusCount; 60]>>,
}

#[derive(Debug)]
struct StatusCount {
    /// Zero when unused.
    status: AtomicU16,
    count: Counter,
}

impl Default for StatusCount {
    fn default() -> Self {
        Self {
            status: AtomicU16::new(0),
            count: Counter::default(),
        }
    }
}

/// Counts an open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct Gauge(Arc<UpstreamCounters>);

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.closed.add(1);
    }
}

impl WorkerMetrics {
    /// Counts a connection to a backend.
    pub(crate) fn upstream_opened(&self) -> Gauge {
        self.upstream.opened.add(1);
        Gauge(Arc::clone(&self.upstream))
    }

    /// Counts a connection to a backend that could not be opened.
    pub(crate) fn upstream_failed(&self) {
        self.upstream.failed.add(1);
    }

    /// Counts a request on a connection that was open already.
    pub(crate) fn upstream_reused(&self) {
        self.upstream.reused.add(1);
    }

    /// Counts a request that was sent once more.
    pub(crate) fn upstream_retried(&self) {
        self.upstream.retried.add(1);
    }

    /// Counts a copy that was begun for a mirror.
    pub(crate) fn mirrored(&self) {
        self.upstream.mirrored.add(1);
    }

    /// Counts a copy for a mirror that was given up.
    pub(crate) fn mirror_dropped(&self) {
        self.upstream.mirrors_dropped.add(1);
    }

    /// The counters of a listener.
    pub(crate) fn listener(&self, origin: &Origin) -> Arc<ListenerCounters> {
        let mut listeners = self.listeners.lock();
        Arc::clone(listeners.entry(origin.clone()).or_default())
    }

    /// The counters of an address.
    pub(crate) fn bind(&self, address: BindAddress) -> Arc<BindCounters> {
        Arc::clone(self.binds.lock().entry(address).or_default())
    }

    /// Forgets a listener that is gone for good.
    pub(crate) fn forget_listener(&self, origin: &Origin) {
        self.listeners.lock().remove(origin);
    }

    /// Forgets an address that is gone for good.
    pub(crate) fn forget_bind(&self, address: BindAddress) {
        self.binds.lock().remove(&address);
    }
}

impl BindCounters {
    /// Counts a TLS handshake that failed.
    pub(crate) fn tls_failed(&self, reason: &'static str) {
        *self.tls_failures.lock().entry(reason).or_default() += 1;
    }
}

impl Default for ListenerCounters {
    fn default() -> Self {
        Self {
            latency: Default::default(),
            latency_sum: Counter::default(),
            answers: Reason::ALL.iter().map(|_| Counter::default()).collect(),
            received: Counter::default(),
            sent: Counter::default(),
            streams: Arc::default(),
            unrouted: RouteCounters::default(),
            routes: Mutex::default(),
        }
    }
}

impl ListenerCounters {
    /// The counters of a route.
    pub(crate) fn route(&self, origin: &Origin) -> Arc<RouteCounters> {
        let begun = Instant::now();
        let mut routes = self.routes.lock();
        let counted = routes.entry(origin.clone()).or_insert_with(|| Counted {
            counters: Arc::default(),
            begun,
        });
        counted.begun = begun;
        Arc::clone(&counted.counters)
    }

    /// Hands over the counters of all routes, and forgets those that no routing table has used for long: routes come and
    /// go, and their counters must not pile up.
    pub(super) fn each_route(&self, mut visit: impl FnMut(&Origin, &RouteCounters)) {
        self.routes.lock().retain(|origin, counted| {
            visit(origin, &counted.counters);
            Arc::strong_count(&counted.counters) > 1 || counted.begun.elapsed() < FORGET_AFTER
        });
    }

    /// Counts how long a request took.
    pub(crate) fn took(&self, time: Duration) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < microseconds);
        if let Some(counter) = self.latency.get(bucket) {
            counter.add(1);
        }
        self.latency_sum.add(microseconds);
    }

    /// Counts an answer of our own.
    pub(crate) fn answered(&self, reason: Reason) {
        if let Some(counter) = self.answers.get(reason as usize) {
            counter.add(1);
        }
    }

    pub(super) fn latency(&self) -> ([u64; BUCKETS], u64) {
        let mut counts = [0; BUCKETS];
        for (count, counter) in counts.iter_mut().zip(&self.latency) {
            *count = counter.get();
        }
        (counts, self.latency_sum.get())
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.answers.iter().map(Counter::get))
    }
}

impl RouteCounters {
    /// Counts a response. A route that has answered with more than 64 different codes counts the others as 0.
    pub(crate) fn count(&self, status: u16) {
        let in_first = place(&self.first, status);
        let place = in_first.or_else(|| place(self.more().as_slice(), status));
        if let Some(place) = place.or_else(|| self.more().last()) {
            place.count.add(1);
        }
    }

    fn more(&self) -> &[StatusCount; 60] {
        self.more
            .get_or_init(|| Box::new(std::array::from_fn(|_| StatusCount::default())))
    }

    /// The codes with their counts.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u16, u64)> {
        let more = self.more.get().map(|more| more.as_slice()).unwrap_or_default();
        self.first
            .iter()
            .chain(more)
            .map(|place| (place.status.load(Relaxed), place.count.get()))
            .filter(|(_, count)| *count > 0)
    }
}

/// The place of a status, or the first free one.
fn place(places: &[StatusCount], status: u16) -> Option<&StatusCount> {
    for place in places {
        match place.status.load(Relaxed) {
            0 => {
                place.status.store(status, Relaxed);
                return Some(place);
            }
            taken if taken == status => return Some(place),
            _ => {}
        }
    }
    None
}
