//! Finds a connection to a backend for a request, runs the exchange over it, and tries again where that is safe or where
//! the rule wants it.
//!
//! Safe means that the backend cannot have acted on the request, or that acting twice does no harm, and that no part of
//! the body was used up. A connection that failed to open is such a case for every request. What a rule wants beyond that
//! stands in `retry`.

use std::{net::SocketAddr, rc::Rc, time::Instant};

use super::{
    Changes, Downstream, Prepared, Reason,
    exchange::{Failure, Outcome, Progress, Terms, exchange},
    job::{Ending, Job, Report},
    mirror,
    replay::{Kept, Replay},
    retry::{self, Paused},
    seat::Seat,
};
use crate::{
    h1::Encoding,
    matching::HeaderChanges,
    upstream::{Endpoint, Lost, h1::Connection, h2::Stream, is_of_handshake},
};

/// How often a request is tried in all without the rule having asked for it.
const MOST_ATTEMPTS: u32 = 3;

/// The state of a request over all attempts.
struct Attempts<'a> {
    job: Job<'a>,
    count: u32,
    /// Attempts that the rule asked for.
    retries: u32,
    /// The endpoint that failed last, and how if no connection could be made.
    avoid: Option<(SocketAddr, Option<Reason>)>,
    /// Whether the next attempt needs a new connection.
    needs_fresh: bool,
    has_waited_for_names: bool,
    /// Whether a client that waited to send its body was told to, or may have been.
    has_continued: bool,
    seat: Option<Seat>,
    /// What the response says about the session.
    session: Option<HeaderChanges>,
}

/// What follows an attempt.
enum Next {
    Done(Report),
    /// Another attempt at once.
    Again,
    /// Another attempt after a while, because the rule wants it.
    Later,
}

/// Forwards a client's request.
pub(crate) async fn forward<D: Downstream>(client: &mut D, job: Job<'_>) -> Report {
    let extras = job.forward.extras.take();
    let has_body = !job.forward.facts.body.is_empty();
    if extras.is_none() && (job.retry.is_none() || !has_body) {
        return run(client, job, None).await;
    }
    let extras = extras.map(|extras| *extras).unwrap_or_default();
    let copies = extras.mirrors.into_iter();
    let feeds: Vec<_> = copies.filter_map(|copied| mirror::start(job.worker, copied)).collect();
    if extras.body.is_none() && feeds.is_empty() && (job.retry.is_none() || !has_body) {
        return Box::pin(run(client, job, extras.seat)).await;
    }
    let limit = if job.retry.is_some() { retry::MOST_KEPT } else { 0 };
    let kept = extras.body.unwrap_or_else(|| Kept::new(job.worker));
    let mut replay = Replay::new(client, kept, limit, feeds);
    Box::pin(run(&mut replay, job, extras.seat)).await
}

/// Makes attempts until there is something to say to the client.
pub(super) async fn run<D: Downstream>(client: &mut D, job: Job<'_>, seat: Option<Seat>) -> Report {
    let mut attempts = Attempts {
        job,
        count: 0,
        retries: 0,
        avoid: None,
        needs_fresh: false,
        has_waited_for_names: false,
        has_continued: false,
        seat,
        session: None,
    };
    loop {
        let Some(endpoint) = attempts.choose() else {
            if attempts.wait_for_names().await {
                continue;
            }
            return Report::answer(Reason::NoEndpoints);
        };
        // There is no other to try.
        if let Some((address, Some(reason))) = attempts.avoid
            && address == endpoint.address
            && job.retry.is_none()
        {
            return Report::answer(reason);
        }
        attempts.count += 1;
        if let Some(budget) = &job.forward.cluster.budget {
            budget.attempted(Instant::now());
        }
        let next = match &job.forward.prepared {
            Prepared::H1(encoding) => attempts.over_h1(client, &endpoint, *encoding).await,
            Prepared::H2(request) => Box::pin(attempts.over_h2(client, &endpoint, request)).await,
        };
        match next {
            Next::Done(report) => return report,
            Next::Again => {}
            Next::Later => {
                if let Some(report) = Box::pin(attempts.pause(client)).await {
                    return report;
                }
            }
        }
        client.rewind();
        job.worker.metrics.upstream_retried();
    }
}

impl Attempts<'_> {
    /// The endpoint for the next attempt: that of the client's session if it can be had.
    fn choose(&mut self) -> Option<Rc<Endpoint>> {
        let Job { worker, forward, .. } = self.job;
        let avoid = self.avoid.map(|(address, _)| address);
        let Some(seat) = &self.seat else {
            return forward.choose(&worker.endpoints, avoid);
        };
        let kept = seat.address.filter(|address| Some(*address) != avoid);
        let endpoint = kept
            .and_then(|address| forward.cluster.at(&worker.endpoints, address))
            .filter(|endpoint| !endpoint.is_resting())
            .or_else(|| forward.choose(&worker.endpoints, avoid))?;
        self.session = seat.changes(forward, endpoint.address);
        Some(endpoint)
    }

    async fn over_h1<D: Downstream>(&mut self, client: &mut D, endpoint: &Rc<Endpoint>, encoding: Encoding) -> Next {
        let Job { worker, forward, .. } = self.job;
        let expires = self.expires();
        let idle = if self.needs_fresh { None } else { endpoint.take_idle() };
        let mut connection = if let Some(connection) = idle {
            worker.metrics.upstream_reused();
            connection
        } else {
            match self
                .connect(endpoint, expires, Connection::open(endpoint, worker))
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
            Outcome::Complete | Outcome::Unanswered(Failure::Retriable)
                if progress.request.is_done() && connection.is_reusable() =>
            {
                connection.rest();
                endpoint.keep(connection, worker.recent(), &forward.settings().upstream);
            }
            Outcome::Switched => {
                endpoint.answered(false);
                return Next::Done(Report::of(Ending::Switched(connection), &progress));
            }
            _ => {}
        }
        self.follow(client, endpoint, outcome, &progress, was_reused)
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
        self.follow(client, endpoint, outcome, &progress, was_reused)
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
                endpoint.note_reachable();
                return Ok(connection);
            }
            Some(Err(error)) => {
                tracing::debug!(address = %endpoint.address, %error, "cannot connect to a backend");
                if is_of_handshake(&error) {
                    Reason::HandshakeFailed
                } else {
                    Reason::ConnectFailed
                }
            }
            None => reason,
        };
        worker.metrics.upstream_failed();
        if matches!(reason, Reason::RequestTimeout | Reason::GrpcDeadline) {
            return Err(Next::Done(Report::answer(reason)));
        }
        if reason == Reason::BackendTimeout {
            endpoint.answered(true);
        } else {
            endpoint.note_unreachable(now);
        }
        self.avoid = Some((endpoint.address, Some(reason)));
        Err(if self.may_retry() {
            Next::Later
        } else if self.job.retry.is_none() && reason != Reason::BackendTimeout && self.count < MOST_ATTEMPTS {
            Next::Again
        } else {
            Next::Done(Report::answer(reason))
        })
    }

    /// What an outcome means for the endpoint, and for the request as a whole.
    fn follow<D: Downstream>(
        &mut self,
        client: &D,
        endpoint: &Endpoint,
        outcome: Outcome,
        progress: &Progress,
        was_reused: bool,
    ) -> Next {
        let facts = self.job.forward.facts;
        let is_replayable = facts.body.is_empty() || !progress.request.has_begun() || client.can_rewind();
        self.has_continued |= progress.request.has_begun() || progress.has_interim();
        let ending = match outcome {
            Outcome::Complete => {
                endpoint.answered(matches!(progress.status, 502..=504));
                Ending::Complete
            }
            Outcome::Switched | Outcome::Aborted | Outcome::ClientGone => Ending::Aborted,
            Outcome::Unanswered(Failure::Retriable) => {
                endpoint.answered(true);
                return self.later(endpoint);
            }
            Outcome::Unanswered(Failure::Reason(Reason::BackendTimeout)) => {
                endpoint.answered(true);
                if is_replayable && self.may_retry() {
                    return self.later(endpoint);
                }
                Ending::Answer(Reason::BackendTimeout)
            }
            Outcome::Unanswered(Failure::Reason(reason)) => Ending::Answer(reason),
            Outcome::Unanswered(Failure::Lost(lost)) => {
                let is_safe = match lost {
                    // A backend that closes a new connection without an answer would do so again; another may not.
                    Lost::Closed { nothing_was_sent } => {
                        (nothing_was_sent || facts.is_idempotent) && (was_reused || self.may_go_elsewhere(endpoint))
                    }
                    Lost::Refused => true,
                    Lost::Malformed | Lost::Reset(_) => false,
                };
                if is_replayable && is_safe && self.count < MOST_ATTEMPTS {
                    let is_failure = !was_reused && matches!(lost, Lost::Closed { .. });
                    if is_failure {
                        endpoint.answered(true);
                    }
                    // Whoever closes may be leaving. Who has a place stays as long as can be: an old connection proves nothing.
                    let has_place = self.seat.is_some() || self.job.forward.cluster.is_by_client;
                    if is_failure || !has_place {
                        self.avoid = Some((endpoint.address, None));
                    }
                    self.needs_fresh = true;
                    return Next::Again;
                }
                endpoint.answered(true);
                if is_replayable && self.may_retry() {
                    return self.later(endpoint);
                }
                Ending::Answer(match lost {
                    Lost::Malformed => Reason::BadResponse,
                    Lost::Closed { .. } | Lost::Refused | Lost::Reset(_) => Reason::BackendClosed,
                })
            }
        };
        Next::Done(Report::of(ending, progress))
    }

    /// Another attempt, if it can be at another endpoint.
    fn later(&mut self, endpoint: &Endpoint) -> Next {
        self.avoid = Some((endpoint.address, None));
        Next::Later
    }

    /// Whether there is another endpoint that the rule leaves to us to try.
    fn may_go_elsewhere(&self, endpoint: &Endpoint) -> bool {
        let Job {
            worker, forward, retry, ..
        } = self.job;
        let other = || forward.choose(&worker.endpoints, Some(endpoint.address));
        retry.is_none() && other().is_some_and(|other| other.address != endpoint.address)
    }

    /// Whether the rule wants another attempt after a failure.
    fn may_retry(&self) -> bool {
        self.job.retry.is_some_and(|retry| self.retries < retry.attempts)
    }

    /// Waits as long as the rule wants. Gives a report when there will be no other attempt.
    async fn pause<D: Downstream>(&mut self, client: &mut D) -> Option<Report> {
        let retry = self.job.retry?;
        let budget = self.job.forward.cluster.budget.as_ref();
        if budget.is_some_and(|budget| !budget.take(Instant::now())) {
            return Some(Report::answer(Reason::RetryBudget));
        }
        let until = Instant::now() + retry::wait(retry.backoff, self.retries);
        self.retries += 1;
        // A connection that another request has used says nothing about this one's chances.
        self.needs_fresh = false;
        let limit = self.request_expires().filter(|(at, _)| *at <= until);
        if let Some((_, reason)) = limit {
            return Some(Report::answer(reason));
        }
        match retry::pause(client, self.job.deadline, until).await {
            Paused::Over => None,
            Paused::ClientGone => Some(Report::of(Ending::Aborted, &Progress::default())),
        }
    }

    fn terms(&self, expires: Option<(Instant, Reason)>) -> Terms<'_> {
        let forward = self.job.forward;
        let retry = self.job.retry.filter(|_| self.may_retry());
        Terms {
            facts: forward.facts,
            changes: Changes {
                session: self.session.as_ref(),
                ..forward.changes()
            },
            deadline: self.job.deadline,
            expires,
            patience: forward.settings().body_timeout,
            stream_patience: forward.settings().idle_timeout,
            retriable: retry.map(|retry| &*retry.codes).unwrap_or_default(),
            holds_back: forward.facts.expects_continue && !self.has_continued,
        }
    }

    /// When this attempt must be over, and what is to blame then.
    fn expires(&self) -> Option<(Instant, Reason)> {
        let attempt = self
            .job
            .timeouts
            .backend_request
            .map(|limit| (Instant::now() + limit, Reason::BackendTimeout));
        earlier(self.request_expires(), attempt)
    }

    /// When the request must be over with all its attempts.
    fn request_expires(&self) -> Option<(Instant, Reason)> {
        let Job {
            timeouts,
            forward,
            started,
            ..
        } = self.job;
        let request = timeouts.request.map(|limit| (started + limit, Reason::RequestTimeout));
        let grpc = forward.facts.grpc_timeout;
        earlier(request, grpc.map(|limit| (started + limit, Reason::GrpcDeadline)))
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

fn earlier(first: Option<(Instant, Reason)>, second: Option<(Instant, Reason)>) -> Option<(Instant, Reason)> {
    match (first, second) {
        (Some(first), Some(second)) => Some(if first.0 <= second.0 { first } else { second }),
        (first, second) => first.or(second),
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
