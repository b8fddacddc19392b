//! One HTTP/2 stream as one side of an exchange. Receiving works alike on both sides; sending starts differently.

use std::{
    io,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream, server::SendResponse};
use http::HeaderMap;

use super::heads;
use crate::forward::{BodyError, Changes, Downstream, Fill, Incoming, LocalAnswer, Outgoing, ResponseView, Watched};

/// The receiving half of a stream.
#[derive(Debug)]
pub(crate) struct Receiving {
    stream: RecvStream,
    chunk: Bytes,
    trailers: Option<Box<HeaderMap>>,
    is_done: bool,
}

impl Receiving {
    /// Wraps a stream.
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            chunk: Bytes::new(),
            trailers: None,
            is_done: false,
        }
    }

    /// Whether nothing is left, without asking further.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunk.is_empty() && (self.is_done || self.stream.is_end_stream())
    }

    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        while self.chunk.is_empty() {
            if self.is_done {
                return Poll::Ready(Ok(Fill::End));
            }
            match ready!(self.stream.poll_data(context)) {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(error)) => return Poll::Ready(Err(body_error(&error))),
                None => match ready!(self.stream.poll_trailers(context)) {
                    Ok(trailers) => {
                        self.trailers = trailers.map(Box::new);
                        self.is_done = true;
                    }
                    Err(error) => return Poll::Ready(Err(body_error(&error))),
                },
            }
        }
        Poll::Ready(Ok(Fill::Data))
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.chunk
    }

    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.chunk.len());
        self.chunk.advance(count);
        self.release(count);
    }

    pub(crate) fn take(&mut self, most: usize) -> Bytes {
        let bytes = self.chunk.split_to(most.min(self.chunk.len()));
        self.release(bytes.len());
        bytes
    }

    pub(crate) fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.trailers.take()
    }

    /// Lets the sender send as much again.
    fn release(&mut self, count: usize) {
        // Fails only when the stream is gone, which shows elsewhere.
        _ = self.stream.flow_control().release_capacity(count);
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub(crate) struct Sending {
    stream: SendStream<Bytes>,
    is_ended: bool,
}

impl Sending {
    /// Wraps a stream, which may have ended with its head.
    pub(crate) fn new(stream: SendStream<Bytes>, is_ended: bool) -> Self {
        Self { stream, is_ended }
    }

    pub(crate) fn poll_push<I: Incoming>(&mut self, context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>> {
        if self.is_ended {
            let count = from.filled().len();
            from.consume(count);
            return Poll::Ready(Ok(()));
        }
        self.stream.reserve_capacity(from.filled().len());
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        let bytes = from.take(self.stream.capacity());
        self.is_ended = from.is_finished();
        self.stream.send_data(bytes, self.is_ended).map_err(io::Error::other)?;
        Poll::Ready(Ok(()))
    }

    pub(crate) fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()> {
        if std::mem::replace(&mut self.is_ended, true) {
            return Ok(());
        }
        match trailers {
            Some(trailers) => self.stream.send_trailers(*trailers),
            None => self.stream.send_data(Bytes::new(), true),
        }
        .map_err(io::Error::other)
    }

    pub(crate) fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<Result<h2::Reason, h2::Error>> {
        self.stream.poll_reset(context)
    }

    pub(crate) fn reset(&mut self, reason: h2::Reason) {
        self.stream.send_reset(reason);
    }
}

fn body_error(error: &h2::Error) -> BodyError {
    match error.reason() {
        Some(reason) if error.is_reset() => BodyError::Reset(reason),
        _ if error.is_io() => BodyError::Broken,
        _ => BodyError::Truncated,
    }
}

/// The client's side of an exchange.
#[derive(Debug)]
pub(super) struct ServerStream {
    pub(super) receiving: Receiving,
    respond: SendResponse<Bytes>,
    sending: Option<Sending>,
    /// Whether the response has no body, whatever its head says.
    is_head: bool,
}

impl ServerStream {
    pub(super) fn new(receiving: RecvStream, respond: SendResponse<Bytes>, is_head: bool) -> Self {
        Self {
            receiving: Receiving::new(receiving),
            respond,
            sending: None,
            is_head,
        }
    }

    /// Answers in our own name.
    pub(super) fn answer(&mut self, answer: &LocalAnswer) {
        let (head, text) = heads::answer(answer);
        let is_empty = text.is_empty() || self.is_head;
        // A client that is gone gets no answer.
        if let Ok(mut stream) = self.respond.send_response(head, is_empty)
            && !is_empty
        {
            _ = stream.send_data(text, true);
        }
    }

    /// Breaks the stream off.
    pub(super) fn abort(&mut self, reason: h2::Reason) {
        match &mut self.sending {
            Some(sending) => sending.reset(reason),
            None => self.respond.send_reset(reason),
        }
    }
}

impl Downstream for ServerStream {
    fn start(&mut self, response: &ResponseView<'_>, changes: Changes<'_>, _request_is_done: bool) -> io::Result<()> {
        let head = heads::response(response, changes).ok_or(io::ErrorKind::InvalidData)?;
        let is_ended = response.body.is_empty() || self.is_head;
        let stream = self.respond.send_response(head, is_ended).map_err(io::Error::other)?;
        self.sending = Some(Sending::new(stream, is_ended));
        Ok(())
    }

    fn interim(&mut self, response: &ResponseView<'_>) {
        if let Some(head) = heads::response(response, Changes::default()) {
            // Advice: a client that does not get it gets the final response all the same.
            _ = self.respond.send_informational(head);
        }
    }

    fn switch(&mut self, _response: &ResponseView<'_>, _changes: Changes<'_>) {
        // HTTP/2 has no upgrades, so none is ever asked for here.
    }

    fn poll_has_body(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.receiving.poll_fill(context).map(|_| ())
    }

    fn poll_watch(&mut self, context: &mut Context<'_>) -> Poll<Watched> {
        let reset = match &mut self.sending {
            Some(sending) => sending.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        reset.map(|_| Watched::Gone)
    }
}

impl Incoming for ServerStream {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        self.receiving.poll_fill(context)
    }

    fn filled(&self) -> &[u8] {
        self.receiving.filled()
    }

    fn consume(&mut self, count: usize) {
        self.receiving.consume(count);
    }

    fn take(&mut self, most: usize) -> Bytes {
        self.receiving.take(most)
    }

    fn is_finished(&self) -> bool {
        self.receiving.is_empty()
    }

    fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.receiving.take_trailers()
    }
}

impl Outgoing for ServerStream {
    fn poll_push<I: Incoming>(&mut self, context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>> {
        match &mut self.sending {
            Some(sending) => sending.poll_push(context, from),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()> {
        match &mut self.sending {
            Some(sending) => sending.finish(trailers),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn poll_flush(&mut self, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection's own task sends.
        Poll::Ready(Ok(()))
    }
}
