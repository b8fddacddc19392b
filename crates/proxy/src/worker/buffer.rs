//! Read buffers that connections hold only while there are bytes in them.
//!
//! An idle connection has no buffer at all. Reading takes one from the worker's stock and gives it back when nothing was
//! there, so ten thousand waiting connections need a handful of buffers and the few in use stay in the processor's cache.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// The size of an ordinary buffer: a request head, a small body.
pub(crate) const SMALL: usize = 16 * 1024;
/// The size for bodies that keep filling small ones.
pub(crate) const LARGE: usize = 128 * 1024;
/// Most buffers of each kind that a worker keeps for later. Texts are small, and each request under way has several.
const MOST_SMALL: usize = 256;
const MOST_LARGE: usize = 32;
const MOST_TEXTS: usize = 1024;

/// A worker's unused buffers.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    small: RefCell<Vec<Vec<u8>>>,
    large: RefCell<Vec<Vec<u8>>>,
    texts: RefCell<Vec<Vec<u8>>>,
}

impl Stock {
    fn take(&self, size: usize) -> Vec<u8> {
        let kept = if size == LARGE { &self.large } else { &self.small };
        kept.borrow_mut().pop().unwrap_or_else(|| vec![0; size])
    }

    fn give(&self, storage: Vec<u8>) {
        let (kept, most) = match storage.len() {
            SMALL => (&self.small, MOST_SMALL),
            LARGE => (&self.large, MOST_LARGE),
            _ => return,
        };
        let mut kept = kept.borrow_mut();
        if kept.len() < most {
            kept.push(storage);
        }
    }

    /// An empty vector to write to.
    pub(crate) fn take_text(&self) -> Vec<u8> {
        self.texts.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes a vector back.
    pub(crate) fn give_text(&self, mut text: Vec<u8>) {
        let mut texts = self.texts.borrow_mut();
        if text.capacity() <= 2 * SMALL && texts.len() < MOST_TEXTS {
            text.clear();
            texts.push(text);
        }
    }
}

/// Bytes that were read and not yet used.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Empty when no storage is held.
    storage: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether reads came back full, so that a larger buffer pays.
    wants_large: bool,
}

impl Buffer {
    /// The bytes that are there.
    pub(crate) fn filled(&self) -> &[u8] {
        self.storage.get(self.start..self.end).unwrap_or_default()
    }

    /// How many bytes are there.
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether no bytes are there.
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Moves the bytes to the front if that makes room. Says whether there is room for another read.
    pub(crate) fn make_room(&mut self) -> bool {
        if self.start > 0 && self.end == self.storage.len() {
            self.storage.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.storage.is_empty() || self.end < self.storage.len()
    }

    /// Forgets bytes at the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Gives the storage back if nothing is in it.
    pub(crate) fn release(&mut self, stock: &Stock) {
        if self.is_empty() && !self.storage.is_empty() {
            stock.give(std::mem::take(&mut self.storage));
            self.start = 0;
            self.end = 0;
            self.wants_large = false;
        }
    }

    /// Makes room for at least one more byte, as long as the whole stays within `limit`.
    pub(crate) fn reserve(&mut self, limit: usize) {
        if !self.make_room() && self.storage.len() < limit {
            let size = (self.storage.len() * 2).min(limit);
            self.storage.resize(size, 0);
        }
    }

    /// Reads once. Ready with zero at the end of the stream; fails with `OutOfMemory` when there is no room.
    pub(crate) fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        stock: &Stock,
    ) -> Poll<io::Result<usize>> {
        if self.is_empty() && self.wants_large && self.storage.len() == SMALL {
            stock.give(std::mem::take(&mut self.storage));
        }
        if self.storage.is_empty() {
            self.storage = stock.take(if self.wants_large { LARGE } else { SMALL });
        }
        let Some(room) = self.storage.get_mut(self.end..).filter(|room| !room.is_empty()) else {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        };
        let mut room = ReadBuf::new(room);
        let outcome = Pin::new(stream).poll_read(context, &mut room);
        let (count, is_filled) = (room.filled().len(), room.remaining() == 0);
        self.end += count;
        self.wants_large |= is_filled;
        if self.is_empty() && outcome.is_pending() {
            stock.give(std::mem::take(&mut self.storage));
        }
        ready!(outcome)?;
        Poll::Ready(Ok(count))
    }
}

#[cfg(test)]
mod tests;
