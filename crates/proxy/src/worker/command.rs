//! What a worker is told to do.

use std::{
    net::{TcpListener, UdpSocket},
    sync::Arc,
    time::Duration,
};

use tokio::sync::oneshot;

use super::Bind;

/// A worker's own socket.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Accepts connections.
    Tcp(TcpListener),
    /// Receives datagrams.
    Udp(UdpSocket),
}

/// An instruction to a worker. The sender of `done` is used when it was carried out.
#[derive(Debug)]
pub(crate) enum Command {
    /// Serve what comes to a socket.
    Listen {
        /// What connections belong to.
        bind: Arc<Bind>,
        /// The worker's own socket.
        socket: Socket,
        /// Used when it is served.
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
