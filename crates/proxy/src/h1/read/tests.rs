//! The body codec against hyper's, on bodies cut in random places.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response, body::Incoming as HyperBody, service::service_fn};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};

use super::Reader;
use crate::{
    forward::{Fill, Incoming},
    h1::{BodyLength, Encoding, Writer},
    worker::Stock,
};

/// A stream that yields its bytes in given pieces.
struct Pieces(Vec<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(first) = self.0.first_mut() else {
            return Poll::Ready(Ok(()));
        };
        if first.is_empty() {
            self.0.remove(0);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let count = first.len().min(buffer.remaining());
        buffer.put_slice(&first[..count]);
        first.drain(..count);
        Poll::Ready(Ok(()))
    }
}

/// Cuts bytes at the given places.
fn cut(bytes: &[u8], places: &[usize]) -> Vec<Vec<u8>> {
    let mut places: Vec<_> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places.into_iter().chain([bytes.len()]) {
        pieces.push(bytes[from..place].to_vec());
        from = place;
    }
    pieces
}

async fn ours(pieces: Vec<Vec<u8>>, length: BodyLength) -> Option<Vec<u8>> {
    let stock = Stock::default();
    let mut stream = Pieces(pieces);
    let mut reader = Reader::default();
    reader.begin(length, false);
    let mut payload = Vec::new();
    loop {
        match poll_fn(|context| reader.poll_fill(context, &mut stream, &stock))
            .await
            .ok()?
        {
            Fill::Data => {
                // Less than all, to see that nothing depends on it.
                let count = reader.filled().len().div_ceil(2);
                payload.extend_from_slice(&reader.filled()[..count]);
                reader.consume(count);
            }
            Fill::End => return Some(payload),
        }
    }
}

/// What hyper's server makes of a request with this head and body.
async fn hypers(head: String, pieces: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    let (mut client, server) = tokio::io::duplex(1024 * 1024);
    client.write_all(head.as_bytes()).await.unwrap();
    let sending = async move {
        for piece in pieces {
            // After a mistake hyper does not listen any longer.
            if client.write_all(&piece).await.is_err() {
                return client;
            }
            tokio::task::yield_now().await;
        }
        _ = client.shutdown().await;
        // Kept open for the response.
        client
    };
    let received = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&received);
    let service = service_fn(move |request: Request<HyperBody>| {
        let seen = Arc::clone(&seen);
        async move {
            let body = request.into_body().collect().await.ok();
            *seen.lock().unwrap() = body.map(|body| body.to_bytes().to_vec());
            Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
        }
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(server), service);
    let (_, _client) = tokio::join!(serving, sending);
    received.lock().unwrap().take()
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

/// A source of payload for the writer.
struct Given(Vec<Vec<u8>>);

impl Incoming for Given {
    fn poll_fill(&mut self, _context: &mut Context<'_>) -> Poll<Result<Fill, crate::forward::BodyError>> {
        self.0.retain(|piece| !piece.is_empty());
        Poll::Ready(Ok(if self.0.is_empty() { Fill::End } else { Fill::Data }))
    }

    fn filled(&self) -> &[u8] {
        self.0.first().map(Vec::as_slice).unwrap_or_default()
    }

    fn consume(&mut self, count: usize) {
        self.0[0].drain(..count);
    }

    fn is_finished(&self) -> bool {
        self.0.iter().all(Vec::is_empty)
    }

    fn take_trailers(&mut self) -> Option<Box<http::HeaderMap>> {
        None
    }
}

/// What the writer makes of payload in pieces.
fn encode(pieces: Vec<Vec<u8>>, encoding: Encoding) -> Vec<u8> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    let mut written = Vec::new();
    let mut writer = Writer::default();
    writer.begin(encoding);
    let mut given = Given(pieces);
    while let Poll::Ready(Ok(Fill::Data)) = given.poll_fill(&mut context) {
        assert!(writer.poll_push(&mut context, &mut written, &mut given).is_ready());
    }
    writer.finish(None).unwrap();
    assert!(writer.poll_flush(&mut context, &mut written).is_ready());
    written
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let small = proptest::collection::vec(any::<u8>(), 0..40);
    let large = (1_usize..30_000).prop_map(|length| vec![b'x'; length]);
    proptest::collection::vec(prop_oneof![4 => small, 1 => large], 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn bodies_are_read_as_hyper_reads_them(pieces in payloads(), places in proptest::collection::vec(any::<usize>(), 0..6)) {
        let payload = pieces.concat();
        let chunked = encode(pieces.clone(), Encoding::Chunked);
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        prop_assert_eq!(run(ours(cut(&chunked, &places), BodyLength::Chunked)), Some(payload.clone()));
        prop_assert_eq!(run(hypers(head, cut(&chunked, &places))), Some(payload.clone()));

        let length = payload.len() as u64;
        let plain = encode(pieces, Encoding::Length(length));
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        prop_assert_eq!(run(ours(cut(&plain, &places), BodyLength::Known(length))), Some(payload.clone()));
        prop_assert_eq!(run(hypers(head, cut(&plain, &places))), Some(payload));
    }

    #[test]
    fn what_we_accept_of_a_damaged_body_hyper_accepts_too(
        pieces in payloads(),
        place in any::<usize>(),
        damage in prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b';'), Just(b'0')],
        is_inserted in any::<bool>(),
        places in proptest::collection::vec(any::<usize>(), 0..4),
    ) {
        let mut body = encode(pieces, Encoding::Chunked);
        let place = place % body.len();
        if is_inserted {
            body.insert(place, damage);
        } else {
            body[place] = damage;
        }
        if let Some(payload) = run(ours(cut(&body, &places), BodyLength::Chunked)) {
            let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
            prop_assert_eq!(run(hypers(head, cut(&body, &places))), Some(payload));
        }
    }
}

#[test]
fn a_body_that_ends_early_is_not_taken_for_whole() {
    assert_eq!(run(ours(vec![b"abc".to_vec()], BodyLength::Known(4))), None);
    assert_eq!(run(ours(vec![b"3\r\nabc\r\n".to_vec()], BodyLength::Chunked)), None);
    let until_close = run(ours(vec![b"abc".to_vec()], BodyLength::UntilClose));
    assert_eq!(until_close.as_deref(), Some(b"abc".as_slice()));
}

#[test]
fn a_writer_does_not_send_more_or_less_than_it_promised() {
    let mut context = Context::from_waker(std::task::Waker::noop());
    let mut written = Vec::new();
    let mut writer = Writer::default();
    writer.begin(Encoding::Length(2));
    let mut given = Given(vec![b"abc".to_vec()]);
    let pushed = writer.poll_push(&mut context, &mut written, &mut given);
    assert!(matches!(pushed, Poll::Ready(Err(_))));
    assert!(writer.finish(None).is_err());
}
