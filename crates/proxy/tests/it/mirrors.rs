//! Copies of requests: who gets them, how many, and that the client never notices.

use std::time::{Duration, Instant};

use bytes::Bytes;
use gatewright_ir::{PathChange, Target, Unresolved};
use http::{HeaderMap, Request};

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    gateway::{RuleChanges, headers, mirror, prefix, rewrite, to},
    http2::{Http2, Http2Backend, whole},
    running::{free_port, here},
    soon, until,
};

async fn post(client: &mut Client, body: &[u8]) -> (u16, String) {
    let head = format!(
        "POST /in?q=1 HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(head).await;
    client.send(body).await;
    let response = client.response_to("POST").await;
    (response.status, response.text().to_owned())
}

#[tokio::test]
async fn every_mirror_gets_the_request_as_the_rule_changes_it() {
    let backend = Backend::answering("real").await;
    let first = Backend::start(|_| b"HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\ncopy".to_vec()).await;
    let second = Http2Backend::start().await;
    let port = free_port();
    let rule = to("backend")
        .mirror("first", 1, 1)
        .mirror("second", 1, 1)
        .filters(|filters| {
            filters.request_headers = Some(headers(&[("x-set", "1")], &[], &["x-gone"]));
            filters.rewrite = Some(rewrite(None, Some(PathChange::Prefix("/out".into()))));
        });
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/in"), rule)
        .cluster("backend", &[backend.address])
        .cluster("first", &[first.address])
        .h2_cluster("second", second.address);
    let running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    for round in 1..=3 {
        client
            .send("POST /in/x?q=1 HTTP/1.1\r\nHost: a.test\r\nX-Gone: 1\r\nContent-Length: 5\r\n\r\nhello")
            .await;
        let response = client.response_to("POST").await;
        assert_eq!((response.status, response.text()), (200, "real"));
        until("the copies arrive", || {
            first.count() == round && second.count() == round
        })
        .await;
    }
    let copy = &first.requests()[0];
    assert_eq!(
        (copy.target.as_str(), copy.body.as_slice()),
        ("/out/x?q=1", &b"hello"[..])
    );
    assert_eq!((copy.header("x-set"), copy.header("x-gone")), (Some("1"), None));
    assert_eq!(copy.head, backend.requests()[0].head);
    let copy = second.requests.lock()[0].clone();
    assert_eq!(copy.head.uri.path_and_query().unwrap(), "/out/x?q=1");
    assert_eq!(
        (copy.head.headers["x-set"].to_str().unwrap(), copy.body.as_slice()),
        ("1", &b"hello"[..])
    );
    // What they answered was read to its end, so their connections were used again.
    assert!(first.connections() <= 2, "{}", first.connections());
    first.saw_no_garbage();
    let upstream = running.proxy.metrics().upstream;
    assert_eq!((upstream.mirrored, upstream.mirrors_dropped), (6, 0));
}

#[tokio::test]
async fn streams_of_http2_are_copied_with_their_trailers() {
    let backend = Http2Backend::start().await;
    let mirrored = Http2Backend::start().await;
    let old = Backend::answering("copy").await;
    let port = free_port();
    let rule = to("backend").mirror("copies", 1, 1).mirror("plain", 1, 1);
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .h2_cluster("backend", backend.address)
        .h2_cluster("copies", mirrored.address)
        .cluster("plain", &[old.address]);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::post("http://a.test/")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut body) = client.send.send_request(request, false).unwrap();
    for piece in ["one", "two", "three"] {
        body.send_data(Bytes::from(piece), false).unwrap();
        tokio::task::yield_now().await;
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "3".parse().unwrap());
    body.send_trailers(trailers.clone()).unwrap();
    let response = soon("a response", async { whole(response.await.unwrap()).await.unwrap() }).await;
    assert_eq!((response.status, response.body.as_slice()), (200, &b"onetwothree"[..]));
    assert_eq!(response.trailers, Some(trailers.clone()));
    until("the copies arrive", || mirrored.count() == 1 && old.count() == 1).await;
    let seen = mirrored.requests.lock()[0].clone();
    assert_eq!(
        (seen.body.as_slice(), seen.trailers),
        (&b"onetwothree"[..], Some(trailers))
    );
    let seen = old.only();
    assert_eq!(seen.body, b"onetwothree");
    assert_eq!(seen.trailers, [("x-sum".to_owned(), "3".to_owned())]);
}

#[tokio::test]
async fn shares_are_kept_exactly_over_time() {
    let backend = Backend::answering("real").await;
    let [percent, third, none, all] = [(); 4].map(|()| Backend::answering("copy"));
    let (percent, third, none, all) = tokio::join!(percent, third, none, all);
    let port = free_port();
    let rule = to("backend")
        .mirror("percent", 20, 100)
        .mirror("third", 1, 3)
        .mirror("none", 0, 100)
        .mirror("all", 100, 100);
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("backend", &[backend.address])
        .cluster("percent", &[percent.address])
        .cluster("third", &[third.address])
        .cluster("none", &[none.address])
        .cluster("all", &[all.address]);
    let _running = Running::with_workers(1, [plan]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..500 {
        assert_eq!(client.get("a.test", "/").await.status, 200);
    }
    until("all copies arrive", || all.count() == 500).await;
    until("the shares arrive", || percent.count() >= 100 && third.count() >= 166).await;
    assert!((100..=101).contains(&percent.count()), "{}", percent.count());
    assert!((166..=167).contains(&third.count()), "{}", third.count());
    assert_eq!(none.count(), 0);
}

#[tokio::test]
async fn dead_silent_and_unresolved_mirrors_change_nothing_for_the_client() {
    let backend = Backend::start(|request| ok(&request.body.len().to_string())).await;
    let mut silent = Backend::manual().await;
    let port = free_port();
    let rule = to("backend")
        .mirror("dead", 1, 1)
        .mirror("silent", 1, 1)
        .filters(|filters| {
            let mut lost = mirror("lost", 1, 1);
            lost.target = Target::Unresolved(Unresolved::NotFound);
            filters.mirrors = filters
                .mirrors
                .iter()
                .cloned()
                .chain([lost, mirror("unknown", 1, 1)])
                .collect();
        });
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("backend", &[backend.address])
        .cluster("dead", &[here(free_port())])
        .cluster("silent", &[silent.address]);
    let running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    // Far more than the silent mirror's socket and its queue hold.
    let body = vec![b'x'; 24 * 1024 * 1024];
    let begun = Instant::now();
    assert_eq!(post(&mut client, &body).await, (200, body.len().to_string()));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let mut served = silent.accept().await;
    served.head().await;
    until("both copies are given up", || {
        running.proxy.metrics().upstream.mirrors_dropped == 2
    })
    .await;
    served.ended().await;
    // A small body fits, and the mirror is asked again.
    assert_eq!(post(&mut client, b"small").await, (200, "5".to_owned()));
    assert_eq!(silent.accept().await.request().await.body, b"small");
}

#[tokio::test]
async fn copies_under_way_have_a_limit() {
    let backend = Backend::answering("real").await;
    let silent = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").mirror("silent", 1, 1))
        .cluster("backend", &[backend.address])
        .cluster("silent", &[silent.address]);
    let running = Running::with_workers(1, [plan]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..300 {
        assert_eq!(client.get("a.test", "/").await.status, 200);
    }
    let upstream = running.proxy.metrics().upstream;
    assert_eq!((upstream.mirrored, upstream.mirrors_dropped), (256, 44));
}

#[tokio::test]
async fn a_body_that_the_client_breaks_off_is_broken_off_at_the_mirror() {
    let mut backend = Backend::manual().await;
    let mut copies = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").mirror("copies", 1, 1))
        .cluster("backend", &[backend.address])
        .cluster("copies", &[copies.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf")
        .await;
    let (mut real, mut copy) = (backend.accept().await, copies.accept().await);
    assert_eq!(real.head().await.line, copy.head().await.line);
    drop(client);
    real.ended().await;
    copy.ended().await;
    assert_eq!(copy.reader.buffer, b"half");
}

#[tokio::test]
async fn mirrors_of_a_backend_get_its_share_alone() {
    let (one, two) = tokio::join!(Backend::answering("one"), Backend::answering("two"));
    let copies = Backend::answering("copy").await;
    let port = free_port();
    let rule = crate::support::gateway::split(&[("one", 1), ("two", 1)])
        .backend_filters(|filters| filters.mirrors = Box::new([mirror("copies", 1, 1)]));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("one", &[one.address])
        .cluster("two", &[two.address])
        .cluster("copies", &[copies.address]);
    let _running = Running::with_workers(1, [plan]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..40 {
        client.get("a.test", "/").await;
    }
    until("the copies arrive", || copies.count() == one.count()).await;
    // Shares are kept over time: the most that the sequence can be off after 40.
    assert!((18..=22).contains(&one.count()), "{}", one.count());
    assert_eq!(one.count() + two.count(), 40);
}
