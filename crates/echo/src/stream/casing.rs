//! Writes chosen header names in the case a client asked for.
//!
//! The HTTP library keeps header names in lower case and writes them in one style, while the contract wants the names
//! of `X-Echo-Set-Header` as they were given: proxies must cope with backends of any case. The handler names them
//! before it answers; the next response head that leaves is rewritten, name by name, same length for same length.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[cfg(test)]
mod tests;

/// The names to restore in the next response head of a connection.
#[derive(Default)]
pub(crate) struct HeaderCasing {
    // Checked on every write, so that responses without wishes pay one load.
    is_wanted: AtomicBool,
    names: Mutex<Vec<String>>,
}

impl HeaderCasing {
    pub(crate) fn restore(&self, names: Vec<String>) {
        if !names.is_empty() {
            *self.names.lock() = names;
            self.is_wanted.store(true, Ordering::Release);
        }
    }

    fn rewritten(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for name in self.names.lock().iter() {
            rewrite(&mut bytes, name.as_bytes());
        }
        bytes
    }

    fn done(&self) {
        self.is_wanted.store(false, Ordering::Release);
        self.names.lock().clear();
    }
}

fn rewrite(bytes: &mut [u8], name: &[u8]) {
    let mut line_start = false;
    for start in 0..bytes.len() {
        if line_start
            && let Some((found, after)) = bytes
                .get_mut(start..)
                .and_then(|rest| rest.split_at_mut_checked(name.len()))
            && after.first() == Some(&b':')
            && found.eq_ignore_ascii_case(name)
        {
            found.copy_from_slice(name);
        }
        line_start = bytes.get(start) == Some(&b'\n');
    }
}

pub(crate) struct CasingStream<S> {
    stream: S,
    casing: Arc<HeaderCasing>,
}

impl<S> CasingStream<S> {
    pub(crate) fn new(stream: S, casing: Arc<HeaderCasing>) -> Self {
        Self { stream, casing }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CasingStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> CasingStream<S> {
    fn poll_write_rewritten(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let rewritten = self.casing.rewritten(bytes);
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, &rewritten))?;
        // After a short write the rest of the head comes again, and is rewritten again.
        if rewritten
            .get(..written)
            .is_some_and(|sent| sent.windows(4).any(|window| window == b"\r\n\r\n"))
        {
            self.casing.done();
        }
        Poll::Ready(Ok(written))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CasingStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.casing.is_wanted.load(Ordering::Acquire) {
            return self.poll_write_rewritten(context, bytes);
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.casing.is_wanted.load(Ordering::Acquire) {
            // The head is in the first slice; the caller brings the others again.
            let first = slices
                .iter()
                .find(|slice| !slice.is_empty())
                .map(|slice| &**slice)
                .unwrap_or_default();
            return self.poll_write_rewritten(context, first);
        }
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
