//! What is known about a client's connection, whichever codec serves it.

use std::{net::SocketAddr, rc::Rc, time::Instant};

use gatewright_ir::{ListenerSettings, Origin, Scheme};

use super::{HeldListener, HeldRoute, Reason};
use crate::{
    hygiene::is_trusted,
    worker::{BoundConnection, Deadline, Worker},
};

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    /// The worker that serves it.
    pub(crate) worker: Rc<Worker>,
    /// The address that it came to.
    pub(crate) bound: BoundConnection,
    /// The deadline of whatever it waits for.
    pub(crate) deadline: Deadline,
    /// Where it came from.
    pub(crate) peer: SocketAddr,
    /// What the TLS handshake settled, if there was one.
    pub(crate) secured: Option<Secured>,
}

/// What a TLS handshake settled.
#[derive(Debug)]
pub(crate) struct Secured {
    /// The listener that the client's name selected.
    pub(crate) listener: Origin,
}

impl Client {
    /// How requests come to the listener.
    pub(crate) fn scheme(&self) -> Scheme {
        if self.secured.is_some() {
            Scheme::Https
        } else {
            Scheme::Http
        }
    }

    /// Whether the peer's word about the client counts.
    pub(crate) fn is_trusted(&self, settings: &ListenerSettings) -> bool {
        !settings.trusted_proxies.is_empty() && is_trusted(&settings.trusted_proxies, self.peer.ip())
    }

    /// Whether the connection is to end with the next response.
    pub(crate) fn is_leaving(&self) -> bool {
        self.bound.bind.is_leaving()
    }

    /// Whether the connection is to end as soon as nothing is under way.
    pub(crate) fn is_draining(&self) -> bool {
        self.bound.bind.is_draining()
    }
}

/// What is counted when a request is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes of the request's body.
    pub(crate) received: u64,
    /// Bytes of the response's body.
    pub(crate) sent: u64,
}

/// Counts a finished request.
pub(crate) fn count(
    worker: &Worker,
    listener: &HeldListener,
    route: Option<&HeldRoute>,
    status: u16,
    reason: Option<Reason>,
    since: Instant,
    traffic: Traffic,
) {
    let counters = &listener.counters;
    route.map_or(&counters.unrouted, |route| &route.counters).count(status);
    if let Some(reason) = reason {
        counters.answered(reason);
    }
    counters.took(worker.tick().saturating_duration_since(since));
    if traffic.received > 0 {
        counters.received.add(traffic.received);
    }
    if traffic.sent > 0 {
        counters.sent.add(traffic.sent);
    }
}
