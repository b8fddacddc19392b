//! What data planes report back.
//!
//! A fact names an origin that the plane was given; it enters the world like any other change, and status is derived from
//! it in the plan. Data planes send facts only when they change.

use std::{fmt, net::SocketAddr};

use serde::{Deserialize, Serialize};

use crate::Origin;

/// Something a plane observed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Fact {
    /// A listener's sockets are open or could not be opened.
    Listener {
        /// The listener.
        origin: Origin,
        /// The generation of the [`crate::Gateway`] that this state answers to.
        generation: i64,
        /// The state.
        state: ListenerState,
    },
    /// A listener is no longer served; earlier facts about it are void.
    Gone {
        /// The listener.
        origin: Origin,
    },
}

/// The state of a listener on a plane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum ListenerState {
    /// Connections are accepted on these addresses.
    Listening(Vec<SocketAddr>),
    /// At least one address could not be opened; nothing is accepted.
    Failed {
        /// The address at fault.
        address: SocketAddr,
        /// Why.
        failure: ListenFailure,
    },
}

/// Why an address could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListenFailure {
    /// Another process, or another Gateway, has it.
    InUse,
    /// It is no address of this host.
    NotAvailable,
    /// Ports below 1024 need a capability.
    Denied,
    /// Anything else, in the words of the operating system.
    Other(String),
}

impl fmt::Display for ListenFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => out.write_str("another program listens there"),
            Self::NotAvailable => out.write_str("this host does not have that address"),
            Self::Denied => out.write_str("permission denied; ports below 1024 need CAP_NET_BIND_SERVICE"),
            Self::Other(text) => out.write_str(text),
        }
    }
}
