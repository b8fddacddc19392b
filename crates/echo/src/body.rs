//! Bodies: what is done with those that come, and the kinds that go.
//!
//! Used by the HTTP and gRPC handlers. A body is never held in memory as a whole, so its size does not matter.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Either, Full, combinators::UnsyncBoxBody};
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::backend::Ending;

/// The body of an answer: one buffer, or anything else.
pub(crate) type AnswerBody = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Severed>>;

/// The exchange ends here, without a proper answer.
#[derive(Debug, thiserror::Error)]
#[error("the exchange was cut off")]
pub(crate) struct Severed;

pub(crate) fn full(bytes: impl Into<Bytes>) -> AnswerBody {
    Either::Left(Full::new(bytes.into()))
}

pub(crate) fn boxed(body: impl Body<Data = Bytes, Error = Severed> + Send + 'static) -> AnswerBody {
    Either::Right(body.boxed_unsync())
}

/// Reads a body to its end and forgets it.
pub(crate) async fn discard(mut body: Incoming) -> Result<(), Severed> {
    while let Some(frame) = body.frame().await {
        frame.map_err(|_| Severed)?;
    }
    Ok(())
}

/// What a body was.
pub(crate) struct Measured {
    pub(crate) bytes: u64,
    pub(crate) hash: u64,
    pub(crate) trailers: HeaderMap,
}

/// Reads a body to its end and measures it.
pub(crate) async fn measure(mut body: Incoming) -> Result<Measured, Severed> {
    let mut measured = Measured {
        bytes: 0,
        hash: fnv(FNV_START, b""),
        trailers: HeaderMap::new(),
    };
    while let Some(frame) = body.frame().await {
        match frame.map_err(|_| Severed)?.into_data() {
            Ok(data) => {
                measured.bytes += u64::try_from(data.len()).unwrap_or_default();
                measured.hash = fnv(measured.hash, &data);
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    measured.trailers.extend(trailers);
                }
            }
        }
    }
    Ok(measured)
}

/// The start value of [`fnv`].
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a with 64 bits: enough to see whether bytes came through, and easily written again by a test in any language.
pub(crate) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A body that asks for the end of its connection once it has been sent.
///
/// The wish comes after the response head has left, so the head does not announce it.
pub(crate) struct LastBody {
    inner: Full<Bytes>,
    ending: Arc<Ending>,
}

impl LastBody {
    pub(crate) fn new(bytes: Bytes, ending: Arc<Ending>) -> Self {
        Self {
            inner: Full::new(bytes),
            ending,
        }
    }
}

impl Drop for LastBody {
    fn drop(&mut self) {
        self.ending.hang_up();
    }
}

impl Body for LastBody {
    type Data = Bytes;
    type Error = Severed;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Severed>>> {
        Pin::new(&mut self.inner)
            .poll_frame(context)
            .map_err(|impossible| match impossible {})
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
