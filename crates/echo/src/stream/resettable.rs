//! A TCP connection that can end with a reset.
//!
//! The acceptor wraps every connection in it. It can also hold bytes that were read to find out the protocol, and
//! gives them to the next reader.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::backend::Ending;

/// What an HTTP/2 client with prior knowledge sends first.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) struct ResettableStream {
    stream: TcpStream,
    already_read: Bytes,
    ending: Arc<Ending>,
}

impl ResettableStream {
    pub(crate) fn new(stream: TcpStream, ending: Arc<Ending>) -> Self {
        Self {
            stream,
            already_read: Bytes::new(),
            ending,
        }
    }

    /// Whether the client opens with HTTP/2. Reads as much as it takes to tell; nothing is lost to later readers.
    pub(crate) async fn starts_with_http2(&mut self) -> io::Result<bool> {
        let mut bytes = BytesMut::from(self.already_read.as_ref());
        let is_http2 = loop {
            if bytes.starts_with(HTTP2_PREFACE) {
                break true;
            }
            if !HTTP2_PREFACE.starts_with(&bytes) || self.stream.read_buf(&mut bytes).await? == 0 {
                break false;
            }
        };
        self.already_read = bytes.freeze();
        Ok(is_http2)
    }
}

impl Drop for ResettableStream {
    fn drop(&mut self) {
        if self.ending.is_reset() {
            // With no time to linger, closing discards what is unsent and sends RST. If the option cannot be set the
            // peer is gone already.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for ResettableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.already_read.has_remaining() {
            let length = self.already_read.len().min(buffer.remaining());
            buffer.put_slice(&self.already_read.split_to(length));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ResettableStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
