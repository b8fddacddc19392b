//! One address of a backend, as one worker knows it: its unused connections and how busy it is.
//!
//! Endpoints live in the worker's registry across changes of the routing table, so that a new table keeps warm
//! connections. Nothing here is shared between workers.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use ahash::AHashMap;
use gatewright_ir::{UpstreamProtocol, UpstreamSettings};

use super::{BackendTls, budget::Budgets, h1::Connection, h2::Sessions};

/// How long an endpoint that failed is passed over while others are there. Each failure after a rest doubles the next.
const REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);
/// So many answers in a row that only a failing backend or a gateway before it gives make an endpoint rest.
const MOST_FAILURES: u32 = 5;

/// One address that speaks one protocol on one set of terms.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// On which terms it is spoken to over TLS; absent means in clear text.
    pub(super) tls: Option<Arc<BackendTls>>,
    idle: RefCell<Vec<Idle>>,
    /// Connections with HTTP/2 streams on them.
    pub(crate) sessions: Sessions,
    /// Requests under way.
    pub(crate) in_flight: Cell<u32>,
    /// The last rest, which may be over.
    rest: Cell<Option<Rest>>,
    /// Failures in a row.
    failures: Cell<u32>,
}

/// A time in which an endpoint is passed over.
#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    /// How many there were without a success in between.
    turn: u32,
    /// Whether no connection could be made: one that can be made ends it.
    is_unreachable: bool,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    until: Instant,
}

impl Endpoint {
    fn new(address: SocketAddr, tls: Option<Arc<BackendTls>>) -> Self {
        Self {
            address,
            tls,
            idle: RefCell::default(),
            sessions: Sessions::default(),
            in_flight: Cell::new(0),
            rest: Cell::new(None),
            failures: Cell::new(0),
        }
    }

    /// A connection that was used before and is still open, as far as can be told without asking the kernel.
    pub(crate) fn take_idle(&self) -> Option<Box<Connection>> {
        loop {
            let mut idle = self.idle.borrow_mut().pop()?;
            if idle.connection.is_silent() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for the next request.
    pub(crate) fn keep(&self, connection: Box<Connection>, now: Instant, settings: &UpstreamSettings) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < settings.max_idle as usize {
            idle.push(Idle {
                connection,
                until: now + settings.idle_timeout,
            });
        }
    }

    /// Notes that a connection could not be made.
    pub(crate) fn note_unreachable(&self, now: Instant) {
        self.take_rest(now, true);
    }

    /// Notes that a connection was made.
    pub(crate) fn note_reachable(&self) {
        if self.rest.get().is_some_and(|rest| rest.is_unreachable) {
            self.rest.set(None);
        }
    }

    /// Notes how a request ended: as it does when the backend fails, or in any other way.
    pub(crate) fn answered(&self, is_failure: bool) {
        if is_failure {
            let failures = self.failures.get().saturating_add(1);
            self.failures.set(failures);
            if failures >= MOST_FAILURES {
                self.take_rest(Instant::now(), false);
            }
            return;
        }
        if self.failures.get() != 0 {
            self.failures.set(0);
        }
        // Requests that were under way when the rest began do not end it.
        if self.rest.get().is_some() && !self.is_resting() {
            self.rest.set(None);
        }
    }

    /// Whether it failed a moment ago.
    pub(crate) fn is_resting(&self) -> bool {
        // The clock is read only after a failure.
        self.rest.get().is_some_and(|rest| Instant::now() < rest.until)
    }

    fn take_rest(&self, now: Instant, is_unreachable: bool) {
        let before = self.rest.get();
        // What was under way when the rest began may fail as well; that says nothing new.
        if before.is_some_and(|rest| now < rest.until) {
            return;
        }
        let turn = before.map_or(0, |rest| rest.turn.saturating_add(1));
        let length = REST.saturating_mul(2_u32.saturating_pow(turn)).min(LONGEST_REST);
        self.rest.set(Some(Rest {
            until: now + length,
            turn,
            is_unreachable,
        }));
    }

    fn sweep(&self, now: Instant) {
        self.idle
            .borrow_mut()
            .retain_mut(|idle| idle.until > now && idle.connection.is_silent());
        self.sessions.sweep(now);
    }
}

/// What tells endpoints apart. Terms of TLS count by their place in memory, which nothing else can take while the endpoint
/// holds them; zero stands for clear text. A connection made on other terms proves nothing about whom it reaches.
type Key = (SocketAddr, UpstreamProtocol, usize);

/// All endpoints that a worker knows.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    endpoints: RefCell<AHashMap<Key, Rc<Endpoint>>>,
    /// The retries of backends that have a limit of them.
    pub(super) budgets: Budgets,
}

impl Registry {
    /// The endpoint of an address.
    pub(crate) fn endpoint(
        &self,
        address: SocketAddr,
        protocol: UpstreamProtocol,
        tls: Option<&Arc<BackendTls>>,
    ) -> Rc<Endpoint> {
        let terms = tls.map_or(0, |tls| Arc::as_ptr(tls).addr());
        let mut endpoints = self.endpoints.borrow_mut();
        let endpoint = endpoints
            .entry((address, protocol, terms))
            .or_insert_with(|| Rc::new(Endpoint::new(address, tls.cloned())));
        Rc::clone(endpoint)
    }

    /// Closes all unused connections. They know their worker, which knows them: nobody else ends that circle.
    pub(crate) fn clear(&self) {
        let endpoints = std::mem::take(&mut *self.endpoints.borrow_mut());
        for endpoint in endpoints.into_values() {
            endpoint.idle.take();
            endpoint.sessions.clear();
        }
    }

    /// Closes connections that were unused for too long, and forgets endpoints that no table names any more.
    pub(crate) fn sweep(&self, now: Instant) {
        self.endpoints.borrow_mut().retain(|_, endpoint| {
            endpoint.sweep(now);
            Rc::strong_count(endpoint) > 1
        });
    }
}

#[cfg(test)]
mod tests;
