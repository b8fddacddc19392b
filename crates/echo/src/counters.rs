//! What a backend has seen, as numbers.
//!
//! Tests of connection pools and retries ask these: how many connections did the proxy open, how many requests came.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one backend; they only grow.
#[derive(Debug, Default)]
pub struct EchoCounters {
    connections: AtomicU64,
    requests: AtomicU64,
}

impl EchoCounters {
    /// Connections accepted so far (TCP; a UDP backend has none).
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// HTTP and gRPC requests, TCP lines or UDP datagrams received so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}
