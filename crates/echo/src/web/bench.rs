//! `/bench/NNN`: the cheapest answer there is, for load generators.
//!
//! Asked first for every request, and free of everything else the backend does, so that a benchmark of a proxy
//! measures the proxy.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response, header};

use super::Answer;
use crate::body::full;

/// The largest body served.
const LARGEST: usize = 1 << 20;

static FILL: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(vec![b'x'; LARGEST]));

/// The answer, if the path is one of these.
pub(super) fn answer(path: &str) -> Option<Answer> {
    let size: usize = path
        .strip_prefix("/bench/")?
        .parse()
        .ok()
        .filter(|size| *size <= LARGEST)?;
    let mut answer = Response::new(full(FILL.slice(..size)));
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Some(answer)
}
