//! A client whose body is remembered, so that it can be sent once more, and copied to mirrors as it passes.
//!
//! Only the requests of rules that retry, mirror or ask about bodies go through here; memory is bounded, and a body that
//! outgrows it passes all the same but cannot be sent again.

use std::{
    io,
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;

use super::{BodyError, Changes, Downstream, Fill, Incoming, Outgoing, ResponseView, Watched, mirror::Feed};
use crate::worker::Worker;

/// Most bytes of bodies that one worker remembers at once.
const MOST_IN_ALL: usize = 64 * 1024 * 1024;

/// The beginning of a body, or all of it.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    /// Whether nothing follows.
    pub(super) is_whole: bool,
    pub(super) trailers: Option<Box<HeaderMap>>,
    worker: Rc<Worker>,
}

impl Kept {
    /// Nothing yet.
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        Self {
            bytes: Vec::new(),
            is_whole: false,
            trailers: None,
            worker: Rc::clone(worker),
        }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds bytes, unless the worker remembers too much already.
    #[must_use]
    pub(super) fn add(&mut self, bytes: &[u8]) -> bool {
        let in_all = self.worker.remembered.get() + bytes.len();
        if in_all > MOST_IN_ALL {
            return false;
        }
        self.worker.remembered.set(in_all);
        self.bytes.extend_from_slice(bytes);
        true
    }

    fn clear(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.worker.remembered.set(self.worker.remembered.get() - bytes.len());
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A client with a remembered body.
#[derive(Debug)]
pub(super) struct Replay<'a, D> {
    client: &'a mut D,
    kept: Kept,
    /// How much of what is kept was passed on in this attempt.
    at: usize,
    /// Most bytes that are kept.
    limit: usize,
    /// Whether everything that was read is kept.
    has_all: bool,
    feeds: Vec<Feed>,
}

impl<'a, D: Downstream> Replay<'a, D> {
    /// Remembers up to so many bytes beyond those that are kept already, and feeds mirrors.
    pub(super) fn new(client: &'a mut D, kept: Kept, limit: usize, feeds: Vec<Feed>) -> Self {
        let mut replay = Self {
            client,
            at: 0,
            limit,
            has_all: true,
            feeds,
            kept,
        };
        if !replay.feeds.is_empty() && !replay.kept.bytes.is_empty() {
            let bytes = Bytes::copy_from_slice(&replay.kept.bytes);
            replay.feed(&bytes);
        }
        if replay.kept.is_whole {
            replay.finish_feeds();
        }
        replay
    }

    fn is_replaying(&self) -> bool {
        self.at < self.kept.bytes.len()
    }

    fn feed(&mut self, bytes: &Bytes) {
        for feed in &self.feeds {
            feed.push(bytes);
        }
    }

    fn finish_feeds(&mut self) {
        for feed in self.feeds.drain(..) {
            feed.finish(self.kept.trailers.clone());
        }
    }

    /// Remembers bytes that come from the client, as long as there is room.
    fn keep(&mut self, bytes: &[u8]) {
        let has_room = self.has_all && self.kept.bytes.len() + bytes.len() <= self.limit;
        if has_room && self.kept.add(bytes) {
            self.at = self.kept.bytes.len();
        } else {
            self.has_all = false;
            self.kept.clear();
            self.at = 0;
        }
    }
}

impl<D: Downstream> Incoming for Replay<'_, D> {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        if self.is_replaying() {
            return Poll::Ready(Ok(Fill::Data));
        }
        if self.kept.is_whole {
            return Poll::Ready(Ok(Fill::End));
        }
        let fill = ready!(self.client.poll_fill(context))?;
        if fill == Fill::End {
            self.kept.trailers = self.client.take_trailers();
            self.kept.is_whole = true;
            self.finish_feeds();
        }
        Poll::Ready(Ok(fill))
    }

    fn filled(&self) -> &[u8] {
        match self.kept.bytes.get(self.at..) {
            Some(kept) if !kept.is_empty() => kept,
            _ => self.client.filled(),
        }
    }

    fn consume(&mut self, count: usize) {
        if self.is_replaying() {
            self.at = (self.at + count).min(self.kept.bytes.len());
        } else {
            // Taken, so that all that passes is remembered in one place.
            drop(self.take(count));
        }
    }

    fn take(&mut self, most: usize) -> Bytes {
        if let Some(kept) = self.kept.bytes.get(self.at..)
            && !kept.is_empty()
        {
            let bytes = Bytes::copy_from_slice(kept.get(..most).unwrap_or(kept));
            self.at += bytes.len();
            return bytes;
        }
        let bytes = self.client.take(most);
        self.keep(&bytes);
        self.feed(&bytes);
        bytes
    }

    fn is_finished(&self) -> bool {
        if self.kept.is_whole {
            !self.is_replaying() && self.kept.trailers.is_none()
        } else {
            !self.is_replaying() && self.client.is_finished()
        }
    }

    fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.kept.trailers.clone()
    }
}

impl<D: Downstream> Outgoing for Replay<'_, D> {
    fn poll_push<I: Incoming>(&mut self, context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>> {
        self.client.poll_push(context, from)
    }

    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()> {
        self.client.finish(trailers)
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_flush(context)
    }
}

impl<D: Downstream> Downstream for Replay<'_, D> {
    fn start(&mut self, response: &ResponseView<'_>, changes: Changes<'_>, request_is_done: bool) -> io::Result<()> {
        self.client.start(response, changes, request_is_done)
    }

    fn interim(&mut self, response: &ResponseView<'_>) {
        self.client.interim(response);
    }

    fn switch(&mut self, response: &ResponseView<'_>, changes: Changes<'_>) {
        self.client.switch(response, changes);
    }

    fn poll_has_body(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_replaying() || self.kept.is_whole {
            return Poll::Ready(());
        }
        self.client.poll_has_body(context)
    }

    fn poll_watch(&mut self, context: &mut Context<'_>) -> Poll<Watched> {
        self.client.poll_watch(context)
    }

    fn can_rewind(&self) -> bool {
        self.has_all
    }

    fn rewind(&mut self) {
        self.at = 0;
    }
}

#[cfg(test)]
mod tests;
