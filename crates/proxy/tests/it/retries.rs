//! What a rule's retry policy does: when a request is sent again, where to, and how often.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use gatewright_ir::{Endpoint, Endpoints, RetryBudget, Rule, UpstreamProtocol};
use http::{Request, Response};

use crate::support::{
    Backend, Client, Plan, Recorded, Running,
    backend::ok,
    client::status,
    gateway::{RuleChanges, prefix, to},
    http2::{Http2, Http2Backend},
    running::{free_port, here},
    soon, until,
};

const SHORT: Duration = Duration::from_millis(20);

/// Fails so many times with 503, then echoes the body.
fn failing(times: usize) -> impl Fn(&Recorded) -> Vec<u8> + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move |request| {
        if asked.fetch_add(1, Ordering::SeqCst) < times {
            return b"HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nfailed".to_vec();
        }
        ok(&String::from_utf8_lossy(&request.body))
    }
}

async fn serving(rule: Rule, endpoints: &[std::net::SocketAddr]) -> (Running, u16) {
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("backend", endpoints);
    (Running::with_workers(1, [plan]).await, port)
}

async fn post(client: &mut Client, body: &str) -> (u16, String) {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.send(head).await;
    let response = client.response_to("POST").await;
    (response.status, response.text().to_owned())
}

#[tokio::test]
async fn a_listed_code_is_tried_again_with_the_same_body() {
    let backend = Backend::start(failing(2)).await;
    let rule = to("backend").retry(&[500, 503], 3, SHORT);
    let (running, port) = serving(rule, &[backend.address]).await;
    let begun = Instant::now();
    let mut client = Client::connect(here(port)).await;
    assert_eq!(post(&mut client, "again").await, (200, "again".to_owned()));
    assert!(begun.elapsed() >= SHORT * 3, "{:?}", begun.elapsed());
    let bodies: Vec<_> = backend.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"again"; 3]);
    assert_eq!(running.proxy.metrics().upstream.retried, 2);
    // The connection goes on, and so does the policy.
    assert_eq!(post(&mut client, "more").await, (200, "more".to_owned()));
    backend.saw_no_garbage();
}

#[tokio::test]
async fn chunked_bodies_and_their_trailers_are_sent_again() {
    let backend = Backend::start(failing(1)).await;
    let (_running, port) = serving(to("backend").retry(&[503], 1, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        .await;
    client.send("3\r\ntwo\r\n0\r\nX-Sum: 2\r\n\r\n").await;
    assert_eq!(client.response_to("POST").await.text(), "onetwo");
    for request in backend.requests() {
        assert_eq!(request.body, b"onetwo");
        assert_eq!(request.trailers, [("x-sum".to_owned(), "2".to_owned())]);
    }
    assert_eq!(backend.count(), 2);
}

#[tokio::test]
async fn http2_on_both_sides_is_tried_again_too() {
    let asked = AtomicUsize::new(0);
    let backend = Http2Backend::answering(move |request| {
        let status = if asked.fetch_add(1, Ordering::SeqCst) < 2 {
            500
        } else {
            200
        };
        let response = Response::builder().status(status).body(()).unwrap();
        (response, request.body.clone(), None)
    })
    .await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").retry(&[500], 2, SHORT))
        .h2_cluster("backend", backend.address);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::post("http://a.test/").body(&b"again"[..]).unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!((response.status, response.body.as_slice()), (200, &b"again"[..]));
    let bodies: Vec<_> = backend
        .requests
        .lock()
        .iter()
        .map(|request| request.body.clone())
        .collect();
    assert_eq!(bodies, [b"again"; 3]);
}

#[tokio::test]
async fn after_the_last_attempt_the_backend_s_own_answer_is_passed_on() {
    let backend = Backend::start(failing(100)).await;
    let (_running, port) = serving(to("backend").retry(&[503], 2, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(post(&mut client, "x").await, (503, "failed".to_owned()));
    assert_eq!(backend.count(), 3);
}

#[tokio::test]
async fn other_codes_are_not_tried_again() {
    let backend = Backend::start(failing(100)).await;
    let (_running, port) = serving(to("backend").retry(&[500], 2, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(post(&mut client, "x").await, (503, "failed".to_owned()));
    assert_eq!(backend.count(), 1);
}

#[tokio::test]
async fn a_body_too_large_to_be_remembered_is_sent_once() {
    let backend = Backend::start(failing(1)).await;
    let (_running, port) = serving(to("backend").retry(&[503], 2, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    let body = "x".repeat(300 * 1024);
    assert_eq!(post(&mut client, &body).await, (503, "failed".to_owned()));
    assert_eq!(backend.count(), 1);
    assert_eq!(backend.only().body.len(), body.len());
    backend.saw_no_garbage();
}

#[tokio::test]
async fn connections_that_are_closed_or_refused_are_tried_again() {
    let mut backend = Backend::manual().await;
    let (_running, port) = serving(to("backend").retry(&[], 2, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
        .await;
    for _ in 0..2 {
        let mut served = backend.accept().await;
        assert_eq!(served.request().await.body, b"x");
    }
    let mut served = backend.accept().await;
    served.request().await;
    served.send(ok("yes")).await;
    assert_eq!(client.response_to("POST").await.text(), "yes");

    // Nobody listens, until somebody does.
    let port_of_backend = free_port();
    let rule = to("backend").retry(&[], 8, SHORT);
    let (running, port) = serving(rule, &[here(port_of_backend)]).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    until("an attempt failed", || running.proxy.metrics().upstream.failed > 0).await;
    let listener = tokio::net::TcpListener::bind(here(port_of_backend)).await.unwrap();
    let answer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, &ok("late"))
            .await
            .unwrap();
        stream
    });
    assert_eq!(client.response().await.text(), "late");
    soon("the backend", answer).await.unwrap();
}

#[tokio::test]
async fn refused_connections_end_with_503_after_the_last_attempt() {
    let (running, port) = serving(to("backend").retry(&[], 3, SHORT), &[here(free_port())]).await;
    let begun = Instant::now();
    assert_eq!(Client::connect(here(port)).await.get("a", "/").await.status, 503);
    // 20, 40 and 80 milliseconds at least.
    assert!(begun.elapsed() >= SHORT * 7, "{:?}", begun.elapsed());
    assert_eq!(running.proxy.metrics().upstream.failed, 4);
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_tried_again() {
    let mut backend = Backend::manual().await;
    let rule = to("backend")
        .retry(&[], 1, SHORT)
        .backend_timeout(Duration::from_secs(1));
    let (_running, port) = serving(rule, &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut slow = backend.accept().await;
    slow.request().await;
    let mut fast = backend.accept().await;
    fast.request().await;
    fast.send(ok("second")).await;
    assert_eq!(client.response().await.text(), "second");
    slow.ended().await;
    // Both attempts of the next are too slow.
    assert_eq!(client.get("a", "/").await.status, 504);
}

#[tokio::test]
async fn the_request_s_own_limit_bounds_all_attempts() {
    let backend = Backend::start(failing(10_000)).await;
    let rule = to("backend")
        .retry(&[503], 1000, Duration::from_millis(50))
        .request_timeout(Duration::from_secs(1));
    let (_running, port) = serving(rule, &[backend.address]).await;
    let begun = Instant::now();
    assert_eq!(Client::connect(here(port)).await.get("a", "/").await.status, 504);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!((2..=8).contains(&backend.count()), "{}", backend.count());
}

#[tokio::test]
async fn a_response_that_has_begun_is_never_followed_by_another() {
    let mut backend = Backend::manual().await;
    let (_running, port) = serving(to("backend").retry(&[503], 3, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await;
    assert_eq!(status(&client.head().await), 200);
    drop(served);
    assert_eq!(client.rest().await, b"half");
    assert!(!backend.has_connection());
}

#[tokio::test]
async fn another_endpoint_is_preferred() {
    let bad = Backend::start(failing(10_000)).await;
    let good = Backend::answering("good").await;
    let rule = to("backend").retry(&[503], 1, Duration::ZERO);
    let (_running, port) = serving(rule, &[bad.address, good.address]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..30 {
        assert_eq!(client.get("a", "/").await.text(), "good");
    }
    assert!(bad.count() > 0, "it was asked first now and then");
}

#[tokio::test]
async fn h2c_endpoints_that_refuse_are_passed_over() {
    let good = Http2Backend::start().await;
    let port = free_port();
    let endpoints = [here(free_port()), good.address].map(|address| Endpoint { address });
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").retry(&[], 1, Duration::ZERO))
        .cluster_of("backend", UpstreamProtocol::Http2, Endpoints::Known(endpoints.to_vec()));
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    for _ in 0..10 {
        assert_eq!(client.get("http://a.test/").await.status, 200);
    }
}

#[tokio::test]
async fn a_client_that_goes_away_between_attempts_ends_them() {
    let backend = Backend::start(failing(10_000)).await;
    let rule = to("backend").retry(&[503], 1, Duration::from_secs(1));
    let (running, port) = serving(rule, &[backend.address]).await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::get("http://a.test/").body(()).unwrap();
    let (response, stream) = client.send.send_request(request, true).unwrap();
    until("the first attempt", || backend.count() == 1).await;
    drop((response, stream));
    until("the request is over", || {
        running.proxy.metrics().requests.iter().any(|count| count.status == 499)
    })
    .await;
    assert_eq!(backend.count(), 1);
}

#[tokio::test]
async fn a_client_that_waits_to_send_its_body_is_told_to_once() {
    let mut backend = Backend::manual().await;
    let (_running, port) = serving(to("backend").retry(&[503], 1, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        .await;
    let mut first = backend.accept().await;
    first.head().await;
    first.send("HTTP/1.1 100 Continue\r\n\r\n").await;
    assert_eq!(status(&client.head().await), 100);
    client.send("body").await;
    assert_eq!(soon("the body", first.reader.take(4)).await.unwrap(), b"body");
    first.send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").await;
    // It kept its connection, and is asked again on it with the body at once.
    let second = first.request().await;
    assert_eq!(second.body, b"body");
    first.send(ok("done")).await;
    assert_eq!(client.response_to("POST").await.text(), "done");
}

#[tokio::test]
async fn a_backend_that_says_no_before_the_body_is_there_is_asked_again_with_all_of_it() {
    let mut backend = Backend::manual().await;
    let (_running, port) = serving(to("backend").retry(&[503], 1, SHORT), &[backend.address]).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nhalf")
        .await;
    let mut first = backend.accept().await;
    first.head().await;
    assert_eq!(soon("half", first.reader.take(4)).await.unwrap(), b"half");
    first.send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n").await;
    let mut second = backend.accept().await;
    second.head().await;
    assert_eq!(soon("half", second.reader.take(4)).await.unwrap(), b"half");
    client.send("more").await;
    assert_eq!(soon("the rest", second.reader.take(4)).await.unwrap(), b"more");
    second.send(ok("done")).await;
    assert_eq!(client.response_to("POST").await.text(), "done");
    first.ended().await;
}

#[tokio::test]
async fn retries_and_mirrors_do_not_disturb_each_other() {
    let backend = Backend::start(failing(2)).await;
    let copies = Backend::answering("copy").await;
    let port = free_port();
    let rule = to("backend").retry(&[503], 3, SHORT).mirror("copies", 1, 1);
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("backend", &[backend.address])
        .cluster("copies", &[copies.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(post(&mut client, "once").await, (200, "once".to_owned()));
    until("the copy arrives", || copies.count() == 1).await;
    assert_eq!((copies.only().body.as_slice(), backend.count()), (&b"once"[..], 3));
}

#[tokio::test]
async fn many_at_once_are_all_served_in_the_end() {
    let asked = Arc::new(AtomicUsize::new(0));
    let backend = Backend::start(move |request| {
        // Every second request fails.
        if asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            return b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        ok(&String::from_utf8_lossy(&request.body))
    })
    .await;
    let rule = to("backend").retry(&[500], 12, Duration::from_millis(1));
    let (_running, port) = serving(rule, &[backend.address]).await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..50 {
        clients.spawn(async move {
            let mut client = Client::connect(here(port)).await;
            for round in 0..5 {
                let body = format!("{number}-{round}");
                assert_eq!(post(&mut client, &body).await, (200, body));
            }
        });
    }
    while let Some(client) = soon("a client", clients.join_next()).await {
        client.unwrap();
    }
    backend.saw_no_garbage();
}

#[tokio::test]
async fn beyond_the_budget_of_a_backend_nothing_is_tried_again_by_whichever_rule() {
    let backend = Backend::start(failing(usize::MAX)).await;
    let port = free_port();
    let rule = || to("backend").retry(&[503], 1, Duration::ZERO);
    let budget = RetryBudget {
        percent: 0,
        interval: Duration::from_mins(1),
        least: 3,
        least_interval: Duration::from_mins(1),
    };
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/a"), rule())
        .route("", prefix("/b"), rule())
        .cluster("backend", &[backend.address])
        .budget("backend", budget);
    let running = Running::with_workers(1, [plan]).await;
    let mut client = Client::connect(here(port)).await;
    for path in ["/a", "/b", "/a", "/b", "/a"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!(client.response_to("GET").await.status, 503);
    }
    assert_eq!(backend.count(), 8, "five requests, of which three were sent again");
    assert_eq!(running.proxy.metrics().upstream.retried, 3);
}
