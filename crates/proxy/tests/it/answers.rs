//! The answers that the proxy gives itself, and that it counts why.

use std::time::Duration;

use gatewright_ir::{Endpoints, Unresolved, UpstreamProtocol};
use gatewright_proxy::Metrics;

use crate::support::{
    Backend, Client, Plan, Running,
    backend::ok,
    client::get,
    gateway::{RuleChanges, counts, split},
    prefix, rule,
    running::{free_port, here},
    to, until,
};

/// How often the proxy answered for this reason.
pub(crate) fn answered(metrics: &Metrics, listener: &str, reason: &str) -> u64 {
    let of_reason =
        |answer: &&gatewright_proxy::AnswerCount| answer.listener.as_str() == listener && answer.reason == reason;
    metrics
        .answers
        .iter()
        .filter(of_reason)
        .map(|answer| answer.count)
        .sum()
}

/// How often a route answered with this status.
pub(crate) fn responses(metrics: &Metrics, listener: &str, route: Option<&str>, status: u16) -> u64 {
    let is_it = |count: &&gatewright_proxy::RequestCount| {
        count.listener.as_str() == listener
            && count.route.as_ref().map(gatewright_ir::Origin::as_str) == route
            && count.status == status
    };
    metrics.requests.iter().filter(is_it).map(|count| count.count).sum()
}

/// Demands an answer with a one-line body, and that it was counted.
async fn answers(running: &Running, port: u16, target: &str, status: u16, reason: &str, route: Option<&str>) {
    let before = running.proxy.metrics();
    let response = get(here(port), "a.test", target).await;
    assert_eq!(response.status, status, "{target}: {response:?}");
    assert_eq!(response.text().lines().count(), 1, "{response:?}");
    assert!(
        response.text().ends_with('\n')
            && response
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("text/plain"))
    );
    until("the answer is counted", || {
        let now = running.proxy.metrics();
        answered(&now, "gateway/web", reason) == answered(&before, "gateway/web", reason) + 1
            && responses(&now, "gateway/web", route, status) == responses(&before, "gateway/web", route, status) + 1
    })
    .await;
}

#[tokio::test]
async fn each_failure_has_its_status_its_line_and_its_counter() {
    let mut silent = Backend::manual().await;
    let closing = Backend::start(|_| b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec()).await;
    let nonsense = Backend::start(|_| b"nonsense\r\n\r\n".to_vec()).await;
    let refused = here(free_port());
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/no-backend"), rule().origin("no-backend"))
        .route("", prefix("/weightless"), split(&[("silent", 0)]).origin("weightless"))
        .route(
            "",
            prefix("/not-found"),
            rule().unresolved(1, Unresolved::NotFound).origin("not-found"),
        )
        .route(
            "",
            prefix("/not-permitted"),
            rule().unresolved(1, Unresolved::NotPermitted).origin("not-permitted"),
        )
        .route(
            "",
            prefix("/invalid-kind"),
            rule().unresolved(1, Unresolved::InvalidKind).origin("invalid-kind"),
        )
        .route("", prefix("/empty"), to("empty").origin("empty"))
        .route("", prefix("/refused"), to("refused").origin("refused"))
        .route("", prefix("/nonsense"), to("nonsense").origin("nonsense"))
        .route(
            "",
            prefix("/slow"),
            to("silent").request_timeout(Duration::from_millis(50)).origin("slow"),
        )
        .route(
            "",
            prefix("/backend-slow"),
            to("silent")
                .backend_timeout(Duration::from_millis(50))
                .origin("backend-slow"),
        )
        .cluster("empty", &[])
        .cluster("refused", &[refused])
        .cluster("nonsense", &[nonsense.address])
        .cluster("silent", &[silent.address]);
    let running = Running::serving(plan).await;
    drop(closing);
    answers(&running, port, "/unmatched", 404, "no_route", None).await;
    answers(&running, port, "/no-backend", 500, "no_backend", Some("no-backend")).await;
    answers(&running, port, "/weightless", 500, "no_backend", Some("weightless")).await;
    answers(
        &running,
        port,
        "/not-found",
        500,
        "backend_not_found",
        Some("not-found"),
    )
    .await;
    answers(
        &running,
        port,
        "/not-permitted",
        500,
        "ref_not_permitted",
        Some("not-permitted"),
    )
    .await;
    answers(
        &running,
        port,
        "/invalid-kind",
        500,
        "invalid_kind",
        Some("invalid-kind"),
    )
    .await;
    answers(&running, port, "/empty", 503, "no_endpoints", Some("empty")).await;
    answers(&running, port, "/refused", 503, "connect_failed", Some("refused")).await;
    answers(&running, port, "/nonsense", 502, "bad_response", Some("nonsense")).await;
    answers(&running, port, "/slow", 504, "request_timeout", Some("slow")).await;
    answers(
        &running,
        port,
        "/backend-slow",
        504,
        "backend_timeout",
        Some("backend-slow"),
    )
    .await;
    // A backend that was given up gets no second request on that connection.
    let mut first = silent.accept().await;
    first.ended().await;
}

#[tokio::test]
async fn malformed_requests_are_counted_by_their_fault() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    for (request, reason) in [
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "ambiguous_length",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n",
            "unknown_transfer_encoding",
        ),
        ("GET / HTTP/1.1\r\n\r\n", "invalid_host"),
        ("GET /%2f HTTP/1.1\r\nHost: a\r\n\r\n", "escaped_slash_in_path"),
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", "unsupported_version"),
        ("GET / HTTP/1.1\r\nHost: a\r\nX_A: 1\r\n\r\n", "header_underscore"),
        ("nonsense\r\n\r\n", "malformed_head"),
    ] {
        let mut client = Client::connect(here(port)).await;
        client.send(request).await;
        assert!(client.response().await.status >= 400);
        until(reason, || {
            running
                .proxy
                .metrics()
                .answers
                .iter()
                .any(|answer| answer.reason == reason && answer.count == 1)
        })
        .await;
    }
    assert_eq!(backend.count(), 0);
}

#[tokio::test]
async fn what_was_served_is_counted() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").origin("route"))
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..3 {
        client
            .send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody")
            .await;
        assert_eq!(client.response().await.status, 200);
    }
    until("three requests are counted", || {
        let metrics = running.proxy.metrics();
        let traffic = metrics
            .listeners
            .iter()
            .find(|traffic| traffic.listener.as_str() == "gateway/web");
        responses(&metrics, "gateway/web", Some("route"), 200) == 3
            && metrics.upstream.opened == 1
            && metrics.upstream.reused == 2
            && metrics.connections.iter().map(|bind| bind.open).sum::<u64>() == 1
            && traffic.is_some_and(|traffic| {
                (traffic.received_bytes, traffic.sent_bytes) == (12, 15)
                    && traffic.latency.buckets.last().is_some_and(|(_, count)| *count == 3)
            })
    })
    .await;
    drop(client);
    until("the connection is gone", || {
        running
            .proxy
            .metrics()
            .connections
            .iter()
            .map(|bind| bind.open)
            .sum::<u64>()
            == 0
    })
    .await;
}

#[tokio::test]
async fn requests_are_split_by_weight() {
    const REQUESTS: usize = 1000;
    let backends = [
        Backend::answering("a").await,
        Backend::answering("b").await,
        Backend::answering("c").await,
    ];
    let port = free_port();
    let [a, b, c] = &backends;
    let shares = split(&[("a", 70), ("b", 20), ("c", 0)]).unresolved(10, Unresolved::NotFound);
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), shares)
        .cluster("a", &[a.address])
        .cluster("b", &[b.address])
        .cluster("c", &[c.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    let mut seen = Vec::new();
    for _ in 0..REQUESTS {
        let response = client.get("a.test", "/").await;
        seen.push(if response.status == 200 {
            response.text().to_owned()
        } else {
            response.status.to_string()
        });
    }
    let seen = counts(seen);
    for (answer, expected) in [("a", 700_usize), ("b", 200), ("500", 100)] {
        let count = seen.get(answer).copied().unwrap_or_default();
        assert!(count.abs_diff(expected) < 60, "{answer}: {seen:?}");
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(c.count(), 0);
}

#[tokio::test]
async fn endpoints_share_the_requests_of_their_cluster() {
    let backends = [
        Backend::answering("a").await,
        Backend::answering("b").await,
        Backend::answering("c").await,
    ];
    let port = free_port();
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backends")
        .cluster("backends", &addresses);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..150 {
        assert_eq!(client.get("a.test", "/").await.status, 200);
    }
    for backend in &backends {
        assert!(backend.count() >= 30, "{:?}", backends.each_ref().map(Backend::count));
    }
}

#[tokio::test]
async fn an_endpoint_that_refuses_connections_costs_no_request_while_another_serves() {
    let alive = Backend::answering("alive").await;
    let dead = here(free_port());
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("mixed")
        .cluster("mixed", &[dead, alive.address]);
    let _running = Running::serving(plan).await;
    for _ in 0..20 {
        assert_eq!(get(here(port), "a.test", "/").await.text(), "alive");
    }
}

#[tokio::test]
async fn a_named_cluster_is_resolved() {
    let backend = Backend::start(|request| ok(request.header("host").unwrap())).await;
    let named = |allow_local| Endpoints::Named {
        name: "localhost".into(),
        port: backend.address.port(),
        allow_local,
    };
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/allowed"), to("allowed"))
        .route("", prefix("/refused"), to("refused"))
        .cluster_of("allowed", UpstreamProtocol::Http1, named(true))
        .cluster_of("refused", UpstreamProtocol::Http1, named(false));
    let _running = Running::serving(plan).await;
    assert_eq!(get(here(port), "a.test", "/allowed").await.text(), "a.test");
    assert_eq!(get(here(port), "a.test", "/refused").await.status, 503);
    assert_eq!(backend.count(), 1);
}
