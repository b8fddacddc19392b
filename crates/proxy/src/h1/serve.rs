//! The life of a client's HTTP/1.1 connection: one request after the other, until one side has enough.

use std::{
    future::poll_fn,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{
    head::{BodyLength, RequestHead, parse_request, slots},
    server::Server,
};
use crate::{
    forward::{
        Asker, Client, Decision, Ending, Fill, Forward, Held, Job, LocalAnswer, Reason, Report, RequestFacts,
        RequestParts, Traffic, count, decide, forward, is_forwardable_upgrade, is_idempotent, tunnel,
    },
    h2,
    normalise::{Authority, Target},
};

/// How HTTP/2 begins when it is spoken without being asked for.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a client that has just connected may take to send its first request when connections are let go.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// How long, and for how many bytes, a client that was answered early is listened to before its connection is closed.
/// Closing at once could destroy the answer on its way.
const LINGER: Duration = Duration::from_secs(5);
const MOST_LINGERED: usize = 4 * 1024 * 1024;

/// What comes after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Another request.
    Request,
    /// The end, after the client had time to read.
    Linger,
    /// The end.
    Close,
}

/// What waiting for a head came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// The end of a head seems to be there.
    Head,
    /// It is HTTP/2.
    Preface,
    /// Refuse what was sent.
    Refuse(Reason),
    /// Nothing more will come.
    Over,
}

/// Serves a connection in clear text, whichever version of HTTP it turns out to speak.
pub(crate) async fn serve_clear(mut stream: TcpStream, client: Client) {
    let preface = {
        let mut server = Server::new(&mut stream, &client);
        match server.wait_for_head(false).await {
            Waited::Preface => bytes::Bytes::copy_from_slice(server.reader.buffer.filled()),
            waited => {
                server.run(waited).await;
                return;
            }
        }
    };
    Box::pin(h2::serve(h2::Replayed::new(preface, stream), client)).await;
}

/// Serves a connection that speaks HTTP/1.1.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, client: Client) {
    let mut server = Server::new(stream, &client);
    let waited = server.wait_for_head(false).await;
    server.run(waited).await;
}

impl<S: AsyncRead + AsyncWrite + Unpin> Server<'_, S> {
    /// Serves requests, the first of which has been waited for.
    async fn run(&mut self, first: Waited) {
        let peer = self.client.peer.ip().to_canonical().to_string();
        let mut waited = first;
        let next = loop {
            let next = match waited {
                Waited::Head => self.request(&peer).await,
                // Only serve_clear looks for the preface on purpose.
                Waited::Preface => self.refuse(Reason::UnsupportedVersion).await,
                Waited::Refuse(reason) => self.refuse(reason).await,
                Waited::Over => Next::Close,
            };
            if next != Next::Request {
                break next;
            }
            waited = self.wait_for_head(true).await;
        };
        self.close(next).await;
    }

    /// Waits until the end of a head seems to be there.
    async fn wait_for_head(&mut self, is_later: bool) -> Waited {
        let client = self.client;
        let routing = client.bound.bind.current();
        let settings = routing.table.settings();
        let limit = settings.max_header_bytes as usize;
        let mut searched = 0;
        let mut has_begun = false;
        let mut is_hurried = false;
        if !self.reader.has_bytes() {
            self.rest();
        }
        client.deadline.set(client.worker.recent(), settings.idle_timeout);
        poll_fn(|context| {
            loop {
                if self.skip_empty_line(is_later) && self.reader.has_bytes() {
                    if let Some(waited) = self.look_at_head(&mut searched, limit) {
                        return Poll::Ready(waited);
                    }
                    if !std::mem::replace(&mut has_begun, true) {
                        client.deadline.set(client.worker.tick(), settings.header_timeout);
                    }
                }
                self.reader.buffer.reserve(limit + 1);
                match self.poll_read(context) {
                    Poll::Ready(Ok(count)) if count > 0 => {}
                    Poll::Ready(_) => return Poll::Ready(Waited::Over),
                    Poll::Pending if has_begun => {
                        return client
                            .deadline
                            .poll(context)
                            .map(|()| Waited::Refuse(Reason::HeaderTimeout));
                    }
                    // Only now: a request that is already here is still served.
                    Poll::Pending if client.is_draining() && is_later => return Poll::Ready(Waited::Over),
                    Poll::Pending if client.is_draining() && !is_hurried => {
                        is_hurried = true;
                        client.deadline.set(client.worker.tick(), FIRST_REQUEST);
                        return client.deadline.poll(context).map(|()| Waited::Over);
                    }
                    Poll::Pending => return client.deadline.poll(context).map(|()| Waited::Over),
                }
            }
        })
        .await
    }

    /// Passes over one empty line before a request, which some clients send after a body. Says whether a head may begin.
    fn skip_empty_line(&mut self, is_later: bool) -> bool {
        match self.reader.buffer.filled() {
            [b'\r', b'\n', ..] if is_later => self.reader.buffer.consume(2),
            [b'\r'] if is_later => return false,
            _ => {}
        }
        true
    }

    /// Whether the end of a head is there, or something that needs no more bytes to be judged.
    fn look_at_head(&self, searched: &mut usize, limit: usize) -> Option<Waited> {
        let bytes = self.reader.buffer.filled();
        let length = bytes.len().min(PREFACE.len());
        if bytes.first() == PREFACE.first() && bytes.get(..length) == PREFACE.get(..length) {
            // One of the two becomes clear within 24 bytes.
            return (bytes.len() >= PREFACE.len()).then_some(Waited::Preface);
        }
        let fresh = bytes.get(searched.saturating_sub(3)..).unwrap_or_default();
        if fresh.ends_with(b"\r\n\r\n") || has_end(fresh) {
            return Some(Waited::Head);
        }
        *searched = bytes.len();
        if bytes.len() > limit {
            return Some(Waited::Refuse(if memchr::memchr(b'\n', bytes).is_some() {
                Reason::HeadTooLarge
            } else {
                Reason::TargetTooLong
            }));
        }
        None
    }

    /// Serves one request whose head is there.
    async fn request(&mut self, peer: &str) -> Next {
        let client = self.client;
        let started = client.worker.tick();
        let routing = client.bound.bind.current();
        let mut head = client.worker.stock.take_text();
        let mut decision = self.decide(&routing, peer, &mut head);
        while let Ok(Decision::Ask(question)) = decision {
            let asker = Asker {
                client,
                deadline: &client.deadline,
                peer,
                started,
            };
            decision = Ok(Box::pin(question.settle(self, asker, &mut head)).await);
        }
        let next = match decision {
            Ok(Decision::Forward(decided)) => self.forward(decided, &head, started).await,
            Ok(Decision::Answer(answer)) => self.answer_and_count(answer, started).await,
            // Settled above.
            Ok(Decision::Ask(_)) => Next::Close,
            Err(reason) => self.refuse(reason).await,
        };
        client.worker.stock.give_text(head);
        next
    }

    /// Parses the head at the front of the buffer and decides what happens to the request.
    fn decide(&mut self, routing: &Rc<Held>, peer: &str, out: &mut Vec<u8>) -> Result<Decision, Reason> {
        let settings = routing.table.settings();
        let mut slots = slots();
        let bytes = self.reader.buffer.filled();
        // What looked like the end of a head and is none, is malformed.
        let head = parse_request(bytes, &mut slots, settings.allow_underscores)?.ok_or(Reason::MalformedHead)?;
        if head.length > settings.max_header_bytes as usize {
            return Err(Reason::HeadTooLarge);
        }
        let request = request_parts(&head, self.client, settings.keep_escaped_slashes)?;
        let decision = decide(routing, self.client, peer, &request, out);
        let (length, framing, is_head) = (head.length, head.framing, request.facts.is_head);
        self.reader.buffer.consume(length);
        self.reader.begin(framing.body, false);
        self.framing = framing;
        self.is_head = is_head;
        self.closes = !framing.is_persistent || self.client.is_leaving();
        Ok(decision)
    }

    async fn forward(&mut self, decided: Forward, head: &[u8], started: Instant) -> Next {
        let client = self.client;
        let job = Job::new(&client.worker, &client.deadline, &decided, head, started);
        let Report {
            ending,
            status,
            traffic,
            request_is_done,
            reset: _,
        } = forward(self, job).await;
        match ending {
            Ending::Complete => {
                count(
                    &client.worker,
                    &decided.listener,
                    Some(&decided.route),
                    status,
                    None,
                    started,
                    traffic,
                );
                self.after_response(request_is_done)
            }
            Ending::Answer(reason) => {
                let answer = decided.into_answer(reason);
                self.answer_and_count(answer, started).await
            }
            Ending::Aborted => {
                count(
                    &client.worker,
                    &decided.listener,
                    Some(&decided.route),
                    status,
                    None,
                    started,
                    traffic,
                );
                Next::Close
            }
            Ending::Switched(mut connection) => {
                let patience = decided.settings().idle_timeout;
                let traffic = tunnel(self, &mut *connection, &client.deadline, patience).await;
                count(
                    &client.worker,
                    &decided.listener,
                    Some(&decided.route),
                    status,
                    None,
                    started,
                    traffic,
                );
                Next::Close
            }
        }
    }

    fn after_response(&mut self, request_is_done: bool) -> Next {
        if !request_is_done {
            return Next::Linger;
        }
        if self.closes {
            return if self.reader.has_bytes() {
                Next::Linger
            } else {
                Next::Close
            };
        }
        Next::Request
    }

    /// Answers a request whose head could not be used; what follows it cannot be trusted either.
    async fn refuse(&mut self, reason: Reason) -> Next {
        let routing = self.client.bound.bind.current();
        let answer = LocalAnswer::early(reason, routing.first_listener(&self.client.worker), false);
        self.closes = true;
        self.is_head = false;
        self.reader.begin(BodyLength::Known(0), false);
        self.answer_and_count(answer, self.client.worker.tick()).await;
        Next::Linger
    }

    async fn answer_and_count(&mut self, answer: LocalAnswer, started: Instant) -> Next {
        let body_is_read = self.skip_body();
        self.closes |= !body_is_read;
        self.answer(&answer);
        let client = self.client;
        let routing = client.bound.bind.current();
        client
            .deadline
            .set(client.worker.tick(), routing.table.settings().body_timeout);
        let is_sent = poll_fn(|context| match self.writer.poll_flush(context, &mut self.stream) {
            Poll::Ready(outcome) => Poll::Ready(outcome.is_ok()),
            Poll::Pending => client.deadline.poll(context).map(|()| false),
        })
        .await;
        if let Some(listener) = &answer.listener {
            let (status, reason) = (answer.content.status(), answer.content.reason());
            count(
                &client.worker,
                listener,
                answer.route.as_deref(),
                status,
                reason,
                started,
                Traffic::default(),
            );
        }
        if is_sent {
            self.after_response(body_is_read)
        } else {
            Next::Close
        }
    }

    /// Passes over a body that nobody wants, as far as it is here already. Says whether that was all of it.
    fn skip_body(&mut self) -> bool {
        if self.framing.expects_continue && !self.reader.is_done() {
            // The client may send it or not.
            return false;
        }
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut nothing = tokio::io::empty();
        while !self.reader.is_done() && self.reader.has_bytes() {
            match self
                .reader
                .poll_fill(&mut context, &mut nothing, &self.client.worker.stock)
            {
                Poll::Ready(Ok(Fill::Data)) => {
                    let there = self.reader.filled().len();
                    self.reader.consume(there);
                }
                Poll::Ready(Ok(Fill::End)) => break,
                Poll::Ready(Err(_)) | Poll::Pending => return false,
            }
        }
        self.reader.is_done()
    }

    /// Ends the connection.
    async fn close(&mut self, next: Next) {
        let client = self.client;
        client.deadline.set(client.worker.tick(), LINGER);
        let mut is_shut = false;
        let mut lingered = 0;
        poll_fn(|context| {
            if !is_shut {
                match Pin::new(&mut self.stream).poll_shutdown(context) {
                    Poll::Ready(Ok(())) => is_shut = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => return client.deadline.poll(context),
                }
            }
            if next != Next::Linger {
                return Poll::Ready(());
            }
            loop {
                let there = self.reader.buffer.len();
                self.reader.buffer.consume(there);
                lingered += there;
                match self.poll_read(context) {
                    Poll::Ready(Ok(count)) if count > 0 && lingered < MOST_LINGERED => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return client.deadline.poll(context),
                }
            }
        })
        .await;
    }
}

/// The request in the form that routing reads.
fn request_parts<'h, 'b>(
    head: &RequestHead<'h, 'b>,
    client: &Client,
    keep_escaped_slashes: bool,
) -> Result<RequestParts<'h, 'b>, Reason> {
    let mut target = Target::parse(head.method, head.target.as_bytes(), keep_escaped_slashes)?;
    let host = head.host.map(Authority::parse).transpose()?;
    let framing = head.framing;
    let has_upgrade = framing.wants_upgrade
        && framing.body.is_empty()
        && is_forwardable_upgrade(head.fields.iter().map(|field| (field.name, field.value)));
    Ok(RequestParts {
        method: head.method,
        // The authority of an absolute URI counts more than the header.
        authority: target.authority.take().or(host),
        target,
        fields: head.fields,
        scheme: client.scheme(),
        facts: RequestFacts {
            body: framing.body,
            is_head: head.method == "HEAD",
            is_idempotent: is_idempotent(head.method),
            expects_continue: framing.expects_continue && !framing.body.is_empty(),
            wants_upgrade: has_upgrade,
            is_grpc: false,
            grpc_timeout: None,
        },
    })
}

/// Whether bytes contain the empty line that ends a head.
fn has_end(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| matches!(bytes.get(at + 1..), Some([b'\n', ..] | [b'\r', b'\n', ..])))
}
