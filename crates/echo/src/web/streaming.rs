//! Answers whose bodies matter: streams, uploads, trailers.
//!
//! Aids for tests of proxies, called from the table of paths. Not part of the conformance contract.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use serde::Serialize;

use super::{Answer, echo::by_name, paths::json};
use crate::{
    Identity,
    backend::Session,
    body::{FNV_START, Measured, Severed, boxed, fnv},
    query::{BadParameter, Query},
};

const LARGEST_CHUNK: u32 = 1 << 24;

struct Progress {
    chunk: Bytes,
    left: u32,
    interval: Duration,
    is_first: bool,
    is_cut: bool,
}

/// `/stream`: chunks one by one.
pub(super) fn stream(query: Query<'_>) -> Result<Answer, BadParameter> {
    let chunks: u32 = query.number("chunks")?.unwrap_or(10);
    let bytes: u32 = query.number("bytes")?.unwrap_or(1024);
    if bytes > LARGEST_CHUNK {
        return Err(BadParameter(format!(
            "query parameter bytes={bytes} is above {LARGEST_CHUNK}"
        )));
    }
    let is_cut = query.flag("cut");
    let progress = Progress {
        chunk: Bytes::from(vec![b'x'; usize::try_from(bytes).unwrap_or_default()]),
        left: chunks,
        interval: query.duration("interval")?.unwrap_or_default(),
        is_first: true,
        is_cut,
    };
    let mut answer = Response::new(boxed(StreamBody::new(stream::unfold(progress, next))));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if query.flag("length") {
        // A stream that will be cut promises one byte more than it sends: else its end would look whole.
        headers.insert(
            header::CONTENT_LENGTH,
            HeaderValue::from(u64::from(chunks) * u64::from(bytes) + u64::from(is_cut)),
        );
    }
    Ok(answer)
}

async fn next(mut progress: Progress) -> Option<(Result<Frame<Bytes>, Severed>, Progress)> {
    if progress.left == 0 {
        if !progress.is_cut {
            return None;
        }
        progress.is_cut = false;
        // Once aside, so that what was sent before is flushed rather than dropped with the connection.
        tokio::task::yield_now().await;
        return Some((Err(Severed), progress));
    }
    if !progress.is_first && !progress.interval.is_zero() {
        tokio::time::sleep(progress.interval).await;
    }
    progress.is_first = false;
    progress.left -= 1;
    Some((Ok(Frame::data(progress.chunk.clone())), progress))
}

#[derive(Serialize)]
struct Upload<'session> {
    bytes: u64,
    hash: String,
    trailers: BTreeMap<String, Vec<String>>,
    #[serde(flatten)]
    identity: &'session Identity,
}

/// `/upload`: what the request's body was.
pub(super) fn upload(session: &Session, measured: &Measured) -> Answer {
    json(&Upload {
        bytes: measured.bytes,
        hash: format!("{:016x}", measured.hash),
        trailers: by_name(&measured.trailers),
        identity: &session.backend.identity,
    })
}

/// `/trailers`: a body with trailers after it.
pub(super) fn trailers(session: &Session) -> Answer {
    const BODY: &str = "trailers follow\n";
    let mut trailers = HeaderMap::new();
    trailers.insert(
        HeaderName::from_static("x-echo-trailer"),
        HeaderValue::from_str(&session.backend.identity.service).unwrap_or(HeaderValue::from_static("")),
    );
    let hash = format!("{:016x}", fnv(FNV_START, BODY.as_bytes()));
    trailers.insert(
        HeaderName::from_static("x-echo-hash"),
        HeaderValue::from_str(&hash).unwrap_or(HeaderValue::from_static("")),
    );
    let frames = [
        Ok(Frame::data(Bytes::from_static(BODY.as_bytes()))),
        Ok(Frame::trailers(trailers)),
    ];
    let mut answer = Response::new(boxed(StreamBody::new(stream::iter(frames))));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    headers.insert(header::TRAILER, HeaderValue::from_static("X-Echo-Trailer, X-Echo-Hash"));
    answer
}
