//! Finds a connection to a backend for a request, runs the exchange over it, and tries again where that is safe.
//!
//! Safe means that the backend cannot have acted on the request, or that acting twice does no harm, and that no part of
//! the body was used up. A connection that failed to open is such a case for every request.

use std::{net::SocketAddr, rc::Rc, time::Instant};

use super::{
    Downstream, Forward, Prepared, Reason,
    client::Traffic,
    exchange::{Failure, Outcome, Progress, Terms, exchange},
};
use crate::{
    h1::Encoding,
    upstream::{Endpoint, Lost, h1::Connection, h2::Stream},
    worker::{Deadline, Worker},
};

/// How often a request is tried in all.
const MOST_ATTEMPTS: u32 = 3;

/// What is counted for a client that went away before its response began; no status of HTTP, but a custom.
pub(crate) const CLIENT_GONE: u16 = 499;

/// A request on its way to a backend.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(crate) worker: &'a Rc<Worker>,
    pub(crate) deadline: &'a Deadline,
    pub(crate) forward: &'a Forward,
    /// The head in HTTP/1.1, if the backend speaks that.
    pub(crate) head: &'a [u8],
    pub(crate) started: Instant,
}

/// How a request ended.
#[derive(Debug)]
pub(crate) struct Report {
    /// What the codec has to do now.
    pub(crate) ending: Ending,
    /// The status that the client saw, or that of a client that went away before it saw any.
    pub(crate) status: u16,
    /// How much was moved.
    pub(crate) traffic: Traffic,
    /// Whether the client's body was read to its end.
    pub(crate) request_is_done: bool,
    /// How the backend broke the response off, if it did so in HTTP/2.
    pub(crate) reset: Option<h2::Reason>,
}

/// What the codec has to do after an exchange.
#[derive(Debug)]
pub(crate) enum Ending {
    /// Nothing: the response was sent completely.
    Complete,
    /// Copy bytes between the client and this connection.
    Switched(Box<Connection>),
    /// Answer for this reason.
    Answer(Reason),
    /// Break off: the response cannot be completed, or nobody reads it.
    Aborted,
}

impl Report {
    fn answer(reason: Reason) -> Self {
        Self {
            ending: Ending::Answer(reason),
            status: reason.status(),
            traffic: Traffic::default(),
            request_is_done: false,
            reset: None,
        }
    }
}

/// The state of a request over all attempts.
struct Attempts<'a> {
    job: Job<'a>,
    count: u32,
    /// The endpoint that failed to be connected to last, and how.
    avoid: Option<(SocketAddr, Reason)>,
    /// Whether the next attempt needs a new connection.
    needs_fresh: bool,
    has_waited_for_names: bool,
}

/// What follows an attempt.
enum Next {
    Done(Report),
    Again,
}

/// Forwards a request.
pub(crate) async fn forward<D: Downstream>(client: &mut D, job: Job<'_>) -> Report {
    let mut attempts = Attempts {
        job,
        count: 0,
        avoid: None,
        needs_fresh: false,
        has_waited_for_names: false,
    };
    loop {
        let avoid = attempts.avoid.map(|(address, _)| address);
        let Some(endpoint) = job.forward.cluster.choose(&job.worker.endpoints, avoid) else {
            if attempts.wait_for_names().await {
                continue;
            }
            return Report::answer(Reason::NoEndpoints);
        };
        // There is no other to try.
        if let Some((address, reason)) = attempts.avoid
            && address == endpoint.address
        {
            return Report::answer(reason);
        }
        attempts.count += 1;
        let next = match &job.forward.prepared {
            Prepared::H1(encoding) => attempts.over_h1(client, &endpoint, *encoding).await,
            Prepared::H2(request) => Box::pin(attempts.over_h2(client, &endpoint, request)).await,
        };
        match next {
            Next::Done(report) => return report,
            Next::Again => job.worker.metrics.upstream_retried(),
        }
    }
}

impl Attempts<'_> {
    async fn over_h1<D: Downstream>(&mut self, client: &mut D, endpoint: &Rc<Endpoint>, encoding: Encoding) -> Next {
        let Job { worker, forward, .. } = self.job;
        let expires = self.expires();
        let idle = if self.needs_fresh { None } else { endpoint.take_idle() };
        let mut connection = if let Some(connection) = idle {
            worker.metrics.upstream_reused();
            connection
        } else {
            match self
                .connect(endpoint, expires, Connection::open(endpoint.address, worker))
                .await
            {
                Ok(connection) => connection,
                Err(next) => return next,
            }
        };
        let _busy = Busy::new(endpoint);
        let was_reused = connection.is_reused;
        connection.begin(self.job.head, encoding, forward.facts.is_head);
        let mut progress = Progress::default();
        let outcome = exchange(client, &mut *connection, self.terms(expires), &mut progress).await;
        match outcome {
            Outcome::Complete if progress.request.is_done() && connection.is_reusable() => {
                connection.rest();
                endpoint.keep(connection, worker.recent(), &forward.settings().upstream);
            }
            Outcome::Switched => {
                return Next::Done(report(Ending::Switched(connection), &progress));
            }
            _ => {}
        }
        self.follow(outcome, &progress, was_reused)
    }

    async fn over_h2<D: Downstream>(
        &mut self,
        client: &mut D,
        endpoint: &Rc<Endpoint>,
        request: &http::Request<()>,
    ) -> Next {
        let Job { worker, forward, .. } = self.job;
        let expires = self.expires();
        let opened = Stream::open(endpoint, worker, &forward.settings().upstream, request, forward.facts);
        let mut stream = match self.connect(endpoint, expires, opened).await {
            Ok(stream) => stream,
            Err(next) => return next,
        };
        let _busy = Busy::new(endpoint);
        let mut progress = Progress::default();
        let was_reused = stream.is_on_old_connection();
        let outcome = exchange(client, &mut stream, self.terms(expires), &mut progress).await;
        self.follow(outcome, &progress, was_reused)
    }

    /// Opens a connection within the time that is left, or says what to do instead.
    async fn connect<T>(
        &mut self,
        endpoint: &Endpoint,
        expires: Option<(Instant, Reason)>,
        opening: impl Future<Output = std::io::Result<T>>,
    ) -> Result<T, Next> {
        let Job {
            worker,
            forward,
            deadline,
            ..
        } = self.job;
        let now = Instant::now();
        let patience = now + forward.settings().upstream.connect_timeout;
        let (until, reason) = expires
            .filter(|(at, _)| *at < patience)
            .unwrap_or((patience, Reason::ConnectTimeout));
        deadline.set_at(until);
        let reason = match deadline.guard(opening).await {
            Some(Ok(connection)) => {
                endpoint.works();
                return Ok(connection);
            }
            Some(Err(error)) => {
                tracing::debug!(address = %endpoint.address, %error, "cannot connect to a backend");
                Reason::ConnectFailed
            }
            None => reason,
        };
        worker.metrics.upstream_failed();
        if matches!(reason, Reason::RequestTimeout | Reason::BackendTimeout) {
            return Err(Next::Done(Report::answer(reason)));
        }
        endpoint.failed(now);
        self.avoid = Some((endpoint.address, reason));
        Err(if self.count < MOST_ATTEMPTS {
            Next::Again
        } else {
            Next::Done(Report::answer(reason))
        })
    }

    /// What an outcome means for the request as a whole.
    fn follow(&mut self, outcome: Outcome, progress: &Progress, was_reused: bool) -> Next {
        let facts = self.job.forward.facts;
        let ending = match outcome {
            Outcome::Complete => Ending::Complete,
            Outcome::Switched | Outcome::Aborted | Outcome::ClientGone => Ending::Aborted,
            Outcome::Unanswered(Failure::Reason(reason)) => Ending::Answer(reason),
            Outcome::Unanswered(Failure::Lost(lost)) => {
                let is_replayable = facts.body.is_empty() || !progress.request.has_begun();
                let is_safe = match lost {
                    // A backend that closes a new connection without an answer would do so again.
                    Lost::Closed { nothing_was_sent } => was_reused && (nothing_was_sent || facts.is_idempotent),
                    Lost::Refused => true,
                    Lost::Malformed | Lost::Reset(_) => false,
                };
                if is_replayable && is_safe && self.count < MOST_ATTEMPTS {
                    self.needs_fresh = true;
                    return Next::Again;
                }
                Ending::Answer(match lost {
                    Lost::Malformed => Reason::BadResponse,
                    Lost::Closed { .. } | Lost::Refused | Lost::Reset(_) => Reason::BackendClosed,
                })
            }
        };
        Next::Done(report(ending, progress))
    }

    fn terms(&self, expires: Option<(Instant, Reason)>) -> Terms<'_> {
        let forward = self.job.forward;
        Terms {
            facts: forward.facts,
            changes: forward.changes(),
            deadline: self.job.deadline,
            expires,
            patience: forward.settings().body_timeout,
            stream_patience: forward.settings().idle_timeout,
        }
    }

    /// When this attempt must be over, and what is to blame then.
    fn expires(&self) -> Option<(Instant, Reason)> {
        let timeouts = &self.job.forward.route.rule.rule.timeouts;
        let request = timeouts
            .request
            .map(|limit| (self.job.started + limit, Reason::RequestTimeout));
        let attempt = timeouts
            .backend_request
            .map(|limit| (Instant::now() + limit, Reason::BackendTimeout));
        match (request, attempt) {
            (Some(request), Some(attempt)) => Some(if request.0 <= attempt.0 { request } else { attempt }),
            (request, attempt) => request.or(attempt),
        }
    }

    /// Waits for the first answer of the name servers, once. Says whether it is worth trying again.
    async fn wait_for_names(&mut self) -> bool {
        let Job { forward, deadline, .. } = self.job;
        let Some(names) = forward.cluster.names() else {
            return false;
        };
        if std::mem::replace(&mut self.has_waited_for_names, true) {
            return false;
        }
        deadline.set(Instant::now(), forward.settings().upstream.connect_timeout);
        deadline.guard(names.answered()).await.is_some()
    }
}

fn report(ending: Ending, progress: &Progress) -> Report {
    Report {
        ending,
        status: if progress.status == 0 {
            CLIENT_GONE
        } else {
            progress.status
        },
        traffic: Traffic {
            received: progress.request.moved,
            sent: progress.response.moved,
        },
        request_is_done: progress.request.is_done(),
        reset: progress.reset,
    }
}

/// Counts a request under way.
struct Busy<'a>(&'a Endpoint);

impl<'a> Busy<'a> {
    fn new(endpoint: &'a Endpoint) -> Self {
        endpoint.in_flight.set(endpoint.in_flight.get() + 1);
        Self(endpoint)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}
