//! The handshake on one connection.
//!
//! The client's first message is read before a configuration is chosen, because it says which listener is meant. Reading
//! is bounded in bytes and, like the whole handshake, in time.

use std::{
    future::poll_fn,
    io::{self, Read},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use gatewright_ir::{ClientValidation, Origin};
use rustls::server::{Accepted as Hello, AcceptedAlert, Acceptor};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::{StartHandshake, server::TlsStream};

use super::{
    TlsTable,
    certificates::without_trailing_dot,
    hello::{self, Unseen},
    table::{Handling, ListenerTls},
};

/// Most bytes a client may send before its first message is complete. Real ones take up to two kilobytes.
pub(super) const HELLO_LIMIT: usize = 16 * 1024;

/// `unrecognized_name`, as a fatal alert in a record of its own.
const UNKNOWN_NAME_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
/// `internal_error`, likewise.
const INTERNAL_ERROR_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];
/// `decode_error`, likewise.
const DECODE_ERROR_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];

/// What came of the beginning of a connection.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is made per connection, and taken apart at once"
)]
pub(crate) enum Begun<S> {
    /// The handshake was made here.
    Terminated(Accepted<S>),
    /// A backend makes it.
    Passed(Passed<S>),
}

/// A connection whose handshake a backend makes.
#[derive(Debug)]
pub(crate) struct Passed<S> {
    /// The stream, after the client's first message.
    pub(crate) stream: S,
    /// That message, as it came.
    pub(crate) hello: Vec<u8>,
    /// The name that the client asks for.
    pub(crate) name: Option<Arc<str>>,
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub(crate) struct Accepted<S> {
    /// The stream in clear text.
    pub(crate) stream: TlsStream<S>,
    /// The listener that the client's name selected.
    pub(crate) listener: Origin,
    /// The name that the client asked for.
    pub(crate) name: Option<Arc<str>>,
    /// Which clients it lets in.
    pub(crate) clients: Option<Arc<ClientValidation>>,
    /// What is spoken on the stream.
    pub(crate) alpn: Alpn,
}

/// What client and server agreed to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alpn {
    /// HTTP/1.1, also when the client did not say.
    Http1,
    /// HTTP/2.
    Http2,
}

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// It took too long.
    #[error("the TLS handshake took too long")]
    TimedOut,
    /// No listener has the name asked for.
    #[error("no listener has the name {}", .0.as_deref().unwrap_or("(none)"))]
    UnknownName(Option<Arc<str>>),
    /// The listener cannot be configured.
    #[error("the listener {0} has no usable TLS configuration")]
    Unusable(Origin),
    /// The first message is larger than any real one.
    #[error("the client's first TLS message is too large")]
    HelloTooLarge,
    /// The first message is not what TLS begins with.
    #[error("the client does not begin with a TLS handshake")]
    NotTls,
    /// Client and server do not understand each other, or the certificate is unusable.
    #[error("TLS handshake: {0}")]
    Protocol(rustls::Error),
    /// The connection broke.
    #[error("connection lost during the TLS handshake: {0}")]
    Connection(io::Error),
}

impl TlsError {
    /// A stable label for counters.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::UnknownName(_) => "unknown_name",
            Self::Unusable(_) => "unusable_certificate",
            Self::HelloTooLarge => "hello_too_large",
            Self::Protocol(_) | Self::NotTls => "protocol",
            Self::Connection(_) => "connection",
        }
    }
}

impl From<io::Error> for TlsError {
    /// The stream wraps what the TLS library says into an I/O error; this takes it out again.
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(protocol) => Self::Protocol(protocol.clone()),
            None => Self::Connection(error),
        }
    }
}

/// Makes the handshake on a connection, unless it belongs to a listener whose backends do.
///
/// A client that is refused gets an alert that says why. Dropping the future drops the connection.
pub(crate) async fn accept<S>(stream: S, table: &TlsTable, timeout: Duration) -> Result<Begun<S>, TlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let begin = async {
        if table.has_passthrough() {
            Box::pin(sort_out(stream, table)).await
        } else {
            handshake(stream, table).await.map(Begun::Terminated)
        }
    };
    tokio::time::timeout(timeout, begin)
        .await
        .unwrap_or(Err(TlsError::TimedOut))
}

/// Finds out whether the handshake is made here before anything judges the client's first message.
async fn sort_out<S>(mut stream: S, table: &TlsTable) -> Result<Begun<S>, TlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let seen = match hello::read(&mut stream).await {
        Ok(seen) => seen,
        Err(Unseen::TooLarge) => {
            refuse(&mut stream, &DECODE_ERROR_ALERT).await;
            return Err(TlsError::HelloTooLarge);
        }
        Err(Unseen::Malformed) => {
            refuse(&mut stream, &DECODE_ERROR_ALERT).await;
            return Err(TlsError::NotTls);
        }
        Err(Unseen::Connection(error)) => return Err(TlsError::Connection(error)),
    };
    // Without a word: where TLS is passed on, nobody here speaks it, and clients take it as they take a dead backend.
    let Some(listener) = table.select(seen.name.as_deref()) else {
        return Err(TlsError::UnknownName(seen.name));
    };
    if matches!(listener.handling, Handling::PassThrough) {
        return Ok(Begun::Passed(Passed {
            stream,
            hello: seen.records,
            name: seen.name,
        }));
    }
    let hello = match parse_hello(&seen.records) {
        // Both readers must agree on the name, or a client could be judged by one listener and served by another.
        Ok(hello) if server_name(&hello) == seen.name => hello,
        Ok(_) => {
            refuse(&mut stream, &DECODE_ERROR_ALERT).await;
            return Err(TlsError::NotTls);
        }
        Err(error) => return Err(refused(stream, error).await),
    };
    terminate(stream, hello, seen.name, listener)
        .await
        .map(Begun::Terminated)
}

async fn handshake<S>(mut stream: S, table: &TlsTable) -> Result<Accepted<S>, TlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let hello = match read_hello(&mut stream).await {
        Ok(hello) => hello,
        Err(error) => return Err(refused(stream, error).await),
    };
    let name = server_name(&hello);
    let Some(listener) = table.select(name.as_deref()) else {
        refuse(&mut stream, &UNKNOWN_NAME_ALERT).await;
        return Err(TlsError::UnknownName(name));
    };
    terminate(stream, hello, name, listener).await
}

/// Tells a client why its first message is refused.
async fn refused<S: AsyncWrite + Unpin>(mut stream: S, error: HelloError) -> TlsError {
    match error {
        HelloError::TooLarge => {
            refuse(&mut stream, &DECODE_ERROR_ALERT).await;
            TlsError::HelloTooLarge
        }
        HelloError::Refused(error, alert) => {
            refuse(&mut stream, &alert).await;
            TlsError::Protocol(error)
        }
        HelloError::Connection(error) => TlsError::Connection(error),
    }
}

/// Makes the rest of the handshake.
async fn terminate<S>(
    mut stream: S,
    hello: Hello,
    name: Option<Arc<str>>,
    listener: &ListenerTls,
) -> Result<Accepted<S>, TlsError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(config) = listener.handling.config() else {
        refuse(&mut stream, &INTERNAL_ERROR_ALERT).await;
        return Err(TlsError::Unusable(listener.origin.clone()));
    };
    let stream = StartHandshake::from_parts(hello, stream)
        .into_stream(Arc::clone(config))
        .await?;
    let alpn = match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => Alpn::Http2,
        _ => Alpn::Http1,
    };
    Ok(Accepted {
        stream,
        listener: listener.origin.clone(),
        name,
        clients: listener.clients.clone(),
        alpn,
    })
}

/// The name a client asks for. The library has put it in lower case.
fn server_name(hello: &Hello) -> Option<Arc<str>> {
    hello
        .client_hello()
        .server_name()
        .map(|name| without_trailing_dot(name).into())
}

/// Sends an alert and closes. Nothing better can be done if that fails.
async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, alert: &[u8]) {
    if stream.write_all(alert).await.is_ok() {
        _ = stream.shutdown().await;
    }
}

enum HelloError {
    TooLarge,
    /// What was wrong, and the alert to send.
    Refused(rustls::Error, Vec<u8>),
    Connection(io::Error),
}

async fn read_hello<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Hello, HelloError> {
    let mut acceptor = Acceptor::default();
    let mut left = HELLO_LIMIT;
    poll_fn(|context| {
        loop {
            if left == 0 {
                return Poll::Ready(Err(HelloError::TooLarge));
            }
            let mut reader = Polled {
                stream: Pin::new(&mut *stream),
                context,
                left,
            };
            match acceptor.read_tls(&mut reader) {
                Ok(0) => return Poll::Ready(Err(HelloError::Connection(io::ErrorKind::UnexpectedEof.into()))),
                Ok(count) => left = left.saturating_sub(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(HelloError::Connection(error))),
            }
            match acceptor.accept() {
                Ok(Some(hello)) => return Poll::Ready(Ok(hello)),
                Ok(None) => {}
                Err((error, alert)) => return Poll::Ready(Err(HelloError::Refused(error, bytes_of(alert)))),
            }
        }
    })
    .await
}

/// Reads a first message that is here already.
fn parse_hello(mut records: &[u8]) -> Result<Hello, HelloError> {
    let mut acceptor = Acceptor::default();
    while !records.is_empty() {
        acceptor.read_tls(&mut records).map_err(HelloError::Connection)?;
        match acceptor.accept() {
            // The message ends with its last record, so nothing can be left over.
            Ok(Some(hello)) if records.is_empty() => return Ok(hello),
            Ok(Some(_)) => break,
            Ok(None) => {}
            Err((error, alert)) => return Err(HelloError::Refused(error, bytes_of(alert))),
        }
    }
    Err(HelloError::TooLarge)
}

fn bytes_of(mut alert: AcceptedAlert) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    _ = alert.write_all(&mut bytes);
    bytes
}

/// An asynchronous stream as the TLS library reads it: what is not there yet is `WouldBlock`.
struct Polled<'a, 'b, S> {
    stream: Pin<&'a mut S>,
    context: &'a mut Context<'b>,
    left: usize,
}

impl<S: AsyncRead> Read for Polled<'_, '_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.left);
        let mut buffer = ReadBuf::new(buffer.get_mut(..length).unwrap_or_default());
        match self.stream.as_mut().poll_read(self.context, &mut buffer) {
            Poll::Ready(result) => result.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}
