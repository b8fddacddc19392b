//! How a body travels from one side to the other, whatever versions of HTTP the two sides speak.
//!
//! Each side of an exchange is an [`Incoming`] for the body it sends and an [`Outgoing`] for the body it gets. A [`Pump`]
//! moves bytes from one to the other and holds nothing itself: when the receiver does not take more, the sender is not
//! read, so a slow party slows the other down and memory stays bounded.

use std::{
    io,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;

use crate::hygiene::{ConnectionOptions, Fate, RequestHygiene, request_header};

/// Where body bytes come from.
pub(crate) trait Incoming {
    /// Makes at least one byte available, or says that there are no more.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>>;

    /// The bytes available. Never empty after [`Fill::Data`].
    fn filled(&self) -> &[u8];

    /// Forgets bytes at the front.
    fn consume(&mut self, count: usize);

    /// Takes up to so many bytes from the front; without a copy where the source has them shared.
    fn take(&mut self, most: usize) -> Bytes {
        let filled = self.filled();
        let bytes = Bytes::copy_from_slice(filled.get(..most).unwrap_or(filled));
        self.consume(bytes.len());
        bytes
    }

    /// Whether it is already known that nothing follows, no trailers either.
    fn is_finished(&self) -> bool;

    /// The trailers, after the end.
    fn take_trailers(&mut self) -> Option<Box<HeaderMap>>;
}

/// What [`Incoming::poll_fill`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Bytes are available.
    Data,
    /// The body is complete.
    End,
}

/// Why a body cannot be read to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The sender breaks the rules of its protocol.
    Malformed,
    /// The sender went away before the end.
    Truncated,
    /// The connection failed.
    Broken,
    /// The sender cancelled the stream, with this HTTP/2 code.
    Reset(h2::Reason),
}

/// Where body bytes go.
pub(crate) trait Outgoing {
    /// Takes at least one of the bytes available. Pending when the receiver takes no more for now.
    fn poll_push<I: Incoming>(&mut self, context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>>;

    /// Takes note that the body is complete.
    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()>;

    /// Sends on everything that was taken.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// Moves one body from one side to the other.
#[derive(Debug, Default)]
pub(crate) struct Pump {
    state: State,
    /// Bytes moved.
    pub(crate) moved: u64,
    /// What the pump waits for.
    pub(crate) waits_for: Option<Side>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Moving,
    Flushing,
    Done,
}

/// One of the two ends of a pump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The sender.
    Source,
    /// The receiver.
    Sink,
}

/// Why a pump stopped.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// The sender failed.
    Source(BodyError),
    /// The receiver failed.
    Sink,
}

impl PumpError {
    /// What exactly failed makes no difference to what follows.
    #[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
    fn sink(error: io::Error) -> Self {
        tracing::trace!(%error, "the receiver of a body failed");
        Self::Sink
    }
}

/// The trailers that may be passed on: nothing that frames a message, concerns a connection or speaks for the client.
fn passable(mut trailers: Box<HeaderMap>) -> Option<Box<HeaderMap>> {
    let connection = ConnectionOptions::default();
    let hygiene = RequestHygiene {
        connection: &connection,
        is_trusted: false,
        allows_underscores: true,
        is_upgrade: false,
    };
    let names: Vec<_> = trailers.keys().cloned().collect();
    for name in names {
        if request_header(name.as_str().as_bytes(), b"", &hygiene) != Fate::Forward {
            trailers.remove(name);
        }
    }
    (!trailers.is_empty()).then_some(trailers)
}

impl Pump {
    /// Whether the whole body was handed over.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether anything was taken from the sender.
    pub(crate) fn has_begun(&self) -> bool {
        self.moved > 0 || self.state != State::Moving
    }

    /// Moves as much as goes now.
    pub(crate) fn poll<I: Incoming, O: Outgoing>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut I,
        to: &mut O,
    ) -> Poll<Result<(), PumpError>> {
        loop {
            match self.state {
                State::Moving => match from.poll_fill(context) {
                    Poll::Ready(Ok(Fill::Data)) => {
                        let before = from.filled().len();
                        self.waits_for = Some(Side::Sink);
                        ready!(to.poll_push(context, from)).map_err(PumpError::sink)?;
                        self.moved += before.saturating_sub(from.filled().len()) as u64;
                    }
                    Poll::Ready(Ok(Fill::End)) => {
                        let trailers = from.take_trailers().and_then(passable);
                        to.finish(trailers).map_err(PumpError::sink)?;
                        self.state = State::Flushing;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(PumpError::Source(error))),
                    Poll::Pending => {
                        // What is already here must not wait for what is not.
                        self.waits_for = Some(match to.poll_flush(context).map_err(PumpError::sink)? {
                            Poll::Ready(()) => Side::Source,
                            Poll::Pending => Side::Sink,
                        });
                        return Poll::Pending;
                    }
                },
                State::Flushing => {
                    self.waits_for = Some(Side::Sink);
                    ready!(to.poll_flush(context)).map_err(PumpError::sink)?;
                    self.state = State::Done;
                    self.waits_for = None;
                }
                State::Done => return Poll::Ready(Ok(())),
            }
        }
    }
}
