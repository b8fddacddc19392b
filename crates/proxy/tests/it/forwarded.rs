//! What backends are told about the client, and what clients cannot make them believe.

use crate::support::{
    Backend, Client, Plan, Recorded, Running,
    http2::Http2,
    running::{free_port, here},
};

const PEER: &str = "127.0.0.1";

struct Rig {
    _running: Running,
    backend: Backend,
    port: u16,
}

impl Rig {
    async fn new(trusted: &[&str]) -> Self {
        let backend = Backend::answering("hello").await;
        let port = free_port();
        let plan = Plan::new()
            .http("web", port)
            .settings(|settings| settings.trusted_proxies = trusted.iter().map(|net| net.parse().unwrap()).collect())
            .all_to("backend")
            .cluster("backend", &[backend.address]);
        let running = Running::serving(plan).await;
        Self {
            _running: running,
            backend,
            port,
        }
    }

    /// What the backend sees of a request with these header lines.
    async fn seen(&self, lines: &[&str]) -> Recorded {
        let lines = lines.iter().map(|line| [line, "\r\n"].concat()).collect::<String>();
        let mut client = Client::connect(here(self.port)).await;
        client
            .send(format!("GET / HTTP/1.1\r\nHost: a.test:81\r\n{lines}\r\n"))
            .await;
        let response = client.response().await;
        assert_eq!(response.status, 200, "{response:?}");
        self.backend.requests().last().unwrap().clone()
    }
}

#[tokio::test]
async fn backends_learn_the_peer_the_scheme_and_the_host() {
    let seen = Rig::new(&[]).await.seen(&[]).await;
    assert_eq!(seen.header("x-forwarded-for"), Some(PEER));
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.header("x-forwarded-host"), Some("a.test:81"));
    assert_eq!(seen.header("host"), Some("a.test:81"));
}

#[tokio::test]
async fn statements_of_untrusted_peers_are_replaced() {
    let rig = Rig::new(&["192.0.2.0/24"]).await;
    let seen = rig
        .seen(&[
            "X-Forwarded-For: 9.9.9.9",
            "x-forwarded-for: 8.8.8.8",
            "X-FORWARDED-PROTO: https",
            "X-Forwarded-Host: evil.test",
            "X-Forwarded-Port: 1",
            "X-Forwarded-Prefix: /evil",
            "X-Forwarded-Client-Cert: By=evil",
            "Forwarded: for=9.9.9.9;host=evil.test",
            "X-Real-IP: 9.9.9.9",
            "X-Envoy-Original-Path: /evil",
            "x-envoy-internal: true",
            "x-envoy-external-address: 9.9.9.9",
        ])
        .await;
    assert_eq!(seen.header("x-forwarded-for"), Some(PEER));
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.header("x-forwarded-host"), Some("a.test:81"));
    for (name, value) in &seen.head.fields {
        let is_evil = ["9.9.9.9", "8.8.8.8", "evil", "https"]
            .iter()
            .any(|text| value.contains(text));
        assert!(
            !is_evil && !name.to_ascii_lowercase().starts_with("x-envoy"),
            "{name}: {value}"
        );
    }
}

#[tokio::test]
async fn statements_of_trusted_peers_are_kept_and_the_peer_is_added() {
    let rig = Rig::new(&["127.0.0.0/8"]).await;
    let seen = rig
        .seen(&[
            "X-Forwarded-For: 9.9.9.9",
            "X-Forwarded-For: 8.8.8.8, 7.7.7.7",
            "X-Forwarded-Proto: https",
            "X-Forwarded-Host: shop.test",
            "Forwarded: for=9.9.9.9",
            "X-Real-IP: 9.9.9.9",
        ])
        .await;
    assert_eq!(
        seen.header("x-forwarded-for"),
        Some("9.9.9.9, 8.8.8.8, 7.7.7.7, 127.0.0.1")
    );
    assert_eq!(seen.header("x-forwarded-proto"), Some("https"));
    assert_eq!(seen.header("x-forwarded-host"), Some("shop.test"));
    assert_eq!(seen.header("forwarded"), Some("for=9.9.9.9"));
    assert_eq!(seen.header("x-real-ip"), Some("9.9.9.9"));
}

#[tokio::test]
async fn no_connection_header_takes_away_what_the_proxy_says() {
    for trusted in [&[][..], &["127.0.0.1/32"]] {
        let rig = Rig::new(trusted).await;
        for token in [
            "x-forwarded-for",
            "X-Forwarded-For",
            "X-FORWARDED-FOR",
            "x-forwarded-host",
            "X-Forwarded-Proto",
        ] {
            let seen = rig
                .seen(&[&format!("Connection: close, {token}"), "X-Forwarded-For: 9.9.9.9"])
                .await;
            assert!(seen.header("x-forwarded-for").unwrap().ends_with(PEER), "{token}");
            assert!(
                seen.header("x-forwarded-host").is_some() && seen.header("x-forwarded-proto").is_some(),
                "{token}"
            );
        }
        for token in ["host", "content-length", "transfer-encoding"] {
            let mut client = Client::connect(here(rig.port)).await;
            client
                .send(format!(
                    "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: {token}\r\nContent-Length: 5\r\n\r\nhello"
                ))
                .await;
            assert_eq!(client.response().await.status, 200);
            let seen = rig.backend.requests().last().unwrap().clone();
            assert_eq!(
                (seen.header("host"), seen.body.as_slice()),
                (Some("a.test"), &b"hello"[..]),
                "{token}"
            );
        }
    }
}

#[tokio::test]
async fn headers_for_one_connection_end_at_the_proxy() {
    let rig = Rig::new(&[]).await;
    let seen = rig
        .seen(&[
            "Connection: keep-alive, X-Private",
            "X-Private: 1",
            "X-Public: 1",
            "Keep-Alive: timeout=5",
            "Proxy-Connection: keep-alive",
            "Proxy-Authorization: Basic x",
            "TE: gzip, trailers",
            "Upgrade: h2c",
            "HTTP2-Settings: x",
        ])
        .await;
    for name in [
        "x-private",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "upgrade",
        "http2-settings",
    ] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("x-public"), Some("1"));
    assert!(matches!(seen.header("te"), None | Some("trailers")));
}

#[tokio::test]
async fn response_headers_for_one_connection_end_at_the_proxy() {
    let backend = Backend::start(|_| {
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=1\r\nX-Public: 1\r\n\
          Proxy-Authenticate: x\r\nContent-Length: 2\r\n\r\nok"
            .to_vec()
    })
    .await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let response = Client::connect(here(port)).await.get("a.test", "/").await;
    assert_eq!(response.header("x-public"), Some("1"));
    for name in ["x-private", "keep-alive", "proxy-authenticate"] {
        assert_eq!(response.header(name), None, "{name}");
    }
    assert_eq!(response.text(), "ok");
}

#[tokio::test]
async fn http2_requests_are_held_to_the_same_rules() {
    let rig = Rig::new(&[]).await;
    let mut client = Http2::connect(here(rig.port)).await;
    let request = http::Request::get("http://a.test:81/")
        .header("x-forwarded-for", "9.9.9.9")
        .header("x-forwarded-proto", "https")
        .header("forwarded", "for=9.9.9.9")
        .header("x-real-ip", "9.9.9.9")
        .header("x-envoy-internal", "true")
        .header("x-public", "1")
        .body(&b""[..])
        .unwrap();
    assert_eq!(client.request(request).await.unwrap().status, 200);
    let seen = rig.backend.only();
    assert_eq!(seen.header("x-forwarded-for"), Some(PEER));
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.header("x-forwarded-host"), Some("a.test:81"));
    assert_eq!(seen.header("host"), Some("a.test:81"));
    assert_eq!(seen.header("x-public"), Some("1"));
    for name in ["forwarded", "x-real-ip", "x-envoy-internal"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}
