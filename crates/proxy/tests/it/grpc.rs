//! Calls of gRPC: their errors, deadlines, trailers and streams.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gatewright_ir::{Method, Unresolved};
use http::{HeaderMap, HeaderValue, Request, Response};

use crate::support::{
    Backend, Plan, Running,
    gateway::{RuleChanges, exact, prefix, rule, to},
    http2::{Http2, Http2Backend, Http2Response},
    running::{free_port, here},
    soon, until,
};

/// A message with its five bytes of framing.
const MESSAGE: &[u8] = b"\0\0\0\0\x02hi";

fn call(path: &str) -> http::request::Builder {
    Request::post(format!("http://a.test{path}"))
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers")
}

fn trailers(status: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers
}

/// Demands that a response is a call that failed in our own name.
fn failed(response: &Http2Response, status: &str) {
    assert_eq!(response.status, 200);
    assert_eq!(response.headers["content-type"], "application/grpc");
    assert_eq!(response.headers["grpc-status"], status, "{response:?}");
    assert!(!response.headers["grpc-message"].is_empty());
    // Trailers only: nothing follows the head.
    assert!(response.body.is_empty() && response.trailers.is_none(), "{response:?}");
    assert!(!response.headers.contains_key("content-length"));
}

#[tokio::test]
async fn failures_of_the_gateway_are_failures_of_the_call() {
    let silent = Backend::manual().await;
    let garbage = Backend::start(|_| b"nonsense\r\n\r\n".to_vec()).await;
    let port = free_port();
    let slow = to("silent").request_timeout(Duration::from_millis(50));
    let plan = Plan::new()
        .http("web", port)
        .hostname("a.test")
        .route("", exact("/no.Backend/Call"), rule())
        .route(
            "",
            exact("/un.Resolved/Call"),
            rule().unresolved(1, Unresolved::NotFound),
        )
        .route("", exact("/un.Reachable/Call"), to("dead"))
        .route("", exact("/no.Endpoints/Call"), to("nowhere"))
        .route("", exact("/too.Slow/Call"), slow)
        .route("", exact("/bad.Answer/Call"), to("garbage"))
        .cluster("dead", &[here(free_port())])
        .cluster("nowhere", &[])
        .cluster("silent", &[silent.address])
        .cluster("garbage", &[garbage.address]);
    let running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    for (path, status) in [
        ("/un.Known/Call", "12"),
        ("/no.Backend/Call", "2"),
        ("/un.Resolved/Call", "2"),
        ("/un.Reachable/Call", "14"),
        ("/no.Endpoints/Call", "14"),
        ("/too.Slow/Call", "14"),
        ("/bad.Answer/Call", "14"),
    ] {
        let response = client.request(call(path).body(MESSAGE).unwrap()).await.unwrap();
        failed(&response, status);
    }
    // A request that is refused before its route is known.
    let refused = call("/a%2fb").body(MESSAGE).unwrap();
    failed(&client.request(refused).await.unwrap(), "13");
    // They are counted by what went wrong, and other requests are answered as ever.
    let metrics = running.proxy.metrics();
    assert!(metrics.requests.iter().any(|count| count.status == 404));
    let response = client.get("http://a.test/un.Known/Call").await;
    assert_eq!(
        (response.status, response.headers.contains_key("grpc-status")),
        (404, false)
    );
}

#[tokio::test]
async fn the_client_s_deadline_bounds_the_call() {
    let mut silent = Backend::manual().await;
    let port = free_port();
    let patient = to("silent").request_timeout(Duration::from_mins(1));
    let hasty = to("silent").request_timeout(Duration::from_millis(50));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/patient"), patient)
        .route("", prefix("/hasty"), hasty)
        .route("", prefix("/"), to("silent"))
        .h2_cluster("silent", silent.address);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    for (path, timeout, status) in [
        ("/x", "100m", "4"),
        ("/patient", "100000u", "4"),
        // The rule's limit comes first.
        ("/hasty", "10S", "14"),
    ] {
        let begun = Instant::now();
        let request = call(path).header("grpc-timeout", timeout).body(MESSAGE).unwrap();
        failed(&client.request(request).await.unwrap(), status);
        assert!(begun.elapsed() >= Duration::from_millis(50) && begun.elapsed() < Duration::from_secs(5));
    }
    silent.accept().await;
}

#[tokio::test]
async fn the_deadline_is_passed_on_and_means_nothing_to_other_requests() {
    let backend = Http2Backend::answering(|_| {
        let response = Response::builder()
            .header("content-type", "application/grpc")
            .body(())
            .unwrap();
        (response, MESSAGE.to_vec(), Some(trailers("0")))
    })
    .await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .h2_cluster("backend", backend.address);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = call("/x").header("grpc-timeout", "5S").body(MESSAGE).unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(
        (response.body.as_slice(), response.trailers),
        (MESSAGE, Some(trailers("0")))
    );
    assert_eq!(backend.requests.lock()[0].head.headers["grpc-timeout"], "5S");
    assert_eq!(backend.requests.lock()[0].head.headers["te"], "trailers");
    let request = Request::get("http://a.test/")
        .header("grpc-timeout", "1n")
        .body(&b""[..])
        .unwrap();
    assert_eq!(client.request(request).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_backend_s_answer_of_trailers_alone_stays_one() {
    let backend = Http2Backend::answering(|_| {
        let response = Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", "5")
            .header("grpc-message", "no such thing")
            .body(())
            .unwrap();
        (response, Vec::new(), None)
    })
    .await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .h2_cluster("backend", backend.address);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let response = client.request(call("/x").body(MESSAGE).unwrap()).await.unwrap();
    assert_eq!(response.headers["grpc-status"], "5");
    assert_eq!(response.headers["grpc-message"], "no such thing");
    assert!(response.body.is_empty() && response.trailers.is_none());
}

#[tokio::test]
async fn both_sides_stream_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Answers each message before it reads the next.
    let backend = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let (request, mut respond) = connection.accept().await.unwrap().unwrap();
        let driver = tokio::spawn(async move { while connection.accept().await.is_some() {} });
        let mut body = request.into_body();
        let mut send = respond.send_response(Response::new(()), false).unwrap();
        while let Some(data) = body.data().await {
            let data = data.unwrap();
            body.flow_control().release_capacity(data.len()).unwrap();
            send.send_data(data, false).unwrap();
        }
        send.send_trailers(trailers("0")).unwrap();
        driver.await.unwrap();
    });
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .h2_cluster("backend", address);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let (response, mut send) = client.send.send_request(call("/x").body(()).unwrap(), false).unwrap();
    let mut body = soon("a head", response).await.unwrap().into_body();
    for round in 0..100_u32 {
        send.send_data(Bytes::from(format!("message {round}")), false).unwrap();
        let answer = soon("an answer", body.data()).await.unwrap().unwrap();
        assert_eq!(answer, format!("message {round}"));
        body.flow_control().release_capacity(answer.len()).unwrap();
    }
    send.send_data(Bytes::new(), true).unwrap();
    assert!(soon("the end", body.data()).await.is_none());
    assert_eq!(soon("trailers", body.trailers()).await.unwrap(), Some(trailers("0")));
    drop((send, body, client));
    backend.abort();
}

#[tokio::test]
async fn a_call_that_the_client_cancels_is_cancelled_at_the_backend() {
    let mut silent = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .h2_cluster("backend", silent.address);
    let running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let (response, mut send) = client.send.send_request(call("/x").body(()).unwrap(), false).unwrap();
    send.send_data(Bytes::from_static(MESSAGE), false).unwrap();
    let stream = silent.accept().await.reader.stream;
    let mut connection = soon("a preface", h2::server::handshake(stream)).await.unwrap();
    let (request, mut respond) = soon("a call", connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    send.send_reset(h2::Reason::CANCEL);
    drop(response);
    soon("the reset", std::future::poll_fn(|context| respond.poll_reset(context)))
        .await
        .unwrap();
    drop(request);
    until("it is counted", || {
        running.proxy.metrics().requests.iter().any(|count| count.status == 499)
    })
    .await;
}

#[tokio::test]
async fn methods_and_headers_choose_the_backend() {
    let (one, two) = tokio::join!(Http2Backend::start(), Http2Backend::start());
    let port = free_port();
    let mut only_post = exact("/pkg.Service/One");
    only_post.method = Some(Method::Post);
    let plan = Plan::new()
        .http("web", port)
        .route("", only_post, to("one"))
        .route("", prefix("/pkg.Service"), to("two"))
        .h2_cluster("one", one.address)
        .h2_cluster("two", two.address);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    for path in ["/pkg.Service/One", "/pkg.Service/Two", "/pkg.Service/Three"] {
        let response = client.request(call(path).body(MESSAGE).unwrap()).await.unwrap();
        assert_eq!(response.body, MESSAGE);
    }
    assert_eq!((one.count(), two.count()), (1, 2));
}
