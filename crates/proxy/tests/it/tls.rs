//! HTTPS listeners: certificates by name, HTTP/2 by agreement, misdirected requests, and certificates that change under
//! traffic.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use gatewright_ir::{Certificate, ListenerState, PrivateKey};
use http::Request;
use rustls::HandshakeKind;

use crate::support::{
    Backend, Client, Plan, Running,
    http2::Http2,
    prefix,
    running::{free_port, here, state_of},
    tls::{certificate, connect, presented, trusting},
    to, until,
};

#[tokio::test]
async fn https_is_served_with_the_certificate_for_the_name() {
    let backend = Backend::answering("hello").await;
    let (a, b) = (certificate(&["a.test"]), certificate(&["*.b.test"]));
    let port = free_port();
    let plan = Plan::new()
        .https("a", port, &[&a])
        .hostname("a.test")
        .all_to("backend")
        .https("b", port, &[&b])
        .hostname("*.b.test")
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let config = trusting(&[&a, &b], &["http/1.1"]);
    for (name, expected) in [("a.test", &a), ("x.b.test", &b)] {
        let stream = connect(here(port), &config, name).await.unwrap();
        assert_eq!(presented(&stream), expected.chain[0]);
        let response = Client::on(stream).get(name, "/").await;
        assert_eq!((response.status, response.text()), (200, "hello"));
    }
    let seen = backend.requests();
    assert!(
        seen.iter()
            .all(|request| request.header("x-forwarded-proto") == Some("https"))
    );
    let error = connect(here(port), &config, "c.test").await.unwrap_err();
    assert!(error.to_string().contains("UnrecognisedName"), "{error}");
}

#[tokio::test]
async fn http2_is_spoken_when_client_and_proxy_agree() {
    let backend = Backend::answering("hello").await;
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let plan = Plan::new()
        .https("web", port, &[&cert])
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let stream = connect(here(port), &trusting(&[&cert], &["h2", "http/1.1"]), "a.test")
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = Http2::on(stream).await;
    let response = client.get("https://a.test/").await;
    assert_eq!((response.status, response.body.as_slice()), (200, &b"hello"[..]));
    // A client that offers nothing gets HTTP/1.1.
    let stream = connect(here(port), &trusting(&[&cert], &[]), "a.test").await.unwrap();
    assert_eq!(Client::on(stream).get("a.test", "/").await.status, 200);
}

#[tokio::test]
async fn requests_for_another_listeners_host_are_misdirected() {
    let backend = Backend::answering("hello").await;
    let names = ["any.test", "second.test", "*.wild.test", "fourth.wild.test"];
    let cert = certificate(&names);
    let port = free_port();
    let mut plan = Plan::new();
    for (listener, hostname) in [
        ("any", ""),
        ("second", "second.test"),
        ("wild", "*.wild.test"),
        ("fourth", "fourth.wild.test"),
    ] {
        plan =
            plan.https(listener, port, &[&cert])
                .hostname(hostname)
                .route(hostname, prefix("/routed"), to("backend"));
    }
    let running = Running::serving(plan.cluster("backend", &[backend.address])).await;
    let config = trusting(&[&cert], &["h2"]);
    for (name, authority, target, expected) in [
        ("second.test", "second.test", "/routed", 200),
        ("second.test", "SECOND.test:443", "/routed", 200),
        ("second.test", "second.test", "/other", 404),
        ("second.test", "third.wild.test", "/routed", 421),
        ("second.test", "unknown.test", "/routed", 421),
        ("third.wild.test", "third.wild.test", "/routed", 200),
        ("third.wild.test", "fifth.wild.test", "/routed", 200),
        ("third.wild.test", "fourth.wild.test", "/routed", 421),
        ("fourth.wild.test", "fourth.wild.test", "/routed", 200),
        ("fourth.wild.test", "third.wild.test", "/routed", 421),
        ("any.test", "any.test", "/routed", 200),
        ("any.test", "unknown.test", "/routed", 200),
        ("any.test", "unknown.test", "/other", 404),
        ("any.test", "second.test", "/routed", 421),
    ] {
        let stream = connect(here(port), &config, name).await.unwrap();
        let mut client = Http2::on(stream).await;
        let uri = format!("https://{authority}{target}");
        let response = client
            .request(Request::get(&uri).body(&b""[..]).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status, expected, "{name} {uri}");
        let mut client = Client::on(
            connect(here(port), &trusting(&[&cert], &["http/1.1"]), name)
                .await
                .unwrap(),
        );
        assert_eq!(
            client.get(authority, target).await.status,
            expected,
            "{name} {uri} over HTTP/1.1"
        );
    }
    let misdirected = |answer: &&gatewright_proxy::AnswerCount| answer.reason == "misdirected";
    until("the answers are counted", || {
        let metrics = running.proxy.metrics();
        metrics
            .answers
            .iter()
            .filter(misdirected)
            .map(|answer| answer.count)
            .sum::<u64>()
            == 10
    })
    .await;
}

#[tokio::test]
async fn refused_handshakes_are_counted() {
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let running = Running::serving(Plan::new().https("web", port, &[&cert]).hostname("a.test")).await;
    let config = trusting(&[&cert], &[]);
    assert!(connect(here(port), &config, "b.test").await.is_err());
    until("the refusal is counted", || {
        let failures = running.proxy.metrics().tls_failures;
        failures
            .iter()
            .any(|failure| failure.reason == "unknown_name" && failure.count == 1)
    })
    .await;
}

#[tokio::test]
async fn a_broken_certificate_disturbs_no_other_listener() {
    let backend = Backend::answering("hello").await;
    let good = certificate(&["good.test"]);
    let mut broken: Certificate = Arc::unwrap_or_clone(certificate(&["broken.test"]));
    broken.key = PrivateKey::new(b"not a key".to_vec());
    let port = free_port();
    let plan = Plan::new()
        .https("broken", port, &[&Arc::new(broken)])
        .hostname("broken.test")
        .all_to("backend")
        .https("good", port, &[&good])
        .hostname("good.test")
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let mut running = Running::serving(plan).await;
    let config = trusting(&[&good], &[]);
    assert!(connect(here(port), &config, "broken.test").await.is_err());
    let stream = connect(here(port), &config, "good.test").await.unwrap();
    assert_eq!(Client::on(stream).get("good.test", "/").await.text(), "hello");
    let facts = running.facts();
    assert!(matches!(
        state_of(&facts, "gateway/good"),
        Some((1, ListenerState::Listening(_)))
    ));
}

#[tokio::test]
async fn sessions_are_resumed_at_every_worker_and_after_changes() {
    let backend = Backend::answering("hello").await;
    let (old, new) = (certificate(&["a.test"]), certificate(&["a.test"]));
    let port = free_port();
    let plan = |certificate| {
        Plan::new()
            .https("web", port, &[certificate])
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let running = Running::serving(plan(&old)).await;
    let config = trusting(&[&old, &new], &[]);
    let mut kinds = Vec::new();
    for round in 0..20 {
        if round == 10 {
            running.apply([plan(&new)]).await;
        }
        let stream = connect(here(port), &config, "a.test").await.unwrap();
        kinds.push(stream.get_ref().1.handshake_kind().unwrap());
        // The tickets for the next round come with the response.
        assert_eq!(Client::on(stream).get("a.test", "/").await.status, 200);
    }
    assert_eq!(kinds[0], HandshakeKind::Full);
    assert_eq!(kinds[1..], [HandshakeKind::Resumed; 19]);
}

#[tokio::test]
async fn certificates_change_under_traffic_without_a_failed_handshake() {
    const SWAPS: usize = 60;
    let backend = Backend::answering("hello").await;
    let certificates: Vec<_> = (0..SWAPS).map(|_| certificate(&["a.test"])).collect();
    let all: Vec<_> = certificates.iter().collect();
    let port = free_port();
    let plan = |number: usize| {
        Plan::new()
            .https("web", port, &[&certificates[number]])
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let running = Running::serving(plan(0)).await;

    let mut old = Client::on(connect(here(port), &trusting(&all, &[]), "a.test").await.unwrap());
    let is_over = Arc::new(AtomicBool::new(false));
    let handshakes = Arc::new(AtomicUsize::new(0));
    let traffic: Vec<_> = (0..4)
        .map(|number| {
            // Half of the clients resume their sessions, half begin anew each time.
            let shared = (number % 2 == 0).then(|| trusting(&all, &[]));
            let fresh: Vec<Arc<Certificate>> = certificates.clone();
            let (is_over, handshakes) = (Arc::clone(&is_over), Arc::clone(&handshakes));
            tokio::spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    let config = shared
                        .clone()
                        .unwrap_or_else(|| trusting(&fresh.iter().collect::<Vec<_>>(), &[]));
                    let stream = connect(here(port), &config, "a.test").await.expect("a handshake");
                    assert_eq!(Client::on(stream).get("a.test", "/").await.status, 200);
                    handshakes.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for (number, expected) in certificates.iter().enumerate().skip(1) {
        let before = handshakes.load(Ordering::SeqCst);
        running.apply([plan(number)]).await;
        let stream = connect(here(port), &trusting(&all, &[]), "a.test").await.unwrap();
        assert_eq!(presented(&stream), expected.chain[0], "swap {number}");
        until("more handshakes", || handshakes.load(Ordering::SeqCst) > before).await;
    }
    is_over.store(true, Ordering::SeqCst);
    for client in traffic {
        client.await.unwrap();
    }
    assert_eq!(old.get("a.test", "/").await.text(), "hello");
    assert!(running.proxy.metrics().tls_failures.is_empty());
}
