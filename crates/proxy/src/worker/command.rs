//! What a worker is told to do.

use std::{net::TcpListener, sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::Bind;

/// An instruction to a worker. The sender of `done` is used when it was carried out.
#[derive(Debug)]
pub(crate) enum Command {
    /// Accept connections on a socket.
    Listen {
        /// What connections belong to.
        bind: Arc<Bind>,
        /// The worker's own socket.
        socket: TcpListener,
        /// Used when connections are accepted.
        done: oneshot::Sender<()>,
    },
    /// Accept no more connections, and let go of the open ones.
    Close {
        /// What connections belong to.
        bind: Arc<Bind>,
        /// How long open connections may go on.
        drain: Duration,
        /// Used when the socket is closed; connections may still be open then.
        done: oneshot::Sender<()>,
    },
    /// Ask clients to go elsewhere, and go on serving those that do not.
    Leave,
    /// Close everything, let go of connections, and end.
    Stop {
        /// How long open connections may go on.
        grace: Duration,
    },
}
