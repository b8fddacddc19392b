//! Filters that stand on one of a rule's backends and concern only its share of the requests.

use gatewright_ir::{PathChange, Scheme};
use http::Request;

use crate::support::{
    Backend, Client, Plan, Running,
    gateway::{RuleChanges, headers, prefix, redirect, rewrite, split},
    http2::{Http2, Http2Backend},
    running::{free_port, here},
};

#[tokio::test]
async fn a_backend_s_redirect_answers_for_its_share() {
    let other = Backend::answering("other").await;
    let port = free_port();
    let rule = split(&[("gone", 1), ("other", 1)])
        .filters(|filters| filters.response_headers = Some(headers(&[("x-rule", "1")], &[], &[])))
        .backend_filters(|filters| {
            let mut away = redirect(307);
            away.scheme = Some(Scheme::Https);
            away.hostname = Some("new.test".into());
            away.path = Some(PathChange::Prefix("/moved".into()));
            filters.redirect = Some(away);
            filters.response_headers = Some(headers(&[("x-backend", "1")], &[], &[]));
        });
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/old"), rule)
        .cluster("other", &[other.address]);
    let _running = Running::with_workers(1, [plan]).await;
    let mut client = Client::connect(here(port)).await;
    let mut redirected = 0;
    for _ in 0..20 {
        let response = client.get("a.test", "/old/x?q=1").await;
        assert_eq!(response.header("x-rule"), Some("1"));
        if response.status == 307 {
            redirected += 1;
            assert_eq!(response.header("location"), Some("https://new.test/moved/x?q=1"));
            assert_eq!(response.header("x-backend"), Some("1"));
        } else {
            assert_eq!((response.status, response.text()), (200, "other"));
            assert_eq!(response.header("x-backend"), None);
        }
    }
    // Shares are kept over time, not from one request to the next.
    assert!((7..=13).contains(&redirected), "{redirected}");
    let mut client = Http2::connect(here(port)).await;
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(client.get("http://a.test/old").await.status);
    }
    assert!(statuses.contains(&307) && statuses.contains(&200), "{statuses:?}");
}

#[tokio::test]
async fn a_backend_s_rewrite_wins_over_the_rule_s() {
    let (one, two) = (Backend::answering("one").await, Http2Backend::start().await);
    let port = free_port();
    let rule = |cluster| {
        split(&[(cluster, 1)])
            .filters(|filters| {
                filters.rewrite = Some(rewrite(Some("rule.test"), Some(PathChange::Prefix("/rule".into()))));
                filters.request_headers = Some(headers(&[("x-who", "rule"), ("x-rule", "1")], &[], &[]));
            })
            .backend_filters(|filters| {
                filters.rewrite = Some(rewrite(None, Some(PathChange::Prefix("/backend".into()))));
                filters.request_headers = Some(headers(&[("x-who", "backend")], &[], &[]));
            })
    };
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/one"), rule("one"))
        .route("", prefix("/two"), rule("two"))
        .cluster("one", &[one.address])
        .h2_cluster("two", two.address);
    let _running = Running::serving(plan).await;
    assert_eq!(
        Client::connect(here(port)).await.get("a.test", "/one/x").await.status,
        200
    );
    let seen = one.only();
    assert_eq!(
        (seen.target.as_str(), seen.header("host")),
        ("/backend/x", Some("rule.test"))
    );
    assert_eq!(
        (seen.header("x-who"), seen.header("x-rule")),
        (Some("backend"), Some("1"))
    );
    let mut client = Http2::connect(here(port)).await;
    let request = Request::get("http://a.test/two/x").body(&b""[..]).unwrap();
    assert_eq!(client.request(request).await.unwrap().status, 200);
    let seen = two.requests.lock()[0].clone();
    assert_eq!(seen.head.uri.to_string(), "http://rule.test/backend/x");
    assert_eq!(seen.head.headers["x-who"], "backend");
}
