//! One address of a backend, as one worker knows it: its unused connections and how busy it is.
//!
//! Endpoints live in the worker's registry across changes of the routing table, so that a new table keeps warm
//! connections. Nothing here is shared between workers.

use std::{
    cell::{Cell, RefCell},
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use ahash::AHashMap;
use gatewright_ir::{UpstreamProtocol, UpstreamSettings};

use super::{h1::Connection, h2::Sessions};

/// How long an endpoint that refused a connection is passed over while others are there.
const REST: Duration = Duration::from_secs(1);

/// One address that speaks one protocol.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    idle: RefCell<Vec<Idle>>,
    /// Connections with HTTP/2 streams on them.
    pub(crate) sessions: Sessions,
    /// Requests under way.
    pub(crate) in_flight: Cell<u32>,
    rests_until: Cell<Option<Instant>>,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    until: Instant,
}

impl Endpoint {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            idle: RefCell::default(),
            sessions: Sessions::default(),
            in_flight: Cell::new(0),
            rests_until: Cell::new(None),
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
    pub(crate) fn failed(&self, now: Instant) {
        self.rests_until.set(Some(now + REST));
    }

    /// Notes that a connection was made.
    pub(crate) fn works(&self) {
        self.rests_until.set(None);
    }

    /// Whether a connection failed a moment ago.
    pub(crate) fn is_resting(&self) -> bool {
        // The clock is read only after a failure.
        self.rests_until.get().is_some_and(|until| Instant::now() < until)
    }

    fn sweep(&self, now: Instant) {
        self.idle
            .borrow_mut()
            .retain_mut(|idle| idle.until > now && idle.connection.is_silent());
        self.sessions.sweep(now);
    }
}

/// All endpoints that a worker knows.
#[derive(Debug, Default)]
pub(crate) struct Registry(RefCell<AHashMap<(SocketAddr, UpstreamProtocol), Rc<Endpoint>>>);

impl Registry {
    /// The endpoint of an address.
    pub(crate) fn endpoint(&self, address: SocketAddr, protocol: UpstreamProtocol) -> Rc<Endpoint> {
        let mut endpoints = self.0.borrow_mut();
        let endpoint = endpoints
            .entry((address, protocol))
            .or_insert_with(|| Rc::new(Endpoint::new(address)));
        Rc::clone(endpoint)
    }

    /// Closes all unused connections. They know their worker, which knows them: nobody else ends that circle.
    pub(crate) fn clear(&self) {
        let endpoints = std::mem::take(&mut *self.0.borrow_mut());
        for endpoint in endpoints.into_values() {
            endpoint.idle.take();
            endpoint.sessions.clear();
        }
    }

    /// Closes connections that were unused for too long, and forgets endpoints that no table names any more.
    pub(crate) fn sweep(&self, now: Instant) {
        self.0.borrow_mut().retain(|_, endpoint| {
            endpoint.sweep(now);
            Rc::strong_count(endpoint) > 1
        });
    }
}
