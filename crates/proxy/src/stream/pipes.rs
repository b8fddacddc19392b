//! Pipes through which bytes go from one connection to another without leaving the kernel.
//!
//! A worker keeps a few that are empty. A connection holds one only while bytes are in it or keep coming, so their number
//! follows what moves and not what is open. Where the kernel cannot do it, bytes are copied.

use std::{
    cell::{Cell, RefCell},
    io,
    os::fd::OwnedFd,
    rc::Rc,
    task::{Context, Poll, ready},
};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::{io::Interest, net::TcpStream};

/// Most pipes that a worker has at once; each takes two descriptors.
const MOST_PIPES: usize = 512;
/// Most empty pipes that a worker keeps for later.
const MOST_KEPT: usize = 64;
/// How much fits into a pipe, if the system allows it. More moves with each call, less of it stays in the processor's cache.
const SIZE: usize = 256 * 1024;

/// A worker's pipes.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    kept: RefCell<Vec<Rc<Pipe>>>,
    taken: Rc<Cell<usize>>,
    is_unsupported: Cell<bool>,
}

#[derive(Debug)]
struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

/// A pipe in use.
#[derive(Debug)]
pub(super) struct Lease {
    pipe: Rc<Pipe>,
    /// Bytes in it.
    held: usize,
    taken: Rc<Cell<usize>>,
}

/// Connections may end at any time, and their pipes with them.
impl Drop for Lease {
    fn drop(&mut self) {
        self.taken.set(self.taken.get().saturating_sub(1));
    }
}

/// What came of an attempt to move bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes; none at the end.
    Bytes(usize),
    /// Nothing: it has to be done in another way.
    Unsupported,
}

impl Pipes {
    /// An empty pipe, if one can be had.
    pub(super) fn take(&self) -> Option<Lease> {
        if self.is_unsupported.get() || self.taken.get() >= MOST_PIPES {
            return None;
        }
        let kept = self.kept.borrow_mut().pop();
        let pipe = kept.or_else(|| Pipe::new().ok().map(Rc::new))?;
        self.taken.set(self.taken.get() + 1);
        Some(Lease {
            pipe,
            held: 0,
            taken: Rc::clone(&self.taken),
        })
    }

    /// Takes a pipe back. One with bytes in it is of no use to anybody else.
    pub(super) fn give(&self, lease: &Lease) {
        let mut kept = self.kept.borrow_mut();
        if lease.held == 0 && kept.len() < MOST_KEPT {
            kept.push(Rc::clone(&lease.pipe));
        }
    }

    /// Remembers that the kernel does not do this.
    pub(super) fn give_up(&self) {
        tracing::debug!("bytes cannot be moved through a pipe here; they are copied");
        self.is_unsupported.set(true);
    }
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A system may allow less; a small pipe works as well.
        _ = fcntl_setpipe_size(&writer, SIZE);
        Ok(Self { reader, writer })
    }
}

impl Lease {
    /// Whether no bytes are in it.
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves bytes from a connection into the pipe, which must be empty.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>, from: &TcpStream) -> Poll<io::Result<Moved>> {
        loop {
            ready!(from.poll_read_ready(context))?;
            let splice = || Ok(splice(from, None, &self.pipe.writer, None, SIZE, FLAGS)?);
            match from.try_io(Interest::READABLE, splice) {
                Ok(count) => {
                    self.held += count;
                    return Poll::Ready(Ok(Moved::Bytes(count)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if is_unsupported(&error) => return Poll::Ready(Ok(Moved::Unsupported)),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Moves bytes out of the pipe to a connection.
    pub(super) fn poll_empty(&mut self, context: &mut Context<'_>, to: &TcpStream) -> Poll<io::Result<usize>> {
        loop {
            ready!(to.poll_write_ready(context))?;
            let splice = || Ok(splice(&self.pipe.reader, None, to, None, self.held, FLAGS)?);
            match to.try_io(Interest::WRITABLE, splice) {
                Ok(count) => {
                    self.held = self.held.saturating_sub(count);
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

/// Whether the kernel does not move bytes between such descriptors at all.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests;
