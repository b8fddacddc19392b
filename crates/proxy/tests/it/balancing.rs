//! Which endpoint gets a request: the less busy one, never a failing one while others work, and no request is lost when
//! endpoints come and go.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    running::{free_port, here},
    soon, until,
};

fn plan(port: u16, endpoints: &[std::net::SocketAddr], generation: i64) -> Plan {
    Plan::new()
        .generation(generation)
        .http("web", port)
        .all_to("backend")
        .cluster("backend", endpoints)
}

#[tokio::test]
async fn a_busy_endpoint_gets_less() {
    let mut slow = Backend::manual().await;
    let fast = Backend::answering("fast").await;
    let port = free_port();
    let _running = Running::with_workers(1, [plan(port, &[slow.address, fast.address], 1)]).await;
    // One request hangs at the slow one; from then on every pair of the two prefers the other.
    let mut waiting = Vec::new();
    while !slow.has_connection() {
        let mut client = Client::connect(here(port)).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        tokio::time::timeout(Duration::from_millis(200), client.head())
            .await
            .ok();
        waiting.push(client);
        assert!(waiting.len() < 50, "the slow one is never asked");
    }
    let mut client = Client::connect(here(port)).await;
    for _ in 0..100 {
        assert_eq!(client.get("a", "/").await.text(), "fast");
    }
    let mut served = slow.accept().await;
    served.request().await;
    assert!(!slow.has_connection());
}

#[tokio::test]
async fn a_client_keeps_its_endpoint_where_the_service_wants_it_and_gets_another_when_that_is_gone() {
    let mut backends = Vec::new();
    for name in ["one", "two", "three", "four"] {
        backends.push(Backend::answering(name).await);
    }
    let port = free_port();
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let sticky =
        |addresses: &[std::net::SocketAddr], generation| plan(port, addresses, generation).by_client("backend");
    let running = Running::with_workers(2, [sticky(&addresses, 1)]).await;
    let ask = async |_: usize| Client::connect(here(port)).await.get("a", "/").await.text().to_owned();
    let first = ask(0).await;
    for attempt in 1..40 {
        assert_eq!(ask(attempt).await, first);
    }
    let gone = backends.iter().position(|backend| backend.count() > 0).unwrap();
    let rest: Vec<_> = addresses
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != gone)
        .map(|(_, one)| *one)
        .collect();
    running.apply([sticky(&rest, 2)]).await;
    let second = ask(0).await;
    assert_ne!(second, first);
    for attempt in 1..40 {
        assert_eq!(ask(attempt).await, second);
    }
    // Back again, it has its client again.
    running.apply([sticky(&addresses, 3)]).await;
    assert_eq!(ask(0).await, first);
}

#[tokio::test]
async fn an_endpoint_that_keeps_failing_is_passed_over_and_tried_again_later() {
    let is_failing = Arc::new(AtomicBool::new(true));
    let says = Arc::clone(&is_failing);
    let bad = Backend::start(move |_| {
        if says.load(Ordering::SeqCst) {
            return b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad".to_vec();
        }
        ok("well")
    })
    .await;
    let good = Backend::answering("good").await;
    let port = free_port();
    let _running = Running::with_workers(1, [plan(port, &[bad.address, good.address], 1)]).await;
    let mut client = Client::connect(here(port)).await;
    let mut failures = 0;
    let begun = Instant::now();
    while failures < 5 {
        failures += usize::from(client.get("a", "/").await.status == 502);
        assert!(begun.elapsed() < Duration::from_secs(10), "it is never asked");
    }
    // Five in a row of its own: it rests.
    for _ in 0..50 {
        let response = client.get("a", "/").await;
        assert!(
            response.text() == "good" || begun.elapsed() > Duration::from_secs(1),
            "{response:?}"
        );
    }
    is_failing.store(false, Ordering::SeqCst);
    soon("it is asked again", async {
        while client.get("a", "/").await.text() != "well" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn when_all_fail_they_are_asked_all_the_same() {
    let bad = || Backend::start(|_| b"HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nbad".to_vec());
    let (one, two) = tokio::join!(bad(), bad());
    let port = free_port();
    let _running = Running::with_workers(1, [plan(port, &[one.address, two.address], 1)]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..60 {
        assert_eq!(client.get("a", "/").await.text(), "bad");
    }
    assert_eq!(one.count() + two.count(), 60);
    assert!(one.count() > 15 && two.count() > 15, "{} {}", one.count(), two.count());
}

#[tokio::test]
async fn other_failures_of_an_application_are_no_reason_to_rest() {
    let bad = Backend::start(|_| b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\nbad".to_vec()).await;
    let good = Backend::answering("good").await;
    let port = free_port();
    let _running = Running::with_workers(1, [plan(port, &[bad.address, good.address], 1)]).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..60 {
        client.get("a", "/").await;
    }
    assert!(bad.count() > 15, "{}", bad.count());
}

/// A backend that stops as a pod does: from then on it refuses connections and closes those that are unused.
#[tokio::test]
async fn endpoints_that_roll_under_load_lose_no_request() {
    const REPLICAS: usize = 10;
    let port = free_port();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(Backend::answering("ok").await);
    }
    let addresses = |replicas: &[Backend]| replicas.iter().map(|one| one.address).collect::<Vec<_>>();
    let running = Running::serving(plan(port, &addresses(&replicas), 1)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (is_over, answered) = (Arc::clone(&is_over), Arc::clone(&answered));
        clients.spawn(async move {
            let mut client = Client::connect(here(port)).await;
            while !is_over.load(Ordering::SeqCst) {
                // Bodies make requests that cannot simply be sent again.
                let request = if number % 2 == 0 {
                    "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
                } else {
                    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
                };
                client.send(request).await;
                let response = client.response().await;
                assert_eq!((response.status, response.text()), (200, "ok"));
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    for generation in 0..REPLICAS {
        let before = answered.load(Ordering::SeqCst);
        // The new one is ready, the old one is taken out, and only then it ends.
        replicas.push(Backend::answering("ok").await);
        let old = replicas.remove(0);
        running
            .apply([plan(
                port,
                &addresses(&replicas),
                2 + i64::try_from(generation).unwrap(),
            )])
            .await;
        let seen = old.count();
        until("requests go on", || answered.load(Ordering::SeqCst) > before + 200).await;
        // What was under way has ended; nothing new came.
        let settled = old.count();
        assert!(settled <= seen + 8, "{seen} {settled}");
        drop(old);
    }
    is_over.store(true, Ordering::SeqCst);
    while let Some(client) = soon("a client", clients.join_next()).await {
        client.unwrap();
    }
    assert!(answered.load(Ordering::SeqCst) >= REPLICAS * 200);
    assert_eq!(running.proxy.metrics().upstream.failed, 0);
}

#[tokio::test]
async fn an_endpoint_that_dies_before_anybody_says_so_costs_no_request() {
    let port = free_port();
    let (one, two) = tokio::join!(Backend::answering("ok"), Backend::answering("ok"));
    let _running = Running::with_workers(1, [plan(port, &[one.address, two.address], 1)]).await;
    let mut client = Client::connect(here(port)).await;
    for round in 0..100 {
        if round == 50 {
            // Its listener and its connections are gone at once.
            assert!(one.count() > 0);
            break;
        }
        assert_eq!(client.get("a", "/").await.status, 200);
    }
    drop(one);
    for _ in 0..50 {
        assert_eq!(client.get("a", "/").await.text(), "ok");
    }
}
