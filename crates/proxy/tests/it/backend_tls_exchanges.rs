//! What is spoken over TLS with backends: HTTP/1.1, HTTP/2, WebSockets, copies and questions; and what happens when no
//! connection can be made.

use std::time::Duration;

use gatewright_ir::{Endpoint, Endpoints, UpstreamProtocol};
use http::Request;

use crate::{
    backend_tls::{answers, asking, named, plan},
    support::{
        Backend, Client, Plan, Running,
        backend::ok,
        client::get,
        gateway::RuleChanges,
        http2::{Http2, Http2Backend},
        pki::{Ca, TlsFront},
        prefix,
        running::{free_port, here},
        soon, to, until,
    },
    upgrade::{talk, upgraded},
};

#[tokio::test]
async fn mirrors_and_authorisers_are_spoken_to_over_tls() {
    let ca = Ca::new("ca");
    let real = Backend::answering("real").await;
    let (copied, asked) = (Backend::answering("copy").await, Backend::answering("yes").await);
    let certificate = ca.issue(&["aside.internal"]);
    let mirror = TlsFront::before(copied.address, &certificate, &["http/1.1"]).await;
    let auth = TlsFront::before(asked.address, &certificate, &["http/1.1"]).await;
    let port = free_port();
    let rule = to("real")
        .mirror("mirror", 1, 1)
        .filters(|filters| filters.auth = Some(Box::new(asking("auth"))));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("real", &[real.address])
        .cluster("mirror", &[mirror.address])
        .secured("mirror", named("aside.internal", &ca))
        .cluster("auth", &[auth.address])
        .secured("auth", named("aside.internal", &ca));
    let running = Running::serving(plan.clone()).await;
    assert_eq!(get(here(port), "a.test", "/x").await.text(), "real");
    until("the copy arrives", || copied.count() == 1).await;
    assert_eq!(
        (mirror.greetings().len(), auth.greetings().len(), asked.count()),
        (1, 1, 1)
    );
    // An authoriser that cannot prove who it is has not agreed, and a mirror like that gets nothing.
    let plan = plan
        .secured("auth", named("another.internal", &ca))
        .secured("mirror", named("another.internal", &ca));
    running.apply([plan]).await;
    assert_eq!(get(here(port), "a.test", "/x").await.status, 403);
    assert_eq!((copied.count(), asked.count(), real.count()), (1, 1, 1));
}

#[tokio::test]
async fn http2_is_spoken_over_tls_with_backends_that_agree() {
    let ca = Ca::new("ca");
    let backend = Http2Backend::start().await;
    let certificate = ca.issue(&["grpc.internal"]);
    let front = TlsFront::before(backend.address, &certificate, &["h2", "http/1.1"]).await;
    let port = free_port();
    let plan = |front: &TlsFront| {
        Plan::new()
            .http("web", port)
            .all_to("backend")
            .h2_cluster("backend", front.address)
            .secured("backend", named("grpc.internal", &ca))
    };
    let running = Running::with_workers(1, [plan(&front)]).await;
    let mut client = Http2::connect(here(port)).await;
    for _ in 0..3 {
        let request = Request::post("http://a.test/call").body(&b"ping"[..]).unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, &b"ping"[..]));
    }
    let greetings = front.greetings();
    assert_eq!(greetings.len(), 1);
    assert_eq!(greetings[0].protocol.as_deref(), Some("h2"));
    let seen = backend.requests.lock()[0].head.uri.to_string();
    assert_eq!(seen, "https://a.test/call");
    // Whoever agrees to something else, or to nothing, does not speak HTTP/2.
    for protocols in [&["http/1.1"][..], &[]] {
        let front = TlsFront::before(backend.address, &certificate, protocols).await;
        running.apply([plan(&front)]).await;
        let request = Request::get("http://a.test/call").body(&b""[..]).unwrap();
        assert_eq!(client.request(request).await.unwrap().status, 502, "{protocols:?}");
    }
    assert_eq!(backend.count(), 3);
}

#[tokio::test]
async fn a_websocket_runs_over_tls_to_its_backend() {
    let ca = Ca::new("ca");
    let mut backend = Backend::manual().await;
    let front = TlsFront::before(backend.address, &ca.issue(&["chat.internal"]), &["http/1.1"]).await;
    let port = free_port();
    let _running = Running::serving(plan(port, &front, named("chat.internal", &ca))).await;
    let (mut client, mut served) = upgraded(&mut backend, port).await;
    for text in ["hello", "\u{0}\r\n\r\n"] {
        talk(&mut client, &mut served, text).await;
    }
    let large = "x".repeat(300_000);
    talk(&mut client, &mut served, &large).await;
    client.finish().await;
    assert_eq!(soon("the end", served.reader.more()).await.unwrap(), 0);
    served.send("bye").await;
    drop(served);
    assert_eq!(client.rest().await, b"bye");
}

#[tokio::test]
async fn large_bodies_pass_over_tls_in_both_directions() {
    let ca = Ca::new("ca");
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body))).await;
    let front = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &["http/1.1"]).await;
    let port = free_port();
    let _running = Running::serving(plan(port, &front, named("shop.internal", &ca))).await;
    let body: String = (0..400_000)
        .map(|number: u32| char::from(b'a' + (number % 23) as u8))
        .collect();
    let mut client = Client::connect(here(port)).await;
    for _ in 0..2 {
        client
            .send(format!(
                "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ))
            .await;
        let response = client.response_to("POST").await;
        assert!(response.status == 200 && response.text() == body);
    }
}

#[tokio::test]
async fn a_failed_handshake_is_tried_elsewhere() {
    let ca = Ca::new("ca");
    let backend = Backend::answering("hello").await;
    let good = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &["http/1.1"]).await;
    let bad = TlsFront::before(backend.address, &ca.issue(&["other.internal"]), &["http/1.1"]).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[bad.address, good.address])
        .secured("backend", named("shop.internal", &ca));
    let running = Running::serving(plan).await;
    for _ in 0..20 {
        assert_eq!(get(here(port), "a.test", "/").await.text(), "hello");
    }
    assert!(running.proxy.metrics().upstream.failed > 0, "the bad one was tried");
    assert_eq!(backend.count(), 20);
}

#[tokio::test]
async fn a_backend_that_is_silent_in_the_handshake_costs_no_more_than_a_connection_may() {
    let ca = Ca::new("ca");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free_port();
    for protocol in [UpstreamProtocol::Http1, UpstreamProtocol::Http2] {
        let address = silent.local_addr().unwrap();
        let plan = Plan::new()
            .http("web", port)
            .settings(|settings| settings.upstream.connect_timeout = Duration::from_millis(200))
            .all_to("backend")
            .cluster_of("backend", protocol, Endpoints::Known(vec![Endpoint { address }]))
            .secured("backend", named("shop.internal", &ca));
        let running = Running::serving(plan).await;
        assert_eq!(get(here(port), "a.test", "/").await.status, 503);
        until("it is counted", || answers(&running, "connect_timeout") == 1).await;
        running.stop().await;
    }
}

#[tokio::test]
async fn sessions_with_backends_are_resumed() {
    let ca = Ca::new("ca");
    let backend =
        Backend::start(|_| b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi".to_vec()).await;
    let front = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &["http/1.1"]).await;
    let port = free_port();
    let _running = Running::serving(plan(port, &front, named("shop.internal", &ca))).await;
    for _ in 0..6 {
        assert_eq!(get(here(port), "a.test", "/").await.text(), "hi");
    }
    let kinds: Vec<bool> = front.greetings().iter().map(|greeting| greeting.is_resumed).collect();
    assert_eq!(kinds, [false, true, true, true, true, true]);
}
