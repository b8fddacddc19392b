//! Which pages of other origins may read responses.

use std::time::Duration;

use gatewright_ir::{Cors, Listed, OriginPattern};
use http::Request;

use crate::support::{
    Backend, Client, Plan, Running,
    client::Response,
    gateway::{RuleChanges, headers, prefix, rule, split, to},
    http2::Http2,
    running::{free_port, here},
};

fn these(names: &[&str]) -> Listed {
    Listed::These(names.iter().map(|name| (*name).into()).collect())
}

fn strict() -> Cors {
    Cors {
        origins: ["https://www.foo.com", "https://*.bar.com"]
            .iter()
            .map(|text| OriginPattern::parse(text).unwrap())
            .collect(),
        credentials: true,
        methods: these(&["GET", "OPTIONS"]),
        request_headers: these(&["x-header-1", "x-header-2"]),
        exposed_headers: these(&["x-header-3"]),
        max_age: Duration::from_hours(1),
    }
}

fn open(credentials: bool) -> Cors {
    Cors {
        origins: Box::new([OriginPattern::Any]),
        credentials,
        methods: Listed::All,
        request_headers: Listed::All,
        exposed_headers: Listed::All,
        max_age: Duration::from_secs(5),
    }
}

/// A backend that says something about CORS itself.
async fn rig() -> (Running, Backend, u16) {
    let backend = Backend::start(|_| {
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nAccess-Control-Allow-Origin: https://backend\r\n\
          Access-Control-Allow-Credentials: false\r\nAccess-Control-Allow-Methods: PATCH\r\n\r\nok"
            .to_vec()
    })
    .await;
    let port = free_port();
    let with = |cors: Cors| to("backend").filters(|filters| filters.cors = Some(Box::new(cors)));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/strict"), with(strict()))
        .route("", prefix("/open"), with(open(false)))
        .route("", prefix("/credentials"), with(open(true)))
        .route(
            "",
            prefix("/lost"),
            rule().filters(|filters| filters.cors = Some(Box::new(strict()))),
        )
        .route(
            "",
            prefix("/backend"),
            split(&[("backend", 1)]).backend_filters(|filters| filters.cors = Some(Box::new(strict()))),
        )
        .route("", prefix("/none"), to("backend"))
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, backend, port)
}

async fn ask(port: u16, method: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let mut client = Client::connect(here(port)).await;
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n");
    for (name, value) in fields {
        head += &[name, ": ", value, "\r\n"].concat();
    }
    client.send(head + "\r\n").await;
    client.response_to(method).await
}

fn said(response: &Response) -> Vec<(&str, &str)> {
    let mut said: Vec<_> = response
        .head
        .fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| name.starts_with("access-control") || *name == "vary")
        .collect();
    said.sort_unstable();
    said
}

const PREFLIGHT: [(&str, &str); 3] = [
    ("Origin", "https://a.www.bar.com"),
    ("Access-Control-Request-Method", "PUT"),
    ("Access-Control-Request-Headers", "x-header-1, x-other"),
];
const VARIES: &str = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";

#[tokio::test]
async fn preflights_are_answered_by_the_proxy() {
    let (_running, backend, port) = rig().await;
    for path in ["/strict", "/backend", "/lost"] {
        let response = ask(port, "OPTIONS", path, &PREFLIGHT).await;
        assert_eq!(response.status, 204);
        assert_eq!(response.header("content-length"), None);
        assert_eq!(
            said(&response),
            [
                ("access-control-allow-credentials", "true"),
                ("access-control-allow-headers", "x-header-1, x-header-2"),
                ("access-control-allow-methods", "GET, OPTIONS"),
                ("access-control-allow-origin", "https://a.www.bar.com"),
                ("access-control-expose-headers", "x-header-3"),
                ("access-control-max-age", "3600"),
                ("vary", VARIES),
            ],
            "{path}"
        );
    }
    assert_eq!(backend.count(), 0);
}

#[tokio::test]
async fn wildcards_are_said_only_without_credentials() {
    let (_running, _backend, port) = rig().await;
    let response = ask(port, "OPTIONS", "/open", &PREFLIGHT).await;
    assert_eq!(
        said(&response),
        [
            ("access-control-allow-headers", "*"),
            ("access-control-allow-methods", "*"),
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "*"),
            ("access-control-max-age", "5"),
        ]
    );
    let response = ask(port, "OPTIONS", "/credentials", &PREFLIGHT).await;
    assert_eq!(
        said(&response),
        [
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-headers", "x-header-1, x-other"),
            ("access-control-allow-methods", "PUT"),
            ("access-control-allow-origin", "https://a.www.bar.com"),
            ("access-control-max-age", "5"),
            ("vary", VARIES),
        ]
    );
    // A request that carries credentials gets no wildcard either.
    let origin = ("Origin", "https://any.test:8443");
    let response = ask(port, "GET", "/open", &[origin, ("Cookie", "a=b")]).await;
    assert_eq!(
        said(&response),
        [("access-control-allow-origin", "https://any.test:8443")]
    );
    let response = ask(port, "GET", "/open", &[origin]).await;
    assert_eq!(
        said(&response),
        [
            ("access-control-allow-origin", "*"),
            ("access-control-expose-headers", "*")
        ]
    );
}

#[tokio::test]
async fn responses_say_what_the_filter_grants_and_not_what_the_backend_says() {
    let (_running, backend, port) = rig().await;
    for path in ["/strict", "/backend"] {
        let response = ask(port, "GET", path, &[("Origin", "https://www.foo.com")]).await;
        assert_eq!((response.status, response.text()), (200, "ok"));
        assert_eq!(
            said(&response),
            [
                ("access-control-allow-credentials", "true"),
                ("access-control-allow-origin", "https://www.foo.com"),
                ("access-control-expose-headers", "x-header-3"),
                ("vary", "Origin"),
            ],
            "{path}"
        );
    }
    // OPTIONS without the header of a preflight is an ordinary request.
    let before = backend.count();
    ask(port, "OPTIONS", "/strict", &[("Origin", "https://www.foo.com")]).await;
    assert_eq!(backend.count(), before + 1);
    // Pages may read our own failures, too.
    let response = ask(port, "GET", "/lost", &[("Origin", "https://www.foo.com")]).await;
    assert_eq!(response.status, 500);
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some("https://www.foo.com")
    );
}

#[tokio::test]
async fn other_origins_get_nothing() {
    let (_running, _backend, port) = rig().await;
    for origin in [
        "https://foobar.com",
        "https://bar.com",
        "http://www.foo.com",
        "null",
        "\u{e9}",
    ] {
        let response = ask(port, "GET", "/strict", &[("Origin", origin)]).await;
        assert_eq!(
            (response.status, said(&response)),
            (200, vec![("vary", "Origin")]),
            "{origin}"
        );
        let preflight = [("Origin", origin), ("Access-Control-Request-Method", "GET")];
        let response = ask(port, "OPTIONS", "/strict", &preflight).await;
        assert_eq!(
            (response.status, said(&response)),
            (204, vec![("vary", VARIES)]),
            "{origin}"
        );
    }
    // Without an origin the backend's word stands, but caches are told what it depends on.
    let response = ask(port, "GET", "/strict", &[]).await;
    assert_eq!(response.header("access-control-allow-origin"), Some("https://backend"));
    assert_eq!(response.header("vary"), Some("Origin"));
    let response = ask(port, "GET", "/none", &[("Origin", "https://www.foo.com")]).await;
    assert_eq!(response.header("access-control-allow-origin"), Some("https://backend"));
}

#[tokio::test]
async fn http2_clients_hear_the_same() {
    let (_running, _backend, port) = rig().await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::options("http://a.test/strict")
        .header("origin", "https://www.foo.com")
        .header("access-control-request-method", "GET")
        .body(&b""[..])
        .unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(response.status, 204);
    assert_eq!(response.headers["access-control-allow-methods"], "GET, OPTIONS");
    assert_eq!(response.headers["access-control-max-age"], "3600");
    let request = Request::get("http://a.test/strict")
        .header("origin", "https://www.foo.com")
        .body(&b""[..])
        .unwrap();
    let response = client.request(request).await.unwrap();
    let origins: Vec<_> = response.headers.get_all("access-control-allow-origin").iter().collect();
    assert_eq!(response.status, 200);
    assert_eq!(origins, ["https://www.foo.com"]);
}

#[tokio::test]
async fn the_rule_s_own_response_headers_come_last() {
    let backend = Backend::answering("ok").await;
    let port = free_port();
    let rule = to("backend").filters(|filters| {
        filters.cors = Some(Box::new(strict()));
        filters.response_headers = Some(headers(&[("access-control-expose-headers", "x-mine")], &[], &["vary"]));
    });
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let response = ask(port, "GET", "/", &[("Origin", "https://www.foo.com")]).await;
    assert_eq!(
        said(&response),
        [
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-origin", "https://www.foo.com"),
            ("access-control-expose-headers", "x-mine"),
        ]
    );
}
