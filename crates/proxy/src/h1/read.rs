//! The reading half of an HTTP/1.1 connection: bytes that arrived, and how the body among them is delimited.
//!
//! Used on both sides, for requests from clients and for responses from backends. Knows nothing of heads beyond where the
//! body after them ends.

use std::{
    io,
    task::{Context, Poll, ready},
};

use http::HeaderMap;
use tokio::io::AsyncRead;

use super::{
    chunked::{Chunks, Step},
    head::BodyLength,
};
use crate::{
    forward::{BodyError, Fill},
    worker::{Buffer, Stock},
};

/// Bytes read from a connection and the body that stands in them.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// What was read and not yet used.
    pub(crate) buffer: Buffer,
    body: Body,
    /// How many bytes at the front of the buffer are payload.
    payload: usize,
    trailers: Option<Box<HeaderMap>>,
}

#[derive(Debug, Default)]
enum Body {
    #[default]
    Done,
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

impl Reader {
    /// Says how the body that begins at the front of the buffer is delimited.
    pub(crate) fn begin(&mut self, length: BodyLength, is_lenient: bool) {
        self.payload = 0;
        self.trailers = None;
        self.body = match length {
            BodyLength::Known(0) => Body::Done,
            BodyLength::Known(length) => Body::Length(length),
            BodyLength::Chunked if is_lenient => Body::Chunked(Chunks::lenient()),
            BodyLength::Chunked => Body::Chunked(Chunks::strict()),
            BodyLength::UntilClose => Body::UntilClose,
        };
    }

    /// Whether the body was read to its end.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.body, Body::Done)
    }

    /// Whether payload is at hand without reading.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Reads on until there is payload, or the end.
    pub(crate) fn poll_fill<S: AsyncRead + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        stock: &Stock,
    ) -> Poll<Result<Fill, BodyError>> {
        if self.payload > 0 {
            return Poll::Ready(Ok(Fill::Data));
        }
        loop {
            let there = self.buffer.len();
            match &mut self.body {
                Body::Done => return Poll::Ready(Ok(Fill::End)),
                Body::Length(left) => {
                    if there > 0 {
                        self.payload = usize::try_from(*left).map_or(there, |left| left.min(there));
                        return Poll::Ready(Ok(Fill::Data));
                    }
                }
                Body::UntilClose => {
                    if there > 0 {
                        self.payload = there;
                        return Poll::Ready(Ok(Fill::Data));
                    }
                }
                Body::Chunked(chunks) => match chunks.step(self.buffer.filled()) {
                    Ok(Step::Framing(count)) => {
                        self.buffer.consume(count);
                        continue;
                    }
                    Ok(Step::Payload(count)) => {
                        self.payload = count;
                        return Poll::Ready(Ok(Fill::Data));
                    }
                    Ok(Step::End(count, trailers)) => {
                        self.buffer.consume(count);
                        self.trailers = trailers;
                        self.body = Body::Done;
                        continue;
                    }
                    Ok(Step::NeedMore) => self.buffer.reserve(LONGEST_FRAMING),
                    Err(_) => return Poll::Ready(Err(BodyError::Malformed)),
                },
            }
            match ready!(self.buffer.poll_read(context, stream, stock)) {
                Ok(0) if matches!(self.body, Body::UntilClose) => self.body = Body::Done,
                Ok(0) => return Poll::Ready(Err(BodyError::Truncated)),
                Ok(_) => {}
                // Trailers that fit no buffer.
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                    return Poll::Ready(Err(BodyError::Malformed));
                }
                Err(_) => return Poll::Ready(Err(BodyError::Broken)),
            }
        }
    }

    /// The payload at the front.
    pub(crate) fn filled(&self) -> &[u8] {
        self.buffer.filled().get(..self.payload).unwrap_or_default()
    }

    /// Forgets payload.
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.payload);
        self.payload -= count;
        self.buffer.consume(count);
        match &mut self.body {
            Body::Length(left) => {
                *left = left.saturating_sub(count as u64);
                if *left == 0 {
                    self.body = Body::Done;
                }
            }
            Body::Chunked(chunks) => chunks.used(count),
            Body::Done | Body::UntilClose => {}
        }
    }

    /// The trailers of the body that was read to its end.
    pub(crate) fn take_trailers(&mut self) -> Option<Box<HeaderMap>> {
        self.trailers.take()
    }
}

/// More than any chunk's size line or trailers may take.
const LONGEST_FRAMING: usize = 64 * 1024;

#[cfg(test)]
mod tests;
