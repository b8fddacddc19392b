//! Which listener, host and rule a request belongs to, and what the rule's filters make of it.

use gatewright_ir::{PathChange, Scheme, UpstreamProtocol};

use crate::support::{
    Backend, Client, Plan, Recorded, Running,
    backend::ok,
    client::get,
    exact,
    gateway::{RuleChanges, and_header, headers, pattern, redirect, rewrite},
    prefix, rule,
    running::{free_port, here},
    to,
};

/// A backend per name, each answering with its name.
macro_rules! backends {
    ($($name:ident),+) => {
        $(let $name = Backend::answering(stringify!($name)).await;)+
    };
}

#[tokio::test]
async fn a_request_belongs_to_the_most_specific_listener_and_to_no_other() {
    backends!(exact_host, wildcard, any);
    let port = free_port();
    let plan = Plan::new()
        .http("any", port)
        .route("", prefix("/"), to("any"))
        .http("wildcard", port)
        .hostname("*.shop.test")
        .route("*.shop.test", prefix("/wild"), to("wildcard"))
        .http("exact", port)
        .hostname("a.shop.test")
        .route("a.shop.test", prefix("/exact"), to("exact"))
        .cluster("exact", &[exact_host.address])
        .cluster("wildcard", &[wildcard.address])
        .cluster("any", &[any.address]);
    let _running = Running::serving(plan).await;
    for (host, target, expected) in [
        ("a.shop.test", "/exact", Some("exact_host")),
        ("A.SHOP.TEST", "/exact", Some("exact_host")),
        ("a.shop.test:80", "/exact", Some("exact_host")),
        ("a.shop.test.", "/exact", Some("exact_host")),
        // Isolation: what the most specific listener does not route, no other listener routes.
        ("a.shop.test", "/wild", None),
        ("a.shop.test", "/", None),
        ("b.shop.test", "/wild", Some("wildcard")),
        ("x.y.shop.test", "/wild", Some("wildcard")),
        ("b.shop.test", "/", None),
        ("shop.test", "/wild", Some("any")),
        ("other.test", "/", Some("any")),
        ("127.0.0.1", "/", Some("any")),
    ] {
        let response = get(here(port), host, target).await;
        match expected {
            Some(expected) => assert_eq!(response.text(), expected, "{host} {target}"),
            None => assert_eq!(response.status, 404, "{host} {target}"),
        }
    }
}

#[tokio::test]
async fn in_a_listener_less_specific_hosts_are_tried_when_no_entry_matches() {
    backends!(exact_host, wildcard, any);
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("a.shop.test", prefix("/exact"), to("exact"))
        .route("*.shop.test", prefix("/wild"), to("wildcard"))
        .route("", prefix("/any"), to("any"))
        .cluster("exact", &[exact_host.address])
        .cluster("wildcard", &[wildcard.address])
        .cluster("any", &[any.address]);
    let _running = Running::serving(plan).await;
    for (host, target, expected) in [
        ("a.shop.test", "/exact", "exact_host"),
        ("a.shop.test", "/wild", "wildcard"),
        ("a.shop.test", "/any", "any"),
        ("b.shop.test", "/any", "any"),
    ] {
        assert_eq!(get(here(port), host, target).await.text(), expected, "{host} {target}");
    }
    assert_eq!(get(here(port), "b.shop.test", "/exact").await.status, 404);
}

#[tokio::test]
async fn the_most_specific_match_wins() {
    backends!(exactly, long, short, header, regex);
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("short"))
        .route("", prefix("/a/b"), to("long"))
        .route("", exact("/a/b/c"), to("exactly"))
        .route("", and_header(prefix("/a/b"), "x-kind", "special"), to("header"))
        .route("", pattern("/r/[0-9]+"), to("regex"))
        .cluster("exactly", &[exactly.address])
        .cluster("long", &[long.address])
        .cluster("short", &[short.address])
        .cluster("header", &[header.address])
        .cluster("regex", &[regex.address]);
    let _running = Running::serving(plan).await;
    for (target, kind, expected) in [
        ("/a/b/c", "plain", "exactly"),
        ("/a/b/c", "special", "exactly"),
        ("/a/b/d", "plain", "long"),
        ("/a/b", "plain", "long"),
        ("/a/bc", "plain", "short"),
        ("/a/b/d", "special", "header"),
        ("/r/12", "plain", "regex"),
        ("/r/x", "plain", "short"),
        ("/r/12/x", "plain", "short"),
    ] {
        let mut client = Client::connect(here(port)).await;
        client
            .send(format!(
                "GET {target} HTTP/1.1\r\nHost: a.test\r\nX-Kind: {kind}\r\n\r\n"
            ))
            .await;
        assert_eq!(client.response().await.text(), expected, "{target} {kind}");
    }
}

#[tokio::test]
async fn redirects_keep_what_they_do_not_change() {
    let port = free_port();
    let to_redirect = |change: &dyn Fn(&mut gatewright_ir::Redirect)| {
        let mut redirect = redirect(302);
        change(&mut redirect);
        rule().filters(|filters| filters.redirect = Some(redirect))
    };
    let plan = Plan::new()
        .http("web", port)
        .route(
            "",
            prefix("/host"),
            to_redirect(&|redirect| redirect.hostname = Some("new.test".into())),
        )
        .route(
            "",
            prefix("/scheme"),
            to_redirect(&|redirect| redirect.scheme = Some(Scheme::Https)),
        )
        .route("", prefix("/port"), to_redirect(&|redirect| redirect.port = Some(8443)))
        .route(
            "",
            prefix("/full"),
            to_redirect(&|redirect| redirect.path = Some(PathChange::Full("/new".into()))),
        )
        .route(
            "",
            prefix("/prefix"),
            to_redirect(&|redirect| redirect.path = Some(PathChange::Prefix("/new".into()))),
        )
        .route("", prefix("/moved"), to_redirect(&|redirect| redirect.status = 301));
    let _running = Running::serving(plan).await;
    for (target, status, location) in [
        ("/host/x?q=1", 302, format!("http://new.test:{port}/host/x?q=1")),
        ("/scheme?q=1", 302, "https://old.test/scheme?q=1".to_owned()),
        ("/port", 302, "http://old.test:8443/port".to_owned()),
        ("/full/x?q=1", 302, format!("http://old.test:{port}/new?q=1")),
        ("/prefix/x/y", 302, format!("http://old.test:{port}/new/x/y")),
        ("/moved", 301, format!("http://old.test:{port}/moved")),
    ] {
        let response = get(here(port), &format!("old.test:{port}"), target).await;
        assert_eq!(response.status, status, "{target}");
        assert_eq!(response.header("location"), Some(location.as_str()), "{target}");
    }
}

#[tokio::test]
async fn rewrites_change_what_the_backend_is_asked_for() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let with = |change| to("backend").filters(|filters| filters.rewrite = Some(change));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/host"), with(rewrite(Some("inner.test"), None)))
        .route(
            "",
            prefix("/full"),
            with(rewrite(None, Some(PathChange::Full("/new".into())))),
        )
        .route(
            "",
            prefix("/strip"),
            with(rewrite(None, Some(PathChange::Prefix("/".into())))),
        )
        .route(
            "",
            prefix("/swap"),
            with(rewrite(Some("inner.test"), Some(PathChange::Prefix("/new".into())))),
        )
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    for (target, expected, host) in [
        ("/host/x?q=1", "/host/x?q=1", "inner.test"),
        ("/full/x?q=1", "/new?q=1", "a.test"),
        ("/strip/x/y?q=1", "/x/y?q=1", "a.test"),
        ("/strip", "/", "a.test"),
        ("/swap/x", "/new/x", "inner.test"),
    ] {
        assert_eq!(get(here(port), "a.test", target).await.status, 200);
        let seen: Recorded = backend.requests().last().unwrap().clone();
        assert_eq!(
            (seen.target.as_str(), seen.header("host")),
            (expected, Some(host)),
            "{target}"
        );
        assert_eq!(seen.header("x-forwarded-host"), Some("a.test"), "{target}");
    }
}

#[tokio::test]
async fn headers_are_set_added_and_removed_on_the_way_in_and_out() {
    let backend = Backend::start(|_| {
        b"HTTP/1.1 200 OK\r\nX-Set: old\r\nX-Set: older\r\nX-Add: one\r\nX-Remove: 1\r\nX-Keep: 1\r\nContent-Length: 2\r\n\r\nok".to_vec()
    })
    .await;
    let port = free_port();
    let change = || {
        Some(headers(
            &[("x-set", "new"), ("x-fresh", "1")],
            &[("x-add", "two")],
            &["x-remove", "x-gone"],
        ))
    };
    let plan = Plan::new()
        .http("web", port)
        .route(
            "",
            prefix("/"),
            to("backend").filters(|filters| {
                filters.request_headers = change();
                filters.response_headers = change();
            }),
        )
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send(
            "GET / HTTP/1.1\r\nHost: a.test\r\nX-Set: old\r\nX-SET: older\r\nX-Add: one\r\nX-Remove: 1\r\nx-remove: 2\r\n\
             X-Keep: 1\r\n\r\n",
        )
        .await;
    let response = client.response().await;
    let seen = backend.only();
    for head in [&seen.head, &response.head] {
        assert_eq!(head.all("x-set"), ["new"]);
        assert_eq!(head.all("x-fresh"), ["1"]);
        assert!(
            head.all("x-add") == ["one", "two"]
                || head.all("x-add") == ["one, two"]
                || head.all("x-add") == ["one,two"]
        );
        assert_eq!(head.all("x-remove"), [""; 0]);
        assert_eq!(head.all("x-keep"), ["1"]);
    }
}

#[tokio::test]
async fn filters_of_one_backend_do_not_touch_the_others() {
    let (unchanged, changed) = (
        Backend::answering("unchanged").await,
        Backend::answering("changed").await,
    );
    let port = free_port();
    let mut shares = crate::support::gateway::split(&[("unchanged", 1), ("changed", 1)]);
    shares.backends[1].filters.get_or_insert_default().request_headers = Some(headers(&[("x-a", "1")], &[], &[]));
    shares.backends[1].filters.get_or_insert_default().response_headers = Some(headers(&[("x-b", "1")], &[], &[]));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), shares)
        .cluster("unchanged", &[unchanged.address])
        .cluster("changed", &[changed.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..60 {
        let response = client.get("a.test", "/").await;
        let expected = (response.text() == "changed").then_some("1");
        assert_eq!(response.header("x-b"), expected);
    }
    assert!(unchanged.count() > 0 && changed.count() > 0);
    assert!(
        unchanged
            .requests()
            .iter()
            .all(|request| request.header("x-a").is_none())
    );
    assert!(
        changed
            .requests()
            .iter()
            .all(|request| request.header("x-a") == Some("1"))
    );
}

#[tokio::test]
async fn two_gateways_on_two_ports_know_nothing_of_each_other() {
    backends!(one, two);
    let (first, second) = (free_port(), free_port());
    let plan = |name: &str, port, backend: &Backend| {
        Plan::named(name).http("web", port).all_to("backend").cluster_of(
            "backend",
            UpstreamProtocol::Http1,
            gatewright_ir::Endpoints::Known(vec![gatewright_ir::Endpoint {
                address: backend.address,
            }]),
        )
    };
    let _running = Running::with([plan("one", first, &one), plan("two", second, &two)]).await;
    assert_eq!(get(here(first), "a.test", "/").await.text(), "one");
    assert_eq!(get(here(second), "a.test", "/").await.text(), "two");
}

#[tokio::test]
async fn a_route_to_another_backend_is_followed_by_the_next_request_of_an_open_connection() {
    let backend = |name: &'static str| Backend::start(move |_| ok(name));
    let (old, new) = (backend("old").await, backend("new").await);
    let port = free_port();
    let plan = |address| {
        Plan::new()
            .http("web", port)
            .all_to("backend")
            .cluster("backend", &[address])
    };
    let running = Running::serving(plan(old.address)).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(client.get("a.test", "/").await.text(), "old");
    running.apply([plan(new.address)]).await;
    assert_eq!(client.get("a.test", "/").await.text(), "new");
}
