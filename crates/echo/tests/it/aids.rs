//! The paths for tests of proxies: streams, uploads, trailers, early answers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{SinkExt, channel::mpsc, stream};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Client, SentBody, full, http_server, raw, sent, within_deadline};

fn post(target: &str, body: SentBody) -> Request<SentBody> {
    Request::post(target).header("host", "a").body(body).unwrap()
}

#[tokio::test]
async fn a_stream_comes_in_chunks_at_its_interval() {
    let server = http_server().await;
    let start = Instant::now();
    let answer = raw(
        server.addresses.plain,
        "GET /stream?chunks=3&bytes=5&interval=40ms HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(start.elapsed() >= Duration::from_millis(80));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("transfer-encoding: chunked"), "{head}");
    assert_eq!(body, "5\r\nxxxxx\r\n5\r\nxxxxx\r\n5\r\nxxxxx\r\n0\r\n\r\n");
}

#[tokio::test]
async fn the_first_chunk_of_a_stream_comes_before_the_second_is_due() {
    let server = http_server().await;
    for mut client in [
        Client::http1(server.addresses.plain).await,
        Client::http2(server.addresses.h2c.unwrap()).await,
    ] {
        let uri = if matches!(client, Client::One(_)) {
            ""
        } else {
            "http://a"
        };
        let request = Request::get(format!("{uri}/stream?chunks=2&bytes=3&interval=1h"))
            .body(full(""))
            .unwrap();
        let mut response = client.response(request).await.unwrap();
        let frame = within_deadline(response.body_mut().frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "xxx");
    }
}

#[tokio::test]
async fn a_stream_announces_its_length_when_asked() {
    let server = http_server().await;
    let reply = Client::http1(server.addresses.plain)
        .await
        .get("/stream?chunks=4&bytes=100&length=true")
        .await;
    assert_eq!(reply.headers["content-length"], "400");
    assert_eq!(reply.body.len(), 400);
}

#[tokio::test]
async fn a_cut_stream_breaks_off_after_its_last_chunk() {
    let server = http_server().await;
    let plain = server.addresses.plain;
    let chunked = raw(
        plain,
        "GET /stream?chunks=1&bytes=4&cut=true HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .await;
    assert!(chunked.ends_with("\r\n\r\n4\r\nxxxx\r\n"), "{chunked}");
    let measured = raw(
        plain,
        "GET /stream?chunks=1&bytes=4&cut=true&length=true HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .await;
    assert!(
        measured.contains("Content-Length: 5\r\n") && measured.ends_with("\r\n\r\nxxxx"),
        "{measured}"
    );

    let mut client = Client::http2(server.addresses.h2c.unwrap()).await;
    let request = Request::get("http://a/stream?chunks=1&bytes=4&cut=true")
        .body(full(""))
        .unwrap();
    assert!(client.send(request).await.is_err());
    assert_eq!(client.get("/health").await.text(), "OK", "only the stream was reset");
}

#[tokio::test]
async fn a_bad_stream_is_refused() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    for query in ["chunks=many", "bytes=-1", "bytes=16777217", "interval=5"] {
        assert_eq!(
            client.get(&format!("/stream?{query}")).await.status,
            StatusCode::BAD_REQUEST,
            "{query}"
        );
    }
}

#[tokio::test]
async fn an_upload_is_measured_with_its_trailers() {
    let server = http_server().await;
    for mut client in [
        Client::http1(server.addresses.plain).await,
        Client::http2(server.addresses.h2c.unwrap()).await,
    ] {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "42".parse().unwrap());
        let frames = [
            Ok(Frame::data(Bytes::from_static(b"foo"))),
            Ok(Frame::data(Bytes::from_static(b"bar"))),
            Ok(Frame::trailers(trailers)),
        ];
        let uri = if matches!(client, Client::One(_)) {
            "/upload"
        } else {
            "http://a/upload"
        };
        let mut request = Request::post(uri)
            .body(sent(StreamBody::new(stream::iter(frames))))
            .unwrap();
        if matches!(client, Client::One(_)) {
            request.headers_mut().insert("trailer", "x-sum".parse().unwrap());
        }
        let reply = client.send(request).await.unwrap().json();
        assert_eq!(reply["bytes"], 6);
        // The published FNV-1a value of "foobar".
        assert_eq!(reply["hash"], "85944171f73967e8");
        assert_eq!(reply["trailers"]["X-Sum"][0], "42");
        assert_eq!(reply["service"], "cart");
    }
}

#[tokio::test]
async fn a_large_upload_is_counted_to_the_last_byte() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    let reply = client
        .send(post("/upload", full(vec![7; 5_000_000])))
        .await
        .unwrap()
        .json();
    assert_eq!(reply["bytes"], 5_000_000);
}

#[tokio::test]
async fn trailers_follow_the_body() {
    let server = http_server().await;
    let mut one = Client::http1(server.addresses.plain).await;
    let request = Request::get("/trailers")
        .header("te", "trailers")
        .body(full(""))
        .unwrap();
    let with_te = one.send(request).await.unwrap();
    let two = Client::http2(server.addresses.h2c.unwrap())
        .await
        .get("/trailers")
        .await;
    for reply in [with_te, two] {
        assert_eq!(reply.text(), "trailers follow\n");
        assert_eq!(reply.headers["trailer"], "X-Echo-Trailer, X-Echo-Hash");
        assert_eq!(reply.trailers["x-echo-trailer"], "cart");
        assert_eq!(reply.trailers["x-echo-hash"].len(), 16);
    }
    assert!(
        one.get("/trailers").await.trailers.is_empty(),
        "HTTP/1.1 without TE gets none"
    );
}

#[tokio::test]
async fn a_client_that_expects_100_continue_gets_it_before_it_sends_the_body() {
    let server = http_server().await;
    within_deadline(async {
        let mut stream = TcpStream::connect(server.addresses.plain).await.unwrap();
        let head = "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut interim = [0; 25];
        stream.read_exact(&mut interim).await.unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("\"bytes\": 3"), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn an_early_answer_comes_before_the_body_and_the_connection_goes_on() {
    let server = http_server().await;
    for mut client in [
        Client::http1(server.addresses.plain).await,
        Client::http2(server.addresses.h2c.unwrap()).await,
    ] {
        let uri = if matches!(client, Client::One(_)) {
            "/early"
        } else {
            "http://a/early"
        };
        let (mut upload, body) = mpsc::channel::<Result<Frame<Bytes>, std::convert::Infallible>>(0);
        let request = Request::post(uri).body(sent(StreamBody::new(body))).unwrap();
        let response = client.response(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        // The answer is there; only now the body is sent and ended.
        within_deadline(async {
            for _ in 0..50 {
                upload
                    .send(Ok(Frame::data(Bytes::from(vec![1; 10_000]))))
                    .await
                    .unwrap();
            }
        })
        .await;
        drop(upload);
        within_deadline(response.into_body().collect()).await.unwrap();
        assert_eq!(client.get("/health").await.text(), "OK");
    }
    assert_eq!(server.counters().connections(), 2);
}

#[tokio::test]
async fn an_early_answer_can_leave_the_body_unread() {
    let server = http_server().await;
    within_deadline(async {
        let mut stream = TcpStream::connect(server.addresses.plain).await.unwrap();
        let head = "POST /early?then=close HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    })
    .await;
}
