//! The writing half of an HTTP/1.1 connection: bytes not yet sent, and how the body after a head is delimited.
//!
//! A head and a small body leave in one write. Large payloads are written from where they were read, without a copy, when
//! the framing allows it. Used on both sides, for responses to clients and for requests to backends.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::HeaderMap;
use tokio::io::AsyncWrite;

use super::chunked;
use crate::{forward::Incoming, worker::Stock};

/// Payloads up to this size are copied behind what waits to be sent; larger ones are sent from where they are.
const COPY_LIMIT: usize = 8 * 1024;
/// Most bytes that wait to be sent.
const HIGH_WATER: usize = 32 * 1024;

/// Bytes to be written and the body that is being written.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// What waits to be sent: a head, framing, small payloads.
    pub(crate) out: Vec<u8>,
    sent: usize,
    encoding: Encoding,
    /// Bytes sent over the life of the connection.
    pub(crate) total: u64,
}

/// How the body that is written is delimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// There is none; what is pushed is a mistake of the sender and dropped.
    #[default]
    Empty,
    /// So many bytes are still owed.
    Length(u64),
    /// In chunks.
    Chunked,
    /// As it comes, until the connection is closed.
    UntilClose,
}

impl Writer {
    /// Says how the body after the head is delimited.
    pub(crate) fn begin(&mut self, encoding: Encoding) {
        self.encoding = encoding;
    }

    /// Whether everything was sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.sent == self.out.len()
    }

    /// Whether nothing was written of what waits, so that it can still go elsewhere.
    pub(crate) fn is_untouched(&self) -> bool {
        self.sent == 0
    }

    /// Forgets what waits to be sent.
    pub(crate) fn discard(&mut self) {
        self.out.clear();
        self.sent = 0;
    }

    /// Gives memory back that an idle connection does not need.
    pub(crate) fn release(&mut self, stock: &Stock) {
        if self.is_flushed() && self.out.capacity() > 0 {
            self.discard();
            stock.give_text(std::mem::take(&mut self.out));
        }
    }

    /// Gets memory to write to.
    pub(crate) fn prepare(&mut self, stock: &Stock) {
        if self.out.capacity() == 0 {
            self.out = stock.take_text();
        }
    }

    fn waiting(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    /// Takes payload from a source.
    pub(crate) fn poll_push<S: AsyncWrite + Unpin, I: Incoming>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        from: &mut I,
    ) -> Poll<io::Result<()>> {
        if self.out.len() >= HIGH_WATER {
            ready!(self.poll_write(context, stream))?;
        }
        let payload = from.filled();
        match &mut self.encoding {
            Encoding::Empty => {
                let count = payload.len();
                from.consume(count);
                return Poll::Ready(Ok(()));
            }
            Encoding::Chunked => {
                chunked::write_size(&mut self.out, payload.len());
                self.out.extend_from_slice(payload);
                self.out.extend_from_slice(b"\r\n");
                let count = payload.len();
                from.consume(count);
                return Poll::Ready(Ok(()));
            }
            Encoding::Length(left) if (payload.len() as u64) > *left => {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            Encoding::Length(_) | Encoding::UntilClose => {}
        }
        let count = payload.len();
        if count <= COPY_LIMIT {
            self.out.extend_from_slice(payload);
            from.consume(count);
            self.owe_less(count);
            return Poll::Ready(Ok(()));
        }
        let waiting = self.out.get(self.sent..).unwrap_or_default();
        let written = if waiting.is_empty() {
            ready!(Pin::new(stream).poll_write(context, payload))?
        } else {
            let slices = [IoSlice::new(waiting), IoSlice::new(payload)];
            ready!(Pin::new(stream).poll_write_vectored(context, &slices))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let of_waiting = written.min(waiting.len());
        self.advance(of_waiting);
        let of_payload = written - of_waiting;
        from.consume(of_payload);
        self.owe_less(of_payload);
        self.total += of_payload as u64;
        Poll::Ready(Ok(()))
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self, trailers: Option<&HeaderMap>) -> io::Result<()> {
        match std::mem::take(&mut self.encoding) {
            Encoding::Chunked => chunked::write_end(&mut self.out, trailers),
            // The receiver was promised more.
            Encoding::Length(left) if left > 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Encoding::Empty | Encoding::Length(_) | Encoding::UntilClose => {}
        }
        Ok(())
    }

    /// Sends everything that waits.
    pub(crate) fn poll_flush<S: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_write(context, stream))?;
        Pin::new(stream).poll_flush(context)
    }

    fn poll_write<S: AsyncWrite + Unpin>(&mut self, context: &mut Context<'_>, stream: &mut S) -> Poll<io::Result<()>> {
        while !self.is_flushed() {
            let written = ready!(Pin::new(&mut *stream).poll_write(context, self.waiting()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn advance(&mut self, count: usize) {
        self.sent += count;
        self.total += count as u64;
        if self.sent >= self.out.len() {
            self.discard();
        }
    }

    fn owe_less(&mut self, count: usize) {
        if let Encoding::Length(left) = &mut self.encoding {
            *left = left.saturating_sub(count as u64);
        }
    }
}
