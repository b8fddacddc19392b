//! The life of a client's HTTP/2 connection: a task per stream, limits, and a graceful end.

use std::{
    cell::Cell,
    future::poll_fn,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use gatewright_ir::ListenerSettings;
use h2::{
    RecvStream,
    server::{Builder, Connection, SendResponse},
};
use http::{HeaderMap, Request, header};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    heads::{Fields, is_grpc, joined_cookies, request_parts},
    stream::ServerStream,
};
use crate::{
    forward::{
        Asker, CLIENT_GONE, Client, Decision, Ending, Fill, Forward, Job, LocalAnswer, Report, Traffic, count, decide,
        forward,
    },
    worker::Worker,
};

/// How many bytes a client may send ahead, on one stream and on all.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Streams that were reset and are remembered, and resets that are tolerated before the connection is ended.
const MOST_RESETS: usize = 100;
/// A request that a client cancels within so short a time is begun in vain.
const HASTE: Duration = Duration::from_secs(1);
/// Most bytes of responses that wait in one stream.
const SEND_BUFFER: usize = 64 * 1024;

/// Serves a connection that speaks HTTP/2.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, client: Client) {
    let routing = client.bound.bind.current();
    let settings = routing.table.settings();
    client.deadline.set(Instant::now(), settings.header_timeout);
    let handshake = builder(settings).handshake::<_, Bytes>(stream);
    let Some(Ok(connection)) = client.deadline.guard(handshake).await else {
        return;
    };
    let mut life = Life {
        peer: client.peer.ip().to_canonical().to_string().into(),
        client: Rc::new(client),
        tally: Rc::new(Tally::new(settings)),
        is_ending: false,
    };
    life.run(connection, settings).await;
}

fn builder(settings: &ListenerSettings) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(settings.max_streams)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(settings.max_header_bytes)
        .max_concurrent_reset_streams(MOST_RESETS)
        .max_pending_accept_reset_streams(MOST_RESETS)
        .max_send_buffer_size(SEND_BUFFER);
    builder
}

/// A connection while it lasts.
struct Life {
    client: Rc<Client>,
    peer: Rc<str>,
    tally: Rc<Tally>,
    is_ending: bool,
}

/// The streams of a connection.
struct Tally {
    /// Under way.
    open: Cell<u32>,
    /// Over, in whatever way.
    over: Cell<u32>,
    /// Of these, those that the client cancelled almost as soon as it had begun them.
    hasty: Cell<u32>,
    /// So many of those are too many, if they are most.
    most_hasty: u32,
}

impl Tally {
    fn new(settings: &ListenerSettings) -> Self {
        Self {
            open: Cell::default(),
            over: Cell::default(),
            hasty: Cell::default(),
            most_hasty: settings.max_hasty_resets,
        }
    }

    /// Whether the client cancels most of what it begins: that costs it nothing and us a request to a backend each.
    fn is_abused(&self) -> bool {
        self.hasty.get() > self.most_hasty && self.hasty.get() > self.over.get() / 2
    }
}

impl Life {
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        mut connection: Connection<S, Bytes>,
        settings: &ListenerSettings,
    ) {
        let mut was_idle = false;
        poll_fn(|context| {
            loop {
                match connection.poll_accept(context) {
                    Poll::Ready(Some(Ok((request, respond)))) => self.start(request, respond),
                    // A broken connection breaks its streams as well.
                    Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                    Poll::Pending => break,
                }
            }
            if self.tally.is_abused() {
                connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
            }
            let is_idle = self.tally.open.get() == 0;
            if is_idle && !std::mem::replace(&mut was_idle, is_idle) {
                self.client.deadline.set(Instant::now(), settings.idle_timeout);
            } else if !is_idle {
                was_idle = false;
                self.client.deadline.clear();
            }
            self.poll_end(context, &mut connection)
        })
        .await;
    }

    /// Announces the end when the connection is to be let go or was unused for too long.
    fn poll_end<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        connection: &mut Connection<S, Bytes>,
    ) -> Poll<()> {
        let is_over = self.client.deadline.poll(context).is_ready();
        if (is_over || self.client.is_leaving()) && !std::mem::replace(&mut self.is_ending, true) {
            connection.graceful_shutdown();
            // Polled again, so that the announcement is sent.
            context.waker().wake_by_ref();
            self.client.deadline.set(Instant::now(), LAST_WORDS);
            return Poll::Pending;
        }
        // A client that does not go although nothing is under way.
        if is_over && self.tally.open.get() == 0 {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn start(&self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.tally.open.set(self.tally.open.get() + 1);
        let stream = Stream {
            client: Rc::clone(&self.client),
            peer: Rc::clone(&self.peer),
            open: Open {
                tally: Rc::clone(&self.tally),
                client: Rc::clone(&self.client),
            },
        };
        tokio::task::spawn_local(stream.run(request, respond));
    }
}

/// How long a client has to go after it was told to.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Counts a stream until it is over.
struct Open {
    tally: Rc<Tally>,
    client: Rc<Client>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let Tally { open, over, .. } = &*self.tally;
        open.set(open.get() - 1);
        over.set(over.get().saturating_add(1));
        if open.get() == 0 || self.tally.is_abused() {
            self.client.deadline.nudge().wake();
        }
    }
}

/// One stream while it lasts.
struct Stream {
    client: Rc<Client>,
    peer: Rc<str>,
    open: Open,
}

impl Stream {
    async fn run(self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let mut stream = ServerStream::new(body, respond, parts.method == http::Method::HEAD);
        // It is said to be empty and is not over: what may still come would make it malformed, and no backend must have it then.
        if !stream.receiving.is_empty() && is_said_to_be_empty(&parts.headers) && !self.ends(&mut stream).await {
            return stream.abort(h2::Reason::PROTOCOL_ERROR);
        }
        let mut head = self.client.worker.stock.take_text();
        let mut decision = self.decide(&parts, &stream, &mut head);
        drop(parts);
        while let Decision::Ask(question) = decision {
            let asker = Asker {
                client: &self.client,
                deadline: &self.client.worker.deadline(),
                peer: &self.peer,
                started,
            };
            decision = Box::pin(question.settle(&mut stream, asker, &mut head)).await;
        }
        match decision {
            Decision::Forward(decided) => self.forward(&mut stream, decided, &head, started).await,
            Decision::Answer(answer) => reply(&self.client.worker, &mut stream, &answer, started),
            // Settled above.
            Decision::Ask(_) => stream.abort(h2::Reason::INTERNAL_ERROR),
        }
        self.client.worker.stock.give_text(head);
    }

    /// Waits for the end of a request; tells whether it came before anything else.
    async fn ends(&self, stream: &mut ServerStream) -> bool {
        let patience = self.client.bound.bind.current().table.settings().header_timeout;
        let deadline = self.client.worker.deadline();
        deadline.set(Instant::now(), patience);
        let next = poll_fn(|context| stream.receiving.poll_fill(context));
        matches!(deadline.guard(next).await, Some(Ok(Fill::End)))
    }

    fn decide(&self, parts: &http::request::Parts, stream: &ServerStream, head: &mut Vec<u8>) -> Decision {
        let client = &*self.client;
        let routing = client.bound.bind.current();
        let cookies = joined_cookies(&parts.headers);
        let fields = Fields::new(&parts.headers, cookies.as_deref());
        let is_empty = stream.receiving.is_empty();
        match request_parts(parts, &fields, client, is_empty, routing.table.settings()) {
            Ok(request) => decide(&routing, client, &self.peer, &request, head),
            Err(reason) => {
                let listener = routing.first_listener(&client.worker);
                Decision::Answer(LocalAnswer::early(reason, listener, is_grpc(&parts.headers)))
            }
        }
    }

    async fn forward(&self, stream: &mut ServerStream, decided: Forward, head: &[u8], started: Instant) {
        let deadline = self.client.worker.deadline();
        let job = Job::new(&self.client.worker, &deadline, &decided, head, started);
        let Report {
            ending,
            status,
            traffic,
            reset,
            request_is_done: _,
        } = forward(stream, job).await;
        match ending {
            Ending::Complete => count(
                &self.client.worker,
                &decided.listener,
                Some(&decided.route),
                status,
                None,
                started,
                traffic,
            ),
            Ending::Answer(reason) => {
                let answer = decided.into_answer(reason);
                reply(&self.client.worker, stream, &answer, started);
            }
            Ending::Aborted | Ending::Switched(_) => {
                if status == CLIENT_GONE && started.elapsed() < HASTE {
                    let hasty = &self.open.tally.hasty;
                    hasty.set(hasty.get().saturating_add(1));
                }
                stream.abort(reset.unwrap_or(h2::Reason::INTERNAL_ERROR));
                count(
                    &self.client.worker,
                    &decided.listener,
                    Some(&decided.route),
                    status,
                    None,
                    started,
                    traffic,
                );
            }
        }
    }
}

fn is_said_to_be_empty(fields: &HeaderMap) -> bool {
    let length = fields.get(header::CONTENT_LENGTH);
    length.is_some_and(|length| length.as_bytes().iter().all(|digit| *digit == b'0'))
}

fn reply(worker: &Worker, stream: &mut ServerStream, answer: &LocalAnswer, started: Instant) {
    stream.answer(answer);
    if let Some(listener) = &answer.listener {
        let (status, reason) = (answer.content.status(), answer.content.reason());
        count(
            worker,
            listener,
            answer.route.as_deref(),
            status,
            reason,
            started,
            Traffic::default(),
        );
    }
}
