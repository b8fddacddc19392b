//! How connections and backends end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use gatewright_echo::{EchoError, EchoMode, EchoServer, EchoSettings, run, run_all};
use http::Request;
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{mpsc, oneshot},
};

use crate::support::{Client, empty, get, http_server, raw, start, within_deadline};

async fn refuses(address: SocketAddr) -> bool {
    TcpStream::connect(address).await.is_err()
}

#[tokio::test]
async fn close_says_so_and_closes() {
    let server = http_server().await;
    // `raw` returns only when the backend has closed.
    let answer = raw(server.addresses.plain, "GET /close HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.to_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains(r#""path": "/close""#), "{answer}");
}

#[tokio::test]
async fn hangup_closes_without_saying_so() {
    let server = http_server().await;
    let answer = raw(server.addresses.plain, "GET /hangup HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(!answer.to_lowercase().contains("connection: close"), "{answer}");
    assert!(answer.ends_with("}\n"), "{answer}");
}

#[tokio::test]
async fn close_and_hangup_end_an_http_2_connection_after_the_answer() {
    let server = http_server().await;
    for path in ["/close", "/hangup"] {
        let mut client = Client::http2(server.addresses.h2c.unwrap()).await;
        assert_eq!(client.get(path).await.json()["path"], path);
        client.closed().await;
    }
}

#[tokio::test]
async fn a_client_that_closed_its_sending_side_still_gets_its_answer() {
    let server = http_server().await;
    within_deadline(async {
        let mut stream = TcpStream::connect(server.addresses.plain).await.unwrap();
        stream
            .write_all(b"GET /half?delay=50ms HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains(r#""path": "/half?delay=50ms""#), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn stopping_lets_a_request_finish_and_refuses_new_connections() {
    let server = http_server().await;
    let address = server.addresses.plain;
    let mut client = Client::http1(address).await;
    let request = Request::get("/stream?chunks=3&bytes=2&interval=50ms")
        .body(empty())
        .unwrap();
    let response = client.response(request).await.unwrap();
    within_deadline(server.stop()).await;
    let body = within_deadline(response.into_body().collect())
        .await
        .unwrap()
        .to_bytes();
    assert_eq!(body, "xxxxxx");
    assert!(refuses(address).await);
}

#[tokio::test]
async fn stopping_does_not_wait_for_idle_connections() {
    let settings = EchoSettings::local(EchoMode::Http).with_drain_timeout(Duration::from_hours(1));
    let server = start(settings).await;
    let mut used = Client::http1(server.addresses.plain).await;
    used.get("/health").await;
    let mut http2 = Client::http2(server.addresses.h2c.unwrap()).await;
    http2.get("/health").await;
    let unused = TcpStream::connect(server.addresses.plain).await.unwrap();
    let unused_h2c = TcpStream::connect(server.addresses.h2c.unwrap()).await.unwrap();
    within_deadline(async {
        while server.counters().connections() < 4 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    within_deadline(server.stop()).await;
    drop((unused, unused_h2c));
}

#[tokio::test]
async fn stopping_cuts_off_what_is_not_done_in_time() {
    let settings = EchoSettings::local(EchoMode::Http).with_drain_timeout(Duration::from_millis(50));
    let server = start(settings).await;
    let mut client = Client::http1(server.addresses.plain).await;
    let request = Request::get("/stream?chunks=2&bytes=2&interval=1h")
        .body(empty())
        .unwrap();
    let response = client.response(request).await.unwrap();
    within_deadline(server.stop()).await;
    assert!(within_deadline(response.into_body().collect()).await.is_err());
}

#[tokio::test]
async fn a_dropped_backend_is_gone() {
    let server = http_server().await;
    let address = server.addresses.plain;
    let mut client = Client::http1(address).await;
    client.get("/health").await;
    drop(server);
    client.closed().await;
    within_deadline(async {
        while !refuses(address).await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn run_says_where_it_listens_and_serves_until_it_is_told_to_stop() {
    let (told, mut lines) = mpsc::unbounded_channel();
    let settings = |name: &'static str| {
        let told = told.clone();
        EchoSettings::local(EchoMode::Http)
            .with_service(name)
            .with_h2c_port(None)
            .with_lines(Arc::new(move |line| told.send((name, line.to_owned())).unwrap()))
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(run_all(vec![settings("cart"), settings("stock")], async {
        drop(stopped.await);
    }));
    let mut addresses = Vec::new();
    for name in ["cart", "stock"] {
        let (backend, line) = within_deadline(lines.recv()).await.unwrap();
        assert_eq!(backend, name);
        let address = line
            .strip_prefix("Listening on ")
            .unwrap()
            .strip_suffix(" (http)")
            .unwrap();
        addresses.push(address.parse::<SocketAddr>().unwrap());
        assert_eq!(get(addresses[addresses.len() - 1], "/health").await.status, 200);
    }
    assert_eq!(get(addresses[1], "/").await.json()["service"], "stock");
    drop(stop);
    within_deadline(running).await.unwrap().unwrap();
    assert!(refuses(addresses[0]).await && refuses(addresses[1]).await);
}

#[tokio::test]
async fn a_taken_port_is_an_error_that_names_it() {
    let server = http_server().await;
    let taken = server.addresses.plain;
    let settings = EchoSettings::local(EchoMode::Http).with_address(taken.ip(), taken.port());
    let error = run(settings.clone(), std::future::pending()).await.unwrap_err();
    assert!(
        matches!(error, EchoError::Listen { address, .. } if address == taken),
        "{error}"
    );
    assert!(
        error.to_string().starts_with(&format!("cannot listen on {taken}: ")),
        "{error}"
    );
    assert!(EchoServer::start(settings).await.is_err());
}
