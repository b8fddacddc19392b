//! Requests that fail a number of times.

use std::{
    io,
    time::{Duration, Instant},
};

use http::{Request, StatusCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Certificates, Client, empty, get, http_server, start, within_deadline};
use gatewright_echo::{EchoMode, EchoSettings};

const RETRY: &str = "GET /retry/x?uuid=u1&succeedAfter=2 HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn the_first_attempts_end_in_a_tcp_reset_and_then_it_is_echoed() {
    let server = http_server().await;
    for _ in 0..2 {
        within_deadline(async {
            let mut stream = TcpStream::connect(server.addresses.plain).await.unwrap();
            stream.write_all(RETRY.as_bytes()).await.unwrap();
            let error = stream.read(&mut [0; 100]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        })
        .await;
    }
    let reply = get(server.addresses.plain, "/retry/x?uuid=u1&succeedAfter=2").await;
    assert_eq!(reply.json()["path"], "/retry/x?uuid=u1&succeedAfter=2");
}

#[tokio::test]
async fn the_reset_is_a_reset_over_http_2_and_tls_too() {
    let certificates = Certificates::new();
    let settings = EchoSettings::local(EchoMode::Http).with_tls(0, certificates.backend.clone());
    let server = start(settings).await;

    let mut http2 = Client::http2(server.addresses.h2c.unwrap()).await;
    let request = Request::get("http://a/retry/x?uuid=two&succeedAfter=1")
        .body(empty())
        .unwrap();
    assert!(http2.send(request).await.is_err());
    http2.closed().await;

    within_deadline(async {
        let mut stream = certificates
            .connect(server.addresses.tls.unwrap(), &["http/1.1"], false)
            .await
            .unwrap();
        stream
            .write_all(b"GET /retry/x?uuid=tls&succeedAfter=1 HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let error = stream.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    })
    .await;
}

#[tokio::test]
async fn a_failure_can_be_a_status_after_a_delay() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    let target = "/retry/deep/path?uuid=u2&succeedAfter=1&responseCode=503&delayRetry=60ms";
    let start = Instant::now();
    assert_eq!(client.get(target).await.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(start.elapsed() >= Duration::from_millis(60));
    assert_eq!(client.get(target).await.status, StatusCode::OK);
}

#[tokio::test]
async fn identifiers_are_counted_apart() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    for uuid in ["a", "b"] {
        let target = format!("/retry?uuid={uuid}&succeedAfter=1&responseCode=500");
        assert_eq!(client.get(&target).await.status, 500);
        assert_eq!(client.get(&target).await.status, 200);
    }
}

#[tokio::test]
async fn missing_and_bad_parameters_are_refused() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    for query in [
        "",
        "?uuid=a",
        "?succeedAfter=1",
        "?uuid=a&succeedAfter=x",
        "?uuid=a&succeedAfter=1&responseCode=100",
        "?uuid=a&succeedAfter=1&delayRetry=x",
    ] {
        assert_eq!(
            client.get(&format!("/retry/x{query}")).await.status,
            StatusCode::BAD_REQUEST,
            "{query}"
        );
    }
}
