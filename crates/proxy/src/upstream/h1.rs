//! One HTTP/1.1 connection to a backend, and the backend's side of an exchange over it.
//!
//! A connection goes back to its endpoint only when the request was sent completely, the response was read to its exact
//! end and nothing followed it. Knows nothing of clients and routes.

use std::{
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use gatewright_ir::UpstreamProtocol;
use http::HeaderMap;
use tokio::io::AsyncWrite;

use super::{Dialed, Endpoint, Lost, Upstream, dial};
use crate::{
    forward::{BodyError, End, Fill, Incoming, Outgoing, ResponseView},
    h1::{BodyLength, Encoding, Reader, Writer, parse_response, slots},
    metrics::Gauge,
    worker::Worker,
};

/// Largest response head.
const MOST_HEAD_BYTES: usize = 128 * 1024;

/// One connection to a backend.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one connection")]
pub(crate) struct Connection {
    pub(crate) stream: Dialed,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    worker: Rc<Worker>,
    /// Whether a request was answered on it before.
    pub(crate) is_reused: bool,
    /// Whether the request under way is a `HEAD`.
    is_head: bool,
    /// Whether any byte of the response has arrived.
    has_response: bool,
    /// How many bytes were searched for the end of the head.
    searched: usize,
    /// Whether another request may follow.
    is_persistent: bool,
    _open: Gauge,
}

impl Connection {
    /// Opens a connection.
    pub(crate) async fn open(endpoint: &Endpoint, worker: &Rc<Worker>) -> io::Result<Box<Self>> {
        let stream = dial(endpoint, UpstreamProtocol::Http1).await?;
        Ok(Box::new(Self {
            stream,
            reader: Reader::default(),
            writer: Writer::default(),
            is_reused: false,
            is_head: false,
            has_response: false,
            searched: 0,
            is_persistent: false,
            _open: worker.metrics.upstream_opened(),
            worker: Rc::clone(worker),
        }))
    }

    /// Whether the backend has neither closed the unused connection nor sent anything on it.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.stream.is_silent()
    }

    /// Prepares the next request: its head, and how its body is delimited.
    pub(crate) fn begin(&mut self, head: &[u8], encoding: Encoding, is_head: bool) {
        self.writer.prepare(&self.worker.stock);
        self.writer.discard();
        self.writer.out.extend_from_slice(head);
        self.writer.begin(encoding);
        self.is_head = is_head;
        self.has_response = false;
        self.searched = 0;
        self.is_persistent = false;
    }

    /// Whether the connection can carry another request.
    pub(crate) fn is_reusable(&self) -> bool {
        self.is_persistent && self.reader.is_done() && !self.reader.has_bytes() && self.writer.is_flushed()
    }

    /// Gives memory back before the connection rests.
    pub(crate) fn rest(&mut self) {
        self.is_reused = true;
        self.reader.buffer.release(&self.worker.stock);
        self.writer.release(&self.worker.stock);
    }

    /// Why the connection is of no more use.
    fn lost(&self) -> Lost {
        if self.has_response {
            Lost::Malformed
        } else {
            Lost::Closed {
                nothing_was_sent: self.writer.is_untouched() && !self.writer.is_flushed(),
            }
        }
    }
}

impl Upstream for Connection {
    fn poll_response<R>(
        &mut self,
        context: &mut Context<'_>,
        handle: impl FnOnce(&ResponseView<'_>) -> R,
    ) -> Poll<Result<R, Lost>> {
        loop {
            let bytes = self.reader.buffer.filled();
            // A head that comes in pieces is parsed when its end is there, not once per piece.
            let from = self.searched.saturating_sub(3);
            if !bytes.is_empty() && (self.searched == 0 || has_end(bytes.get(from..).unwrap_or_default())) {
                let mut slots = slots();
                match parse_response(bytes, &mut slots, self.is_head) {
                    Ok(Some(head)) => {
                        let result = handle(&ResponseView {
                            status: head.status,
                            fields: head.fields,
                            body: head.body,
                            stated_length: head.stated_length,
                        });
                        let (length, body) = (head.length, head.body);
                        self.is_persistent = head.is_persistent && head.status != 101;
                        self.searched = 0;
                        self.reader.buffer.consume(length);
                        self.reader.begin(body, true);
                        return Poll::Ready(Ok(result));
                    }
                    Ok(None) => {}
                    Err(_) => return Poll::Ready(Err(Lost::Malformed)),
                }
            }
            self.searched = bytes.len();
            self.reader.buffer.reserve(MOST_HEAD_BYTES);
            match ready!(
                self.reader
                    .buffer
                    .poll_read(context, &mut self.stream, &self.worker.stock)
            ) {
                Ok(count) if count > 0 => self.has_response = true,
                Ok(_) => return Poll::Ready(Err(self.lost())),
                Err(error) => {
                    // Where a backend refuses our certificate, this is where we hear of it.
                    tracing::debug!(%error, "a connection to a backend broke");
                    return Poll::Ready(Err(self.lost()));
                }
            }
        }
    }
}

/// Whether bytes contain the empty line that ends a head.
fn has_end(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', bytes).any(|at| matches!(bytes.get(at + 1..), Some([b'\n', ..] | [b'\r', b'\n', ..])))
}

impl Incoming for Connection {
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<Fill, BodyError>> {
        self.reader.poll_fill(context, &mut self.stream, &self.worker.stock)
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

impl Outgoing for Connection {
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

impl End for Connection {
    fn become_raw(&mut self) {
        self.reader.begin(BodyLength::UntilClose, true);
        self.writer.begin(Encoding::UntilClose);
    }

    fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.buffer.release(&self.worker.stock);
        self.writer.discard();
        self.writer.release(&self.worker.stock);
    }
}
