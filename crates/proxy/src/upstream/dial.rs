//! Opens connections to backends: TCP, and TLS over it where the cluster demands it.
//!
//! Whoever speaks HTTP to a backend, or copies bytes to it, begins here. The time it may take is the caller's to limit; it
//! covers both handshakes. What the backend must prove is settled before, in `security`.

use std::{
    fmt,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use gatewright_ir::UpstreamProtocol;
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpSocket, TcpStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{BackendTls, Endpoint};
use crate::worker::keepalive;

/// An open connection to a backend.
#[derive(Debug)]
pub(crate) enum Dialed {
    /// In clear text.
    Plain(TcpStream),
    /// Over TLS, with a backend that proved who it is.
    Tls(Box<TlsStream<TcpStream>>),
}

/// TLS could not be agreed on, or the backend could not prove who it is.
#[derive(Debug)]
struct HandshakeError(io::Error);

impl fmt::Display for HandshakeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TLS handshake: {}", self.0)
    }
}

impl std::error::Error for HandshakeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Whether a connection failed after TCP had been agreed on.
pub(crate) fn is_of_handshake(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.and_then(|inner| inner.downcast_ref::<HandshakeError>()).is_some()
}

/// Opens a connection to an endpoint, as securely as its cluster demands, to speak this over it. With `Tcp`, over TLS too,
/// the bytes that follow are nobody's but the caller's.
pub(crate) async fn dial(endpoint: &Endpoint, protocol: UpstreamProtocol) -> io::Result<Dialed> {
    let stream = connect(endpoint.address).await?;
    agree(endpoint, protocol, stream).await
}

/// Opens a connection to an endpoint of which these bytes are the very first, before any TLS.
pub(crate) async fn dial_with(endpoint: &Endpoint, protocol: UpstreamProtocol, first: &[u8]) -> io::Result<Dialed> {
    let mut stream = connect(endpoint.address).await?;
    stream.write_all(first).await?;
    agree(endpoint, protocol, stream).await
}

async fn agree(endpoint: &Endpoint, protocol: UpstreamProtocol, stream: TcpStream) -> io::Result<Dialed> {
    match &endpoint.tls {
        None => Ok(Dialed::Plain(stream)),
        // In a place of its own: connections in clear text should not carry room for it.
        Some(tls) => Box::pin(secure(tls, protocol, stream))
            .await
            .map_err(|error| io::Error::new(error.kind(), HandshakeError(error))),
    }
}

/// Opens a TCP connection as all upstream connections are.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_nodelay(true)?;
    SockRef::from(&socket).set_tcp_keepalive(&keepalive())?;
    socket.connect(address).await
}

async fn secure(tls: &BackendTls, protocol: UpstreamProtocol, stream: TcpStream) -> io::Result<Dialed> {
    let (config, name) = tls.terms(protocol)?;
    let stream = TlsConnector::from(Arc::clone(config))
        .connect(name.clone(), stream)
        .await?;
    // HTTP/1.1 needs no agreement; it is what everybody spoke before there was one.
    let chosen = stream.get_ref().1.alpn_protocol();
    if protocol == UpstreamProtocol::Http2 && chosen != Some(b"h2") {
        return Err(io::Error::other("the backend does not agree to speak HTTP/2"));
    }
    Ok(Dialed::Tls(Box::new(stream)))
}

impl Dialed {
    /// Whether the backend has neither closed the unused connection nor sent anything on it.
    pub(super) fn is_silent(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        match self {
            // Without an event since the last read there is nothing to see, and no need to ask the kernel.
            Self::Plain(stream) => match stream.poll_read_ready(&mut context) {
                Poll::Pending => true,
                Poll::Ready(Err(_)) => false,
                Poll::Ready(Ok(())) => {
                    let outcome = stream.try_read(&mut [0]);
                    matches!(outcome, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
                }
            },
            // Session tickets come at any time and are no reason to give the connection up.
            Self::Tls(stream) => {
                let mut byte = [0];
                Pin::new(stream)
                    .poll_read(&mut context, &mut ReadBuf::new(&mut byte))
                    .is_pending()
            }
        }
    }
}

impl AsyncRead for Dialed {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
