//! A request that no client sent: a copy for a mirror, a question to an authoriser. Takes the client's place in an exchange.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{BodyError, Changes, Downstream, Fill, Incoming, Outgoing, ResponseView, Watched, response_fields};

/// Most bytes of a body that wait for a slow receiver; one that falls further behind is given up.
const MOST_LAG: usize = 256 * 1024;

/// A body on its way from one task to another.
#[derive(Debug, Default)]
pub(super) struct Queue {
    chunks: RefCell<VecDeque<Bytes>>,
    waiting: Cell<usize>,
    end: RefCell<End>,
    waker: RefCell<Option<Waker>>,
}

#[derive(Debug, Default)]
enum End {
    #[default]
    Open,
    Whole(Option<Box<HeaderMap>>),
    Broken,
}

impl Queue {
    /// Adds bytes; never waits.
    pub(super) fn push(&self, bytes: &Bytes) {
        if !matches!(*self.end.borrow(), End::Open) {
            return;
        }
        if self.waiting.get() + bytes.len() > MOST_LAG {
            self.break_off();
            return;
        }
        self.waiting.set(self.waiting.get() + bytes.len());
        self.chunks.borrow_mut().push_back(bytes.clone());
        self.wake();
    }

    /// Ends the body.
    pub(super) fn finish(&self, trailers: Option<Box<HeaderMap>>) {
        let mut end = self.end.borrow_mut();
        if matches!(*end, End::Open) {
            *end = End::Whole(trailers);
            self.wake();
        }
    }

    /// Gives the body up, unless it has ended.
    pub(super) fn break_off(&self) {
        let mut end = self.end.borrow_mut();
        if matches!(*end, End::Open) {
            *end = End::Broken;
            self.chunks.borrow_mut().clear();
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The sender of a request that no client sent.
#[derive(Debug)]
pub(super) struct Aside {
    chunk: Bytes,
    queue: Option<Rc<Queue>>,
    trailers: Option<Box<HeaderMap>>,
    /// What is kept of the response, if anything.
    pub(super) heard: Option<Box<Heard>>,
}

/// A response.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) status: u16,
    pub(super) fields: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<Box<HeaderMap>>,
    /// Most bytes of the body.
    pub(super) limit: usize,
}

impl Aside {
    /// A request whose body comes from a queue, or that has none. Its response is dropped.
    pub(super) fn copy(queue: Option<Rc<Queue>>) -> Self {
        Self {
            chunk: Bytes::new(),
            queue,
            trailers: None,
            heard: None,
        }
    }

    /// A request with this body. Its response is kept.
    pub(super) fn question(body: Bytes, limit: usize) -> Self {
        Self {
            chunk: body,
            queue: None,
            trailers: None,
            heard: Some(Box::new(Heard {
                limit,
                ..Heard::default()
            })),
        }
    }
}

impl Incoming for Aside {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        if !self.chunk.is_empty() {
            return Poll::Ready(Ok(Fill::Data));
        }
        let Some(queue) = &self.queue else {
            return Poll::Ready(Ok(Fill::End));
        };
        if let Some(chunk) = queue.chunks.borrow_mut().pop_front() {
            queue.waiting.set(queue.waiting.get().saturating_sub(chunk.len()));
            self.chunk = chunk;
            return Poll::Ready(Ok(Fill::Data));
        }
        match &mut *queue.end.borrow_mut() {
            End::Open => {
                *queue.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
            End::Whole(trailers) => {
                self.trailers = self.trailers.take().or_else(|| trailers.take());
                Poll::Ready(Ok(Fill::End))
            }
            End::Broken => Poll::Ready(Err(BodyError::Broken)),
        }
    }

    fn filled(&self) -> &[u8] {
        &self.chunk
    }

    fn consume(&mut self, count: usize) {
        self.chunk.advance(count.min(self.chunk.len()));
    }

    fn take(&mut self, most: usize) -> Bytes {
        self.chunk.split_to(most.min(self.chunk.len()))
    }

    fn is_finished(&self) -> bool {
        self.chunk.is_empty() && self.queue.is_none()
    }

    fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.trailers.take()
    }
}

impl Outgoing for Aside {
    fn poll_push<I: Incoming>(&mut self, _context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>> {
        let count = from.filled().len();
        if let Some(heard) = &mut self.heard {
            if heard.body.len() + count > heard.limit {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            heard.body.extend_from_slice(from.filled());
        }
        from.consume(count);
        Poll::Ready(Ok(()))
    }

    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()> {
        if let Some(heard) = &mut self.heard {
            heard.trailers = trailers;
        }
        Ok(())
    }

    fn poll_flush(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Downstream for Aside {
    fn start(&mut self, response: &ResponseView<'_>, _changes: Changes<'_>, _request_is_done: bool) -> io::Result<()> {
        if let Some(heard) = &mut self.heard {
            heard.status = response.status;
            // As every response is read: what concerns the connection ends here.
            response_fields(response, Changes::default(), false, |name, value| {
                let name = HeaderName::from_bytes(name.as_bytes());
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
                    heard.fields.push((name, value));
                }
            });
        }
        Ok(())
    }

    fn interim(&mut self, _response: &ResponseView<'_>) {}

    fn switch(&mut self, _response: &ResponseView<'_>, _changes: Changes<'_>) {
        // Nothing of ours asks for an upgrade.
    }

    fn poll_has_body(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn poll_watch(&mut self, _context: &mut Context<'_>) -> Poll<Watched> {
        // Nobody is waiting who could go away; its deadline ends it.
        Poll::Pending
    }
}
