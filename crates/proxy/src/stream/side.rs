//! One side of a connection that is carried: in clear text, or within TLS.

use std::{
    io,
    pin::pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest},
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

    /// Whether the other end has said that it sends no more. What it sent before may still wait to be read.
    fn has_ended(&self, context: &mut Context<'_>) -> bool {
        let Some(stream) = self.plain() else { return false };
        // Asks nobody but the runtime, which has heard it with the last event.
        let ready = pin!(stream.ready(Interest::READABLE)).poll(context);
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }

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

/// Sends the last bytes, which wait a moment for the end of the connection to go with them.
pub(super) fn poll_write_last(stream: &TcpStream, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(context))?;
        let send = || SockRef::from(stream).send_with_flags(bytes, libc::MSG_MORE | libc::MSG_NOSIGNAL);
        match stream.try_io(Interest::WRITABLE, send) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return Poll::Ready(outcome),
        }
    }
}
