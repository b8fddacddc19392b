//! One request and its response, between a client and one backend connection.
//!
//! Both bodies move at the same time, so a backend may answer before it has read everything, and streams in both
//! directions work. All of it happens in one task: each wake-up drives the request, the response, and the deadlines.

use std::{
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use super::{
    Changes, Incoming, Outgoing, Reason, RequestFacts, ResponseView,
    body::{BodyError, Pump, PumpError, Side},
};
use crate::{
    h1::BodyLength,
    upstream::{Lost, Upstream},
    worker::Deadline,
};

/// How long a client that announced to wait for `100 Continue` but sends its body anyway is held back. Clients do that
/// when a backend does not answer; as long, they wait themselves.
const CONTINUE_PATIENCE: Duration = Duration::from_secs(1);

/// Interim responses that a backend may send before the final one.
const MOST_INTERIM: u32 = 32;

/// The client's side of an exchange.
pub(crate) trait Downstream: Incoming + Outgoing {
    /// Starts the final response.
    fn start(&mut self, response: &ResponseView<'_>, changes: Changes<'_>, request_is_done: bool) -> io::Result<()>;

    /// Sends an interim response.
    fn interim(&mut self, response: &ResponseView<'_>);

    /// Sends the response after which the connection speaks another protocol.
    fn switch(&mut self, response: &ResponseView<'_>, changes: Changes<'_>);

    /// Whether a byte of the body is at hand without waiting.
    fn poll_has_body(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Looks whether the client is still there while nothing is read from it.
    fn poll_watch(&mut self, context: &mut Context<'_>) -> Poll<Watched>;

    /// Whether the body can be sent once more although part of it was taken.
    fn can_rewind(&self) -> bool {
        false
    }

    /// Begins the body anew; only where that is possible.
    fn rewind(&mut self) {}
}

/// What is seen of a client that is waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// It will send nothing more, but may still read.
    HalfClosed,
    /// It is gone, or has cancelled the request.
    Gone,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The response was sent completely.
    Complete,
    /// The connection now speaks another protocol.
    Switched,
    /// No byte of a final response was sent: the proxy can answer, or try again.
    Unanswered(Failure),
    /// The response was broken off.
    Aborted,
    /// The client went away before a response.
    ClientGone,
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Because of the backend.
    Lost(Lost),
    /// Because of the client, or of the time.
    Reason(Reason),
    /// Because the rule wants another instead of this one.
    Retriable,
}

/// What an exchange is bound by.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) facts: RequestFacts,
    pub(super) changes: Changes<'a>,
    pub(super) deadline: &'a Deadline,
    /// When it must be over, and why.
    pub(super) expires: Option<(Instant, Reason)>,
    /// How long a body may stand still.
    pub(super) patience: Duration,
    /// How long a response of unknown length may say nothing: it may be a stream of events.
    pub(super) stream_patience: Duration,
    /// Responses with these codes are not passed on, if the request can be sent once more.
    pub(super) retriable: &'a [u16],
    /// Whether the client may still wait to be told to send its body.
    pub(super) holds_back: bool,
}

/// What an exchange has done so far.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "steps that happen independently of each other"
)]
pub(super) struct Progress {
    /// The request's body.
    pub(super) request: Pump,
    /// The response's body.
    pub(super) response: Pump,
    /// The status of the final response, or zero before it.
    pub(super) status: u16,
    /// How the backend broke the response off, if it did so in HTTP/2.
    pub(super) reset: Option<h2::Reason>,
    /// Whether the body waits for `100 Continue`.
    is_held_back: bool,
    /// Whether the backend takes no more of the request.
    is_cut_off: bool,
    is_half_closed: bool,
    /// Whether an interim response has still to be sent.
    is_unflushed: bool,
    /// Interim responses so far.
    interim: u32,
    /// Whether the response says how long it is.
    has_length: bool,
    /// When a body will have stood still for too long, and how much had moved when that was set.
    standstill: Option<(Instant, u64)>,
    continue_at: Option<Instant>,
}

/// Runs one exchange.
pub(super) async fn exchange<D: Downstream, U: Upstream>(
    client: &mut D,
    backend: &mut U,
    terms: Terms<'_>,
    progress: &mut Progress,
) -> Outcome {
    progress.is_held_back = terms.holds_back;
    poll_fn(|context| {
        if let Poll::Ready(outcome) = progress.poll(context, client, backend, &terms) {
            return Poll::Ready(outcome);
        }
        progress.poll_deadline(context, &terms)
    })
    .await
}

/// What a response head asks for.
enum Heard {
    Interim,
    Switched,
    Final(io::Result<()>),
    Retriable,
}

impl Progress {
    fn poll<D: Downstream, U: Upstream>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut D,
        backend: &mut U,
        terms: &Terms<'_>,
    ) -> Poll<Outcome> {
        if let Some(outcome) = self.drive_request(context, client, backend) {
            return Poll::Ready(outcome);
        }
        while self.status == 0 {
            match self.poll_head(context, client, backend, terms) {
                Poll::Ready(Ok(Heard::Interim)) => {
                    // The body may go on now.
                    if let Some(outcome) = self.drive_request(context, client, backend) {
                        return Poll::Ready(outcome);
                    }
                }
                Poll::Ready(Ok(Heard::Switched)) => return Poll::Ready(Outcome::Switched),
                Poll::Ready(Ok(Heard::Retriable)) => return Poll::Ready(Outcome::Unanswered(Failure::Retriable)),
                Poll::Ready(Ok(Heard::Final(Ok(())))) => {}
                Poll::Ready(Ok(Heard::Final(Err(_)))) => return Poll::Ready(Outcome::Aborted),
                Poll::Ready(Err(lost)) => return Poll::Ready(Outcome::Unanswered(Failure::Lost(lost))),
                Poll::Pending => break,
            }
        }
        if self.status != 0 {
            match self.response.poll(context, backend, client) {
                Poll::Ready(Ok(())) => return Poll::Ready(Outcome::Complete),
                Poll::Ready(Err(error)) => {
                    if let PumpError::Source(BodyError::Reset(reason)) = error {
                        self.reset = Some(reason);
                    }
                    return Poll::Ready(Outcome::Aborted);
                }
                Poll::Pending => {}
            }
        } else if self.is_unflushed {
            match client.poll_flush(context) {
                Poll::Ready(Ok(())) => self.is_unflushed = false,
                Poll::Ready(Err(_)) => return Poll::Ready(Outcome::ClientGone),
                Poll::Pending => {}
            }
        }
        if !self.is_half_closed && (self.request.is_done() || self.is_cut_off) {
            match client.poll_watch(context) {
                Poll::Ready(Watched::HalfClosed) => self.is_half_closed = true,
                Poll::Ready(Watched::Gone) => return Poll::Ready(self.gone()),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }

    /// Whether the backend has sent anything before its final response.
    pub(super) fn has_interim(&self) -> bool {
        self.interim > 0
    }

    fn gone(&self) -> Outcome {
        if self.status == 0 {
            Outcome::ClientGone
        } else {
            Outcome::Aborted
        }
    }

    /// Moves the request on: its head, then its body.
    fn drive_request<D: Downstream, U: Upstream>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut D,
        backend: &mut U,
    ) -> Option<Outcome> {
        if self.request.is_done() || self.is_cut_off {
            return None;
        }
        if self.is_held_back {
            // The head alone; whether it arrives shows in the response.
            self.is_cut_off = matches!(backend.poll_flush(context), Poll::Ready(Err(_)));
            if self.continue_at.is_none() && client.poll_has_body(context).is_ready() {
                self.continue_at = Some(Instant::now() + CONTINUE_PATIENCE);
            }
            return None;
        }
        match self.request.poll(context, client, backend) {
            Poll::Ready(Ok(())) | Poll::Pending => None,
            // A backend that reads no further may have answered already.
            Poll::Ready(Err(PumpError::Sink)) => {
                self.is_cut_off = true;
                None
            }
            Poll::Ready(Err(PumpError::Source(BodyError::Malformed))) if self.status == 0 => {
                Some(Outcome::Unanswered(Failure::Reason(Reason::MalformedChunk)))
            }
            Poll::Ready(Err(PumpError::Source(_))) => Some(self.gone()),
        }
    }

    fn poll_head<D: Downstream, U: Upstream>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut D,
        backend: &mut U,
        terms: &Terms<'_>,
    ) -> Poll<Result<Heard, Lost>> {
        let request_is_done = self.request.is_done();
        let has_begun = self.request.has_begun();
        let mut status = 0;
        let mut has_length = false;
        let heard = backend.poll_response(context, |response| {
            status = response.status;
            match status {
                101 if terms.facts.wants_upgrade => {
                    client.switch(response, terms.changes);
                    Ok(Heard::Switched)
                }
                // Nobody asked for another protocol.
                101 => Err(Lost::Malformed),
                100..200 => {
                    // A client that did not announce to wait has no use for being told to go on.
                    if status != 100 || terms.facts.expects_continue {
                        client.interim(response);
                    }
                    Ok(Heard::Interim)
                }
                _ if terms.retriable.contains(&status)
                    && (terms.facts.body.is_empty() || !has_begun || client.can_rewind()) =>
                {
                    Ok(Heard::Retriable)
                }
                _ => {
                    has_length = matches!(response.body, BodyLength::Known(_));
                    Ok(Heard::Final(client.start(response, terms.changes, request_is_done)))
                }
            }
        });
        heard.map(|heard| {
            let heard = heard.flatten();
            match &heard {
                Ok(Heard::Interim) => {
                    self.interim += 1;
                    if self.interim > MOST_INTERIM {
                        return Err(Lost::Malformed);
                    }
                    self.is_unflushed = true;
                    if status == 100 {
                        self.is_held_back = false;
                        self.continue_at = None;
                    }
                }
                Ok(Heard::Final(_)) => {
                    self.status = status;
                    self.has_length = has_length;
                    // The client will not send a body that nobody asked for.
                    self.is_cut_off |= self.is_held_back;
                }
                Ok(Heard::Switched) => self.status = status,
                Ok(Heard::Retriable) | Err(_) => {}
            }
            heard
        })
    }

    /// Sets the deadline to whatever comes first, and looks whether it has come.
    fn poll_deadline(&mut self, context: &mut Context<'_>, terms: &Terms<'_>) -> Poll<Outcome> {
        self.note_standstill(terms);
        let standstill = self.standstill.map(|(at, _)| at);
        let next = [terms.expires.map(|(at, _)| at), standstill, self.continue_at]
            .into_iter()
            .flatten()
            .min();
        let Some(next) = next else {
            // Polled all the same: a connection that is let go is woken through its deadline.
            terms.deadline.clear();
            return terms.deadline.poll(context).map(|()| Outcome::Aborted);
        };
        terms.deadline.set_at(next);
        if terms.deadline.poll(context).is_pending() && Instant::now() < next {
            return Poll::Pending;
        }
        let now = Instant::now();
        if let Some((at, reason)) = terms.expires
            && at <= now
        {
            return Poll::Ready(self.over(reason));
        }
        if standstill.is_some_and(|at| at <= now) {
            return Poll::Ready(self.over(Reason::BodyTimeout));
        }
        if self.continue_at.is_some_and(|at| at <= now) {
            self.continue_at = None;
            self.is_held_back = false;
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn over(&self, reason: Reason) -> Outcome {
        match self.status {
            0 if self.is_half_closed => Outcome::ClientGone,
            0 => Outcome::Unanswered(Failure::Reason(reason)),
            _ => Outcome::Aborted,
        }
    }

    /// Whether a body stands still, and since when.
    fn note_standstill(&mut self, terms: &Terms<'_>) {
        let Some(patience) = self.patience(terms) else {
            self.standstill = None;
            return;
        };
        let moved = self.request.moved + self.response.moved;
        if self.standstill.is_none_or(|(_, before)| before != moved) {
            self.standstill = Some((Instant::now() + patience, moved));
        }
    }

    /// How long what is waited for may take. A backend may think about its answer for as long as the rule allows, and a
    /// call of gRPC may be silent for as long as it likes; all else has a limit.
    fn patience(&self, terms: &Terms<'_>) -> Option<Duration> {
        if self.is_half_closed || self.response.waits_for == Some(Side::Sink) {
            return Some(terms.patience);
        }
        if terms.facts.is_grpc {
            return None;
        }
        if self.status == 0 {
            let is_awaited = !self.is_held_back && self.request.waits_for == Some(Side::Source);
            return is_awaited.then_some(terms.patience);
        }
        Some(if self.has_length {
            terms.patience
        } else {
            terms.stream_patience
        })
    }
}
