//! A client's session while its request is served: where it led to, and what the response has to say about it.

use std::net::SocketAddr;

use gatewright_ir::{Scheme, Target};

use super::Forward;
use crate::matching::HeaderChanges;

/// The session of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// The endpoint that the client had.
    pub(super) address: Option<SocketAddr>,
    /// When the session began, in seconds since 1970.
    created: u32,
    now: u32,
    is_secure: bool,
}

impl Seat {
    /// A session that begins now.
    pub(super) fn new(now: u32, scheme: Scheme) -> Self {
        Self {
            address: None,
            created: now,
            now,
            is_secure: scheme == Scheme::Https,
        }
    }

    /// Takes note of the endpoint that the client had.
    pub(super) fn found(&mut self, address: SocketAddr, created: u32) {
        self.address = Some(address);
        self.created = created;
    }

    /// What the response of an endpoint has to say. A session that moves to another endpoint begins anew.
    pub(super) fn changes(&self, forward: &Forward, address: SocketAddr) -> Option<HeaderChanges> {
        let rule = &forward.route.rule;
        let session = rule.session.as_deref()?;
        let Target::Cluster(id) = &rule.backend(forward.place)?.target else {
            return None;
        };
        let is_new = self.address != Some(address);
        let created = if is_new { self.now } else { self.created };
        session.changes(session.tag(id, address), created, self.now, is_new, self.is_secure)
    }
}
