//! Connections to backends: kept, used again, and given up at the right moment.

use std::time::Duration;

use crate::support::{
    Backend, Client, Plan, Running,
    backend::{Manual, ok},
    client::get,
    running::{free_port, here},
    until,
};

async fn rig() -> (Running, Manual, u16) {
    let backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, backend, port)
}

#[tokio::test]
async fn connections_are_used_again_by_other_clients() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    for _ in 0..40 {
        assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
    }
    // At most one per worker: clients come one after the other.
    assert!(backend.connections() <= 2, "{}", backend.connections());
}

/// Serves one request, closes, and leaves the client's next request to meet a closed connection.
async fn closed_behind_the_proxys_back(running: &Running, backend: &mut Manual, client: &mut Client) {
    client.send("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send(ok("first")).await;
    assert_eq!(client.response().await.text(), "first");
    until("the connection is in the pool", || {
        running.proxy.metrics().upstream.open == 1
    })
    .await;
    drop(served);
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_is_replaced() {
    for method in ["GET", "POST"] {
        let (running, mut backend, port) = rig().await;
        let mut client = Client::connect(here(port)).await;
        closed_behind_the_proxys_back(&running, &mut backend, &mut client).await;
        // The close has arrived at the proxy by the time a new connection to the same port has been answered.
        until("the proxy saw the close", || running.proxy.metrics().upstream.open == 0).await;
        client
            .send(format!(
                "{method} /second HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"
            ))
            .await;
        let mut served = backend.accept().await;
        assert_eq!(served.request().await.target, "/second");
        served.send(ok("second")).await;
        assert_eq!(client.response().await.text(), "second", "{method}");
    }
}

#[tokio::test]
async fn an_idempotent_request_that_met_a_closing_connection_is_sent_again() {
    let (running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send(ok("first")).await;
    assert_eq!(client.response().await.text(), "first");
    // The second request arrives, and only then does the backend close, without a byte of an answer.
    client.send("GET /second HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert_eq!(served.request().await.target, "/second");
    drop(served);
    let mut again = backend.accept().await;
    assert_eq!(again.request().await.target, "/second");
    again.send(ok("second")).await;
    assert_eq!(client.response().await.text(), "second");
    until("the retry is counted", || running.proxy.metrics().upstream.retried == 1).await;
}

#[tokio::test]
async fn a_request_that_may_have_had_an_effect_is_not_sent_again() {
    let (running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send(ok("first")).await;
    client.response().await;
    client
        .send("POST /second HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1\r\n\r\nx")
        .await;
    assert_eq!(served.request().await.target, "/second");
    drop(served);
    assert_eq!(client.response().await.status, 502);
    assert_eq!(running.proxy.metrics().upstream.retried, 0);
    assert!(!backend.has_connection());
}

#[tokio::test]
async fn a_fresh_connection_that_fails_is_not_tried_for_ever() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let close_all = async {
        loop {
            let mut served = backend.accept().await;
            served.request().await;
        }
    };
    tokio::select! {
        response = client.response() => assert_eq!(response.status, 502),
        () = close_all => unreachable!(),
    }
}

#[tokio::test]
async fn a_connection_with_bytes_nobody_asked_for_is_not_used_again() {
    let (running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET /first HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    // A second response right behind the first: whoever got this connection next would get somebody else's answer.
    served.send([ok("first"), ok("poison")].concat()).await;
    assert_eq!(client.response().await.text(), "first");
    until("the connection is given up", || {
        running.proxy.metrics().upstream.open == 0
    })
    .await;
    client.send("GET /second HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut fresh = backend.accept().await;
    fresh.request().await;
    fresh.send(ok("second")).await;
    assert_eq!(client.response().await.text(), "second");
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .settings(|settings| settings.upstream.idle_timeout = Duration::from_millis(100))
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(client.get("a.test", "/").await.text(), "hello");
    until("the pool is empty", || running.proxy.metrics().upstream.open == 0).await;
    backend.quiet().await;
    assert_eq!(client.get("a.test", "/").await.text(), "hello");
}

#[tokio::test]
async fn ambiguous_responses_are_refused_and_their_connection_is_given_up() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A : 1\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A: 1\r\n folded\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A: a\u{0}b\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
    ] {
        let (running, mut backend, port) = rig().await;
        let mut client = Client::connect(here(port)).await;
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
        let mut served = backend.accept().await;
        served.request().await;
        served.send(response).await;
        assert_eq!(client.response().await.status, 502, "{response:?}");
        served.ended().await;
        until("the connection is given up", || {
            running.proxy.metrics().upstream.open == 0
        })
        .await;
    }
}
