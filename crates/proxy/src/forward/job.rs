//! A request on its way to a backend, and how it ended.
//!
//! The codecs make a [`Job`] of what was decided and act on its [`Report`]; `attempt` does the work in between.

use std::{rc::Rc, time::Instant};

use gatewright_ir::{Retry, Timeouts};

use super::{Forward, Reason, client::Traffic, exchange::Progress};
use crate::{
    upstream::h1::Connection,
    worker::{Deadline, Worker},
};

/// What is counted for a client that went away before its response began; no status of HTTP, but a custom.
pub(crate) const CLIENT_GONE: u16 = 499;

/// A request on its way to a backend.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a> {
    pub(super) worker: &'a Rc<Worker>,
    pub(super) deadline: &'a Deadline,
    pub(super) forward: &'a Forward,
    /// The head in HTTP/1.1, if the backend speaks that.
    pub(super) head: &'a [u8],
    pub(super) started: Instant,
    pub(super) timeouts: Timeouts,
    pub(super) retry: Option<&'a Retry>,
}

impl<'a> Job<'a> {
    /// A client's request.
    pub(crate) fn new(
        worker: &'a Rc<Worker>,
        deadline: &'a Deadline,
        forward: &'a Forward,
        head: &'a [u8],
        started: Instant,
    ) -> Self {
        let rule = &forward.route.rule.rule;
        Self {
            worker,
            deadline,
            forward,
            head,
            started,
            timeouts: rule.timeouts,
            retry: rule.retry.as_ref(),
        }
    }

    /// A request beside a client's, which the rule's limits do not concern.
    pub(super) fn aside(worker: &'a Rc<Worker>, deadline: &'a Deadline, forward: &'a Forward, head: &'a [u8]) -> Self {
        Self {
            worker,
            deadline,
            forward,
            head,
            started: Instant::now(),
            timeouts: Timeouts::default(),
            retry: None,
        }
    }

    /// The same, over by a moment.
    pub(super) fn until(mut self, moment: Instant) -> Self {
        self.timeouts.request = Some(moment.saturating_duration_since(self.started));
        self
    }
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
    /// An answer of our own.
    pub(super) fn answer(reason: Reason) -> Self {
        Self {
            ending: Ending::Answer(reason),
            status: reason.status(),
            traffic: Traffic::default(),
            request_is_done: false,
            reset: None,
        }
    }

    /// The end of an exchange.
    pub(super) fn of(ending: Ending, progress: &Progress) -> Self {
        Self {
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
}
