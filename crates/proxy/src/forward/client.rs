//! What is known about a client's connection, whichever codec serves it.

use std::{cell::Cell, net::SocketAddr, rc::Rc, sync::Arc, time::Instant};

use gatewright_ir::{ClientValidation, Listener, ListenerSettings, Origin, Scheme};

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
    /// Where it came from: the client itself, where a front that is trusted says who that is.
    pub(crate) peer: SocketAddr,
    /// Where it connected to, if a front says so.
    pub(crate) local: Option<SocketAddr>,
    /// What the TLS handshake settled, if there was one.
    pub(crate) secured: Option<Secured>,
}

/// What a TLS handshake settled.
#[derive(Debug)]
pub(crate) struct Secured {
    /// The listener that the client's name selected.
    listener: Origin,
    /// Which clients could make it.
    clients: Option<Arc<ClientValidation>>,
    /// Whether the listener lets in others by now.
    is_outdated: Cell<bool>,
}

impl Secured {
    /// A handshake for a listener, by one of these clients.
    pub(crate) fn new(listener: Origin, clients: Option<Arc<ClientValidation>>) -> Self {
        Self {
            listener,
            clients,
            is_outdated: Cell::new(false),
        }
    }

    /// Whether requests for a listener may come over this connection: the handshake was made for it, and whoever made it
    /// would still be let in.
    pub(crate) fn reaches(&self, listener: &Listener) -> bool {
        if self.listener != listener.origin {
            return false;
        }
        let wanted = listener
            .protocol
            .termination()
            .and_then(|termination| termination.clients.as_ref());
        let is_same = match (&self.clients, wanted) {
            (_, None) => true,
            (Some(shown), Some(wanted)) => Arc::ptr_eq(shown, wanted) || shown == wanted,
            (None, Some(_)) => false,
        };
        if !is_same {
            self.is_outdated.set(true);
        }
        is_same
    }
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
        let is_outdated = |secured: &Secured| secured.is_outdated.get();
        self.bound.bind.is_leaving() || self.secured.as_ref().is_some_and(is_outdated)
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
