//! A client's HTTP/1.1 connection: its two halves, and the client's side of an exchange.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    encode::{self, Manners},
    head::{BodyLength, RequestFraming},
    read::Reader,
    write::{Encoding, Writer},
};
use crate::{
    forward::{
        BodyError, Changes, Client, Downstream, End, Fill, Incoming, LocalAnswer, Outgoing, ResponseView, Watched,
    },
    worker::Stock,
};

/// A client's connection.
#[derive(Debug)]
pub(super) struct Server<'a, S> {
    pub(super) stream: S,
    pub(super) client: &'a Client,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    /// What the request under way said about the connection.
    pub(super) framing: RequestFraming,
    /// Whether the request under way is a `HEAD`.
    pub(super) is_head: bool,
    /// Whether the connection ends after the response under way.
    pub(super) closes: bool,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Server<'a, S> {
    /// A connection on which nothing was read yet.
    pub(super) fn new(stream: S, client: &'a Client) -> Self {
        Self {
            stream,
            client,
            reader: Reader::default(),
            writer: Writer::default(),
            framing: RequestFraming::UNKNOWN,
            is_head: false,
            closes: false,
        }
    }

    pub(super) fn stock(&self) -> &'a Stock {
        let client: &'a Client = self.client;
        &client.worker.stock
    }

    /// Reads more bytes of a head.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stock = self.stock();
        self.reader.buffer.poll_read(context, &mut self.stream, stock)
    }

    /// Writes an answer of our own.
    pub(super) fn answer(&mut self, answer: &LocalAnswer) {
        self.writer.prepare(self.stock());
        let manners = self.manners();
        encode::write_answer(&mut self.writer.out, &answer.content, answer.changes(), manners);
    }

    fn manners(&self) -> Manners {
        Manners {
            is_http10: self.framing.is_http10,
            is_head: self.is_head,
            closes: self.closes,
        }
    }

    /// Gives memory back while the connection waits.
    pub(super) fn rest(&mut self) {
        let stock = self.stock();
        self.reader.buffer.release(stock);
        self.writer.release(stock);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Downstream for Server<'_, S> {
    fn start(&mut self, response: &ResponseView<'_>, changes: Changes<'_>, request_is_done: bool) -> io::Result<()> {
        self.writer.prepare(self.stock());
        self.closes |= self.client.is_leaving();
        // A client that is told no before it has sent everything will not be listened to any longer.
        self.closes |= !request_is_done && (self.framing.expects_continue || response.status >= 400);
        let manners = self.manners();
        let encoding = encode::write_response(&mut self.writer.out, response, changes, manners);
        self.closes |= encoding == Encoding::UntilClose;
        self.writer.begin(encoding);
        Ok(())
    }

    fn interim(&mut self, response: &ResponseView<'_>) {
        // HTTP/1.0 has no interim responses.
        if !self.framing.is_http10 {
            self.writer.prepare(self.stock());
            encode::write_interim(&mut self.writer.out, response);
        }
    }

    fn switch(&mut self, response: &ResponseView<'_>, changes: Changes<'_>) {
        self.writer.prepare(self.stock());
        encode::write_switch(&mut self.writer.out, response, changes);
    }

    fn poll_has_body(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.reader.has_bytes() && self.poll_read(context).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn poll_watch(&mut self, context: &mut Context<'_>) -> Poll<Watched> {
        // Requests that a client sends ahead are read as far as there is room, but not further.
        while self.reader.buffer.make_room() {
            match ready!(self.poll_read(context)) {
                Ok(0) => return Poll::Ready(Watched::HalfClosed),
                Ok(_) => {}
                Err(_) => return Poll::Ready(Watched::Gone),
            }
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Incoming for Server<'_, S> {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        let stock = self.stock();
        self.reader.poll_fill(context, &mut self.stream, stock)
    }

    fn filled(&self) -> &[u8] {
        self.reader.filled()
    }

    fn consume(&mut self, count: usize) {
        self.reader.consume(count);
    }

    fn is_finished(&self) -> bool {
        self.reader.is_done()
    }

    fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.reader.take_trailers()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Outgoing for Server<'_, S> {
    fn poll_push<I: Incoming>(&mut self, context: &mut Context<'_>, from: &mut I) -> Poll<io::Result<()>> {
        self.writer.poll_push(context, &mut self.stream, from)
    }

    fn finish(&mut self, trailers: Option<Box<HeaderMap>>) -> io::Result<()> {
        self.writer.finish(trailers.as_deref())
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.poll_flush(context, &mut self.stream)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> End for Server<'_, S> {
    fn become_raw(&mut self) {
        self.reader.begin(BodyLength::UntilClose, false);
        self.writer.begin(Encoding::UntilClose);
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S> Drop for Server<'_, S> {
    fn drop(&mut self) {
        let stock = &self.client.worker.stock;
        self.reader.buffer.release(stock);
        self.writer.discard();
        self.writer.release(stock);
    }
}
