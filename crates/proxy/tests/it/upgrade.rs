//! WebSocket and other upgrades: after the 101 the proxy copies bytes and knows nothing of them.

use crate::support::{
    Backend, Client, Plan, Running,
    backend::{Manual, Served, ok},
    client::status,
    running::{free_port, here},
    soon,
};

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

async fn rig() -> (Running, Manual, u16) {
    let backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, backend, port)
}

/// Both ends of an upgraded connection.
pub(crate) async fn upgraded(backend: &mut Manual, port: u16) -> (Client, Served) {
    let mut client = Client::connect(here(port)).await;
    client.send(UPGRADE).await;
    let mut served = backend.accept().await;
    let head = served.head().await;
    assert_eq!(head.one("upgrade"), Some("websocket"));
    assert!(
        head.one("connection")
            .is_some_and(|value| value.to_ascii_lowercase().contains("upgrade"))
    );
    assert_eq!(head.one("sec-websocket-key"), Some("dGhlIHNhbXBsZSBub25jZQ=="));
    served.send(SWITCHING).await;
    let head = client.head().await;
    assert_eq!(status(&head), 101);
    assert_eq!(head.one("upgrade"), Some("websocket"));
    assert!(
        head.one("connection")
            .is_some_and(|value| value.to_ascii_lowercase().contains("upgrade"))
    );
    assert_eq!(head.one("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    (client, served)
}

/// Says something in both directions.
pub(crate) async fn talk(client: &mut Client, served: &mut Served, text: &str) {
    client.send(text).await;
    assert_eq!(
        soon("the question", served.reader.take(text.len())).await.unwrap(),
        text.as_bytes()
    );
    served.send(text).await;
    assert_eq!(
        soon("the answer", client.reader.take(text.len())).await.unwrap(),
        text.as_bytes()
    );
}

#[tokio::test]
async fn a_websocket_runs_through_the_proxy() {
    let (_running, mut backend, port) = rig().await;
    let (mut client, mut served) = upgraded(&mut backend, port).await;
    for text in ["hello", "\u{0}\r\n\r\n", "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n"] {
        talk(&mut client, &mut served, text).await;
    }
    // The end of one direction is passed on, and ends the other when it is over.
    client.finish().await;
    assert_eq!(soon("the end", served.reader.more()).await.unwrap(), 0);
    served.send("bye").await;
    drop(served);
    assert_eq!(client.rest().await, b"bye");
}

#[tokio::test]
async fn bytes_sent_right_behind_the_switch_are_not_lost() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send(UPGRADE).await;
    let mut served = backend.accept().await;
    served.head().await;
    served.send(format!("{SWITCHING}early")).await;
    assert_eq!(status(&client.head().await), 101);
    assert_eq!(soon("early bytes", client.reader.take(5)).await.unwrap(), b"early");
    talk(&mut client, &mut served, "later").await;
}

#[tokio::test]
async fn a_refused_upgrade_is_an_ordinary_response() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send(UPGRADE).await;
    let mut served = backend.accept().await;
    served.head().await;
    served
        .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        .await;
    let response = client.response().await;
    assert_eq!((response.status, response.text()), (403, "no"));
}

#[tokio::test]
async fn a_switch_that_nobody_asked_for_is_a_broken_response() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send(SWITCHING).await;
    assert_eq!(client.response().await.status, 502);
    served.ended().await;
}

#[tokio::test]
async fn an_upgrade_to_http_is_not_passed_on() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n\r\n")
        .await;
    let mut served = backend.accept().await;
    let request = served.request().await;
    assert_eq!(
        (request.header("upgrade"), request.header("http2-settings")),
        (None, None)
    );
    served.send(ok("plain")).await;
    assert_eq!(client.response().await.text(), "plain");
}

#[tokio::test]
async fn an_upgraded_connection_never_serves_another_request() {
    let (_running, mut backend, port) = rig().await;
    let (client, served) = upgraded(&mut backend, port).await;
    drop(client);
    let mut served: Served = served;
    served.ended().await;
    let mut other = Client::connect(here(port)).await;
    other.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut fresh = backend.accept().await;
    fresh.request().await;
    fresh.send(ok("fresh")).await;
    assert_eq!(other.response().await.text(), "fresh");
}
