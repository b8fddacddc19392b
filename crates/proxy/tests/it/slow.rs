//! Clients that take their time are cut, and nobody else notices.

use std::time::{Duration, Instant};

use gatewright_ir::ListenerSettings;

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    client::get,
    http2::{Outcome, RawHttp2, frame},
    running::{free_port, here},
    soon, until,
};

const SHORT: Duration = Duration::from_millis(300);

async fn rig(settings: impl FnOnce(&mut ListenerSettings)) -> (Running, Backend, u16) {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .settings(settings)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, backend, port)
}

/// Sends a byte now and then until the proxy closes; how long that took.
async fn trickle(client: &mut Client) -> Duration {
    let begun = Instant::now();
    loop {
        tokio::select! {
            _ = client.reader.more() => return begun.elapsed(),
            () = tokio::time::sleep(SHORT / 6) => {
                if client.try_send("x").await.is_err() {
                    return begun.elapsed();
                }
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "never cut");
    }
}

#[tokio::test]
async fn a_head_that_comes_drop_by_drop_is_cut() {
    let (running, backend, port) = rig(|settings| settings.header_timeout = SHORT).await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut client = Client::connect(here(port)).await;
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\nX-Slow: ").await;
        slow.push(tokio::spawn(async move { trickle(&mut client).await }));
    }
    // Meanwhile others are served.
    for _ in 0..20 {
        assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
    }
    for client in slow {
        let taken = soon("a slow client", client).await.unwrap();
        assert!(taken >= SHORT / 2, "{taken:?}");
    }
    assert_eq!(backend.count(), 20);
    until("they are counted", || {
        let metrics = running.proxy.metrics();
        metrics
            .answers
            .iter()
            .any(|answer| answer.reason == "header_timeout" && answer.count == 50)
    })
    .await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_answered_with_408() {
    let (_running, _backend, port) = rig(|settings| settings.header_timeout = SHORT).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n").await;
    assert_eq!(client.response().await.status, 408);
    client.closed().await;
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed() {
    let (_running, _backend, port) = rig(|settings| {
        settings.header_timeout = SHORT;
        settings.idle_timeout = SHORT;
    })
    .await;
    let mut silent = Client::connect(here(port)).await;
    silent.rest().await;
    let mut idle = Client::connect(here(port)).await;
    assert_eq!(idle.get("a.test", "/").await.text(), "hello");
    idle.closed().await;
}

#[tokio::test]
async fn a_connection_in_use_is_not_idle() {
    let (_running, _backend, port) = rig(|settings| settings.idle_timeout = SHORT).await;
    let mut client = Client::connect(here(port)).await;
    let begun = Instant::now();
    while begun.elapsed() < SHORT * 3 {
        assert_eq!(client.get("a.test", "/").await.text(), "hello");
        tokio::time::sleep(SHORT / 10).await;
    }
}

#[tokio::test]
async fn a_body_that_stands_still_is_cut_and_never_complete_at_the_backend() {
    for framing in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        let (running, backend, port) = rig(|settings| settings.body_timeout = SHORT).await;
        let mut client = Client::connect(here(port)).await;
        client
            .send(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{framing}\r\n\r\n3\r\nabc"))
            .await;
        let response = client.response().await;
        assert_eq!(response.status, 408, "{framing}");
        client.closed().await;
        drop(client);
        assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
        running.stop().await;
        backend.quiet().await;
        assert_eq!(backend.only().method, "GET");
    }
}

#[tokio::test]
async fn a_body_that_moves_slowly_is_let_through() {
    let (_running, backend, port) = rig(|settings| settings.body_timeout = SHORT).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n")
        .await;
    for _ in 0..10 {
        tokio::time::sleep(SHORT / 5).await;
        client.send("x").await;
    }
    assert_eq!(client.response().await.text(), "hello");
    assert_eq!(backend.only().body, b"xxxxxxxxxx");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let mut backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .settings(|settings| settings.body_timeout = SHORT)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served
        .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        .await;
    let piece = vec![b'x'; 64 * 1024];
    soon("the proxy gives up", async {
        use tokio::io::AsyncWriteExt as _;
        while served.reader.stream.write_all(&piece).await.is_ok() {}
    })
    .await;
}

#[tokio::test]
async fn an_http2_client_that_grants_no_window_is_cut() {
    let (_running, _backend, port) = rig(|settings| settings.body_timeout = SHORT).await;
    let mut stingy = RawHttp2::connect(here(port)).await;
    // The initial window of streams: nothing.
    stingy.send(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0])).await;
    let request = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "a.test"),
        (":path", "/"),
    ];
    stingy.request(1, &request).await;
    assert!(matches!(stingy.outcome(1).await, Outcome::Headers(_)));
    assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
    let outcome = stingy.outcome(1).await;
    assert!(!matches!(outcome, Outcome::Headers(_)), "{outcome:?}");
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused() {
    let (running, _backend, port) = rig(|settings| settings.max_connections = 4).await;
    let mut kept = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(here(port)).await;
        assert_eq!(client.get("a.test", "/").await.text(), "hello");
        kept.push(client);
    }
    let mut more = Client::connect(here(port)).await;
    more.rest().await;
    until("the refusal is counted", || {
        running
            .proxy
            .metrics()
            .connections
            .iter()
            .map(|bind| bind.refused)
            .sum::<u64>()
            == 1
    })
    .await;
    for client in &mut kept {
        assert_eq!(client.get("a.test", "/").await.text(), "hello");
    }
    kept.pop();
    until("there is room again", || {
        running
            .proxy
            .metrics()
            .connections
            .iter()
            .map(|bind| bind.open)
            .sum::<u64>()
            < 4
    })
    .await;
    assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
}

#[tokio::test]
async fn a_request_has_only_so_long_however_busy_it_looks() {
    use crate::support::gateway::{RuleChanges, prefix, to};
    let mut backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").request_timeout(SHORT))
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    assert_eq!(client.response().await.status, 504);
    served.ended().await;
    // The connection of the client is fine: its request was complete.
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send(ok("in time")).await;
    assert_eq!(client.response().await.text(), "in time");
}
