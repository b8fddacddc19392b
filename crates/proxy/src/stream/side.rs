//! One side of a connection that is carried: in clear text, or within TLS.

use std::time::Duration;

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::server;

use crate::upstream::Dialed;

/// A side of a connection.
pub(crate) trait Side: AsyncRead + AsyncWrite + Unpin {
    /// The connection beneath.
    fn socket(&self) -> &TcpStream;

    /// The connection, if bytes go over it as they are.
    fn plain(&self) -> Option<&TcpStream>;

    /// Makes the end of the connection an abrupt one, so that the other end knows that something is missing.
    fn hang_up(&self) {
        // Without it the end merely looks like an ordinary one.
        _ = SockRef::from(self.socket()).set_linger(Some(Duration::ZERO));
    }
}

impl Side for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }

    fn plain(&self) -> Option<&TcpStream> {
        Some(self)
    }
}

impl Side for server::TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }

    fn plain(&self) -> Option<&TcpStream> {
        None
    }
}

impl Side for Dialed {
    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }

    fn plain(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(stream) => Some(stream),
            Self::Tls(_) => None,
        }
    }
}
