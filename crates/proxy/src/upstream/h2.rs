//! HTTP/2 connections to a backend, shared by many requests, and one stream as the backend's side of an exchange.
//!
//! An endpoint has as many connections as its limit on streams demands, usually one. A connection that announced its end
//! takes no new streams; those under way go on.

use std::{
    cell::{Cell, RefCell},
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use ::h2::{
    Error, Reason,
    client::{Builder, ResponseFuture, SendRequest},
};
use bytes::Bytes;
use gatewright_ir::{UpstreamProtocol, UpstreamSettings};
use http::{HeaderMap, Request, Response, Uri, header, uri::Scheme};
use tokio::sync::Notify;

use super::{Endpoint, Lost, Upstream, dial};
use crate::{
    forward::{BodyError, Field, Fill, Incoming, Outgoing, RequestFacts, ResponseView},
    h1::{BodyLength, parse_length},
    h2::stream::{Receiving, Sending},
    worker::Worker,
};

/// How many bytes a backend may send ahead, on one stream and on all.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;
/// Most bytes of requests that wait in one stream.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that we open at once on one connection, however many the backend allows.
const MOST_STREAMS: usize = 100;
/// Largest response head.
const MOST_HEAD_BYTES: u32 = 128 * 1024;

/// An endpoint's connections.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: RefCell<Vec<Rc<Session>>>,
    is_opening: Cell<bool>,
    opened: Notify,
}

/// One connection.
#[derive(Debug)]
struct Session {
    sender: SendRequest<Bytes>,
    /// Whether it is spoken over TLS, which requests have to say.
    is_secured: bool,
    streams: Cell<usize>,
    is_closed: Rc<Cell<bool>>,
    is_old: Cell<bool>,
    unused_since: Cell<Instant>,
    idle_timeout: Duration,
}

impl Sessions {
    /// Closes connections that were unused for too long.
    pub(super) fn sweep(&self, now: Instant) {
        self.open.borrow_mut().retain(|session| {
            let is_unused = session.streams.get() == 0 && session.unused_since.get() + session.idle_timeout < now;
            !session.is_closed.get() && !is_unused
        });
    }

    /// Lets go of all connections.
    pub(super) fn clear(&self) {
        self.open.take();
    }

    /// A connection with room for one more stream.
    fn with_room(&self) -> Option<Rc<Session>> {
        let mut open = self.open.borrow_mut();
        open.retain(|session| !session.is_closed.get());
        open.iter().find(|session| session.has_room()).cloned()
    }
}

impl Session {
    fn has_room(&self) -> bool {
        let most = self.sender.current_max_send_streams().min(MOST_STREAMS);
        self.streams.get() < most
    }
}

/// Says that nobody opens a connection any more, also when the one who did was dropped.
struct Opening<'a>(&'a Sessions);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.opened.notify_waiters();
    }
}

/// One request and its response.
#[derive(Debug)]
pub(crate) struct Stream {
    response: ResponseFuture,
    sending: Sending,
    receiving: Option<Receiving>,
    is_head: bool,
    is_on_old_connection: bool,
    session: Rc<Session>,
}

impl Stream {
    /// Opens a stream for a request, on a connection that is there or on a new one.
    pub(crate) async fn open(
        endpoint: &Endpoint,
        worker: &Rc<Worker>,
        settings: &UpstreamSettings,
        request: &Request<()>,
        facts: RequestFacts,
    ) -> io::Result<Self> {
        let sessions = &endpoint.sessions;
        loop {
            let Some(session) = sessions.with_room() else {
                if sessions.is_opening.get() {
                    sessions.opened.notified().await;
                } else {
                    open_session(endpoint, worker, settings).await?;
                }
                continue;
            };
            let is_on_old_connection = session.is_old.replace(true);
            if is_on_old_connection {
                worker.metrics.upstream_reused();
            }
            match start(&session, request, facts).await {
                Ok((response, sending)) => {
                    session.streams.set(session.streams.get() + 1);
                    return Ok(Self {
                        response,
                        sending,
                        receiving: None,
                        is_head: facts.is_head,
                        is_on_old_connection,
                        session,
                    });
                }
                Err(error) => {
                    // It takes no more streams.
                    session.is_closed.set(true);
                    if !is_on_old_connection {
                        return Err(io::Error::other(error));
                    }
                }
            }
        }
    }

    /// Whether the connection was used before.
    pub(crate) fn is_on_old_connection(&self) -> bool {
        self.is_on_old_connection
    }
}

async fn start(
    session: &Session,
    request: &Request<()>,
    facts: RequestFacts,
) -> Result<(ResponseFuture, Sending), Error> {
    let mut sender = session.sender.clone();
    std::future::poll_fn(|context| sender.poll_ready(context)).await?;
    let is_ended = facts.body.is_empty();
    let mut request = request.clone();
    if session.is_secured {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        *request.uri_mut() = Uri::from_parts(parts).map_err(|_| Error::from(Reason::INTERNAL_ERROR))?;
    }
    let (response, stream) = sender.send_request(request, is_ended)?;
    Ok((response, Sending::new(stream, is_ended)))
}

async fn open_session(endpoint: &Endpoint, worker: &Rc<Worker>, settings: &UpstreamSettings) -> io::Result<()> {
    let sessions = &endpoint.sessions;
    sessions.is_opening.set(true);
    let _opening = Opening(sessions);
    let stream = dial(endpoint, UpstreamProtocol::Http2).await?;
    let (sender, connection) = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_header_list_size(MOST_HEAD_BYTES)
        .enable_push(false)
        .handshake(stream)
        .await
        .map_err(io::Error::other)?;
    let is_closed = Rc::new(Cell::new(false));
    let session = Session {
        sender,
        is_secured: endpoint.tls.is_some(),
        streams: Cell::new(0),
        is_closed: Rc::clone(&is_closed),
        is_old: Cell::new(false),
        unused_since: Cell::new(Instant::now()),
        idle_timeout: settings.idle_timeout,
    };
    let open = worker.metrics.upstream_opened();
    tokio::task::spawn_local(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a backend ended");
        }
        is_closed.set(true);
        drop(open);
    });
    sessions.open.borrow_mut().push(Rc::new(session));
    Ok(())
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.session.streams.set(self.session.streams.get() - 1);
        self.session.unused_since.set(Instant::now());
    }
}

impl Upstream for Stream {
    fn poll_response<R>(
        &mut self,
        context: &mut Context<'_>,
        handle: impl FnOnce(&ResponseView<'_>) -> R,
    ) -> Poll<Result<R, Lost>> {
        match self.response.poll_informational(context) {
            Poll::Ready(Some(Ok(interim))) => {
                return Poll::Ready(Ok(with_view(&interim, BodyLength::Known(0), None, handle)));
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(lost(&error))),
            Poll::Ready(None) | Poll::Pending => {}
        }
        let response = match ready!(Pin::new(&mut self.response).poll(context)) {
            Ok(response) => response,
            Err(error) => return Poll::Ready(Err(lost(&error))),
        };
        let (head, body) = response.into_parts();
        let head = Response::from_parts(head, ());
        let receiving = Receiving::new(body);
        let Ok(stated) = stated_length(head.headers()) else {
            return Poll::Ready(Err(Lost::Malformed));
        };
        let has_no_body = self.is_head || matches!(head.status().as_u16(), 204 | 304);
        let body = match stated {
            _ if has_no_body || receiving.is_empty() => BodyLength::Known(0),
            Some(length) => BodyLength::Known(length),
            None => BodyLength::Chunked,
        };
        self.receiving = Some(receiving);
        Poll::Ready(Ok(with_view(&head, body, stated, handle)))
    }
}

fn with_view<R>(
    head: &Response<()>,
    body: BodyLength,
    stated_length: Option<u64>,
    handle: impl FnOnce(&ResponseView<'_>) -> R,
) -> R {
    let fields: Vec<_> = head
        .headers()
        .iter()
        .map(|(name, value)| Field {
            name: name.as_str(),
            value: value.as_bytes(),
        })
        .collect();
    handle(&ResponseView {
        status: head.status().as_u16(),
        fields: &fields,
        body,
        stated_length,
    })
}

fn stated_length(fields: &HeaderMap) -> Result<Option<u64>, ()> {
    let mut lengths = fields.get_all(header::CONTENT_LENGTH).iter();
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(None),
        (Some(length), None) => parse_length(length.as_bytes()).map(Some).ok_or(()),
        (Some(_), Some(_)) => Err(()),
    }
}

fn lost(error: &Error) -> Lost {
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => Lost::Refused,
        // Streams that the announcement did not count in were not looked at.
        Some(Reason::NO_ERROR) if error.is_go_away() && error.is_remote() => Lost::Refused,
        Some(reason) if error.is_reset() && error.is_remote() => Lost::Reset(reason),
        Some(_) if error.is_library() => Lost::Malformed,
        _ => Lost::Closed {
            nothing_was_sent: false,
        },
    }
}

impl Incoming for Stream {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        match &mut self.receiving {
            Some(receiving) => receiving.poll_fill(context),
            None => Poll::Ready(Err(BodyError::Truncated)),
        }
    }

    fn filled(&self) -> &[u8] {
        self.receiving.as_ref().map(Receiving::filled).unwrap_or_default()
    }

    fn consume(&mut self, count: usize) {
        if let Some(receiving) = &mut self.receiving {
            receiving.consume(count);
        }
    }

    fn take(&mut self, most: usize) -> Bytes {
        self.receiving
            .as_mut()
            .map(|receiving| receiving.take(most))
            .unwrap_or_default()
    }

    fn is_finished(&self) -> bool {
        self.receiving.as_ref().is_some_and(Receiving::is_empty)
    }

    fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.receiving.as_mut().and_then(Receiving::take_trailers)
    }
}

impl Outgoing for Stream {
    fn poll_push<I: Incoming>(&mut self, context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>> {
        self.sending.poll_push(context, from)
    }

    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()> {
        self.sending.finish(trailers)
    }

    fn poll_flush(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection's own task sends.
        Poll::Ready(Ok(()))
    }
}
