//! Backends: their endpoints as a worker sees them, the connections to these, and the backend's side of an exchange.
//!
//! Everything here belongs to one worker and is reached without locks. The forwarding logic asks a [`ClusterView`] for an
//! endpoint and a connection; what it does with them is not known here.

mod anchor;
mod budget;
mod cluster;
mod dial;
mod endpoint;
pub(crate) mod h1;
pub(crate) mod h2;
mod security;
mod verify;

use std::task::{Context, Poll};

pub(crate) use anchor::Anchor;
pub(crate) use budget::Budget;
pub(crate) use cluster::ClusterView;
pub(crate) use dial::{Dialed, dial, dial_with, is_of_handshake};
pub(crate) use endpoint::{Endpoint, Registry};
pub(crate) use security::{BackendTls, ClusterTls, KnownTls};

use crate::forward::{Incoming, Outgoing, ResponseView};

/// The backend's side of an exchange.
pub(crate) trait Upstream: Incoming + Outgoing {
    /// Hands over the next response head: any number of interim ones, then the final one.
    fn poll_response<R>(
        &mut self,
        context: &mut Context<'_>,
        handle: impl FnOnce(&ResponseView<'_>) -> R,
    ) -> Poll<Result<R, Lost>>;
}

/// Why no response can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The connection ended before the first byte of a response.
    Closed {
        /// Whether the backend cannot have seen any of the request.
        nothing_was_sent: bool,
    },
    /// The backend says that it has not looked at the request.
    Refused,
    /// What came is no response.
    Malformed,
    /// The backend cancelled the stream, with this HTTP/2 code.
    Reset(::h2::Reason),
}
