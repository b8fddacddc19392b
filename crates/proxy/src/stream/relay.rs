//! Carries bytes in both directions until both sides are done.
//!
//! Each direction ends by itself, so that a side that has said everything still hears the answer. Small messages are
//! copied, which costs one read and one write; where much moves between two connections in clear text it goes through a
//! pipe, and never leaves the kernel.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use super::{
    Side,
    pipes::{Lease, Moved},
    side::poll_write_last,
};
use crate::{
    forward::Client,
    metrics::ListenerCounters,
    worker::{Buffer, Worker},
};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Both sides were done.
    Complete,
    /// One side broke.
    Broken,
    /// Nothing moved for too long.
    Idle,
}

/// So many bytes in one go make it worth to take a pipe.
const BULK: u64 = 64 * 1024;

/// So many bytes are carried before others get their turn.
const MOST_AT_ONCE: u64 = 2 * 1024 * 1024;

/// How far a direction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Bytes may come.
    #[default]
    Open,
    /// No more bytes come; those that are here have to go.
    Ended,
    /// The receiver knows that no more bytes come.
    Closed,
    /// The receiver takes no more bytes.
    Refused,
}

/// Why nothing more can be carried.
struct Broken;

/// One direction.
#[derive(Default)]
struct Direction {
    stage: Stage,
    buffer: Buffer,
    pipe: Option<Lease>,
    /// Bytes that were handed over.
    moved: u64,
    /// Whether much moved the last time.
    is_bulk: bool,
    needs_flush: bool,
    /// Whether the sender broke after its last bytes, which still have to go.
    has_failed: bool,
}

/// Carries bytes until both sides have ended, one breaks, or nothing has moved for too long.
pub(super) async fn relay<A: Side, B: Side>(
    client_side: &mut A,
    backend_side: &mut B,
    client: &Client,
    counters: &ListenerCounters,
    patience: Duration,
) -> Outcome {
    let worker = &*client.worker;
    let deadline = &client.deadline;
    let (mut up, mut down) = (Direction::default(), Direction::default());
    deadline.set(Instant::now(), patience);
    let outcome = poll_fn(|context| {
        let before = (up.moved, down.moved);
        let polled = up
            .poll(context, client_side, backend_side, worker, down.stage == Stage::Closed)
            .and_then(|()| down.poll(context, backend_side, client_side, worker, up.stage == Stage::Closed));
        let (received, sent) = (up.moved - before.0, down.moved - before.1);
        if received > 0 {
            counters.received.add(received);
        }
        if sent > 0 {
            counters.sent.add(sent);
        }
        if polled.is_err() {
            return Poll::Ready(Outcome::Broken);
        }
        match (up.stage, down.stage) {
            (Stage::Refused, Stage::Refused) => return Poll::Ready(Outcome::Broken),
            // A side that listens no more may still have said everything: that must not be lost on the way.
            (Stage::Closed | Stage::Refused, Stage::Closed | Stage::Refused) => return Poll::Ready(Outcome::Complete),
            _ => {}
        }
        if received + sent > 0 {
            deadline.set(Instant::now(), patience);
        }
        deadline.poll(context).map(|()| Outcome::Idle)
    })
    .await;
    up.release(worker);
    down.release(worker);
    outcome
}

impl Direction {
    /// Carries what can be carried now.
    fn poll<A: Side, B: Side>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut A,
        to: &mut B,
        worker: &Worker,
        is_last: bool,
    ) -> Result<(), Broken> {
        if matches!(self.stage, Stage::Closed | Stage::Refused) {
            return Ok(());
        }
        let before = self.moved;
        let polled = self.carry(context, from, to, worker, is_last);
        self.is_bulk = self.moved - before >= BULK;
        match polled {
            Ok(Poll::Pending) => Ok(()),
            Ok(Poll::Ready(())) => {
                self.release(worker);
                Ok(())
            }
            Err(Failed::Read) => Err(Broken),
            // What the receiver has said before it went away is still worth hearing.
            Err(Failed::Write) => {
                self.stage = Stage::Refused;
                self.buffer.consume(self.buffer.len());
                self.release(worker);
                Ok(())
            }
        }
    }

    /// Ready when the receiver knows that no more bytes come.
    fn carry<A: Side, B: Side>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut A,
        to: &mut B,
        worker: &Worker,
        is_last: bool,
    ) -> Result<Poll<()>, Failed> {
        let before = self.moved;
        loop {
            if self.deliver(context, to)?.is_pending() {
                return Ok(Poll::Pending);
            }
            if self.has_failed {
                return Err(Failed::Read);
            }
            if self.moved - before >= MOST_AT_ONCE {
                context.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            if self.stage == Stage::Ended {
                if is_last && to.plain().is_some() {
                    // Both sides are done: closing says the same.
                    self.stage = Stage::Closed;
                    return Ok(Poll::Ready(()));
                }
                return match Pin::new(&mut *to).poll_shutdown(context) {
                    Poll::Ready(Ok(())) => {
                        self.stage = Stage::Closed;
                        Ok(Poll::Ready(()))
                    }
                    Poll::Ready(Err(_)) => Err(Failed::Write),
                    Poll::Pending => Ok(Poll::Pending),
                };
            }
            let wants_pipe = self.is_bulk || self.moved - before >= BULK;
            let read = match (from.plain(), to.plain()) {
                (Some(from), Some(_)) if wants_pipe && self.take_pipe(worker) => self.fill_pipe(context, from, worker),
                (_, to) => self.read(context, from, to.is_some(), worker),
            };
            match read {
                Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(_)) => return Err(Failed::Read),
                Poll::Pending => {
                    self.give_pipe(worker);
                    if self.needs_flush {
                        match Pin::new(&mut *to).poll_flush(context) {
                            Poll::Ready(Ok(())) => self.needs_flush = false,
                            Poll::Ready(Err(_)) => return Err(Failed::Write),
                            Poll::Pending => {}
                        }
                    }
                    return Ok(Poll::Pending);
                }
            }
        }
    }

    /// Reads once; and once more if that was the last the sender has to say, so that its end goes with its last bytes.
    fn read<A: Side>(
        &mut self,
        context: &mut Context<'_>,
        from: &mut A,
        is_to_plain: bool,
        worker: &Worker,
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.buffer.poll_read(context, from, &worker.stock))?;
        if count > 0 && is_to_plain && self.buffer.make_room() && from.has_ended(context) {
            match self.buffer.poll_read(context, from, &worker.stock) {
                Poll::Ready(Ok(0)) => self.stage = Stage::Ended,
                // A backend that has answered early and closes on what it did not read resets the connection.
                Poll::Ready(Err(error)) if error.kind() != io::ErrorKind::Interrupted => self.has_failed = true,
                Poll::Ready(_) | Poll::Pending => {}
            }
        }
        Poll::Ready(Ok(count))
    }

    /// Hands over what is here. Ready when nothing is left.
    fn deliver<B: Side>(&mut self, context: &mut Context<'_>, to: &mut B) -> Result<Poll<()>, Failed> {
        while !self.buffer.is_empty() {
            let written = match to.plain() {
                Some(to) if self.stage == Stage::Ended => poll_write_last(to, context, self.buffer.filled()),
                _ => Pin::new(&mut *to).poll_write(context, self.buffer.filled()),
            };
            match written {
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.buffer.consume(count);
                    self.moved += count as u64;
                    self.needs_flush = true;
                }
                Poll::Ready(_) => return Err(Failed::Write),
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        let (Some(pipe), Some(to)) = (&mut self.pipe, to.plain()) else {
            return Ok(Poll::Ready(()));
        };
        while !pipe.is_empty() {
            match pipe.poll_empty(context, to) {
                Poll::Ready(Ok(count)) if count > 0 => self.moved += count as u64,
                Poll::Ready(_) => return Err(Failed::Write),
                Poll::Pending => return Ok(Poll::Pending),
            }
        }
        Ok(Poll::Ready(()))
    }

    fn take_pipe(&mut self, worker: &Worker) -> bool {
        if self.pipe.is_none() {
            self.pipe = worker.pipes.take();
        }
        self.pipe.is_some()
    }

    fn fill_pipe(
        &mut self,
        context: &mut Context<'_>,
        from: &tokio::net::TcpStream,
        worker: &Worker,
    ) -> Poll<io::Result<usize>> {
        let Some(pipe) = &mut self.pipe else {
            return Poll::Ready(Err(io::ErrorKind::Interrupted.into()));
        };
        match pipe.poll_fill(context, from) {
            Poll::Ready(Ok(Moved::Bytes(count))) => Poll::Ready(Ok(count)),
            Poll::Ready(Ok(Moved::Unsupported)) => {
                worker.pipes.give_up();
                self.pipe = None;
                // Another turn, which copies.
                Poll::Ready(Err(io::ErrorKind::Interrupted.into()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn give_pipe(&mut self, worker: &Worker) {
        if let Some(pipe) = self.pipe.take() {
            worker.pipes.give(&pipe);
        }
    }

    /// Gives back what was taken.
    fn release(&mut self, worker: &Worker) {
        self.buffer.release(&worker.stock);
        self.give_pipe(worker);
    }
}

/// Which side failed.
enum Failed {
    Read,
    Write,
}
