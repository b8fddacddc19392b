//! The echo and the fixed paths of the conformance contract.

use std::time::{Duration, Instant};

use gatewright_echo::{EchoMode, EchoSettings, Identity};
use http::{Method, Request, StatusCode};
use serde_json::json;

use crate::support::{Client, empty, full, get, http_server, raw, start};

#[tokio::test]
async fn the_echo_tells_what_came_in_and_who_answers() {
    let identity = Identity {
        namespace: "shop".into(),
        ingress: "front".into(),
        service: "cart".into(),
        pod: "cart-7f-abc".into(),
    };
    let server = start(EchoSettings::local(EchoMode::Http).with_identity(identity)).await;
    let request = Request::post("/a/b%20c?x=1&y")
        .header("Host", "shop.example:8080")
        .header("X-Twice", "one")
        .header("x-twice", "two")
        .body(full("ignored"))
        .unwrap();
    let reply = Client::http1(server.addresses.plain).await.send(request).await.unwrap();

    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.headers["x-content-type-options"], "nosniff");
    assert_eq!(
        reply.json(),
        json!({
            "path": "/a/b%20c?x=1&y",
            "host": "shop.example:8080",
            "method": "POST",
            "proto": "HTTP/1.1",
            "headers": {"X-Twice": ["one", "two"], "Content-Length": ["7"]},
            "httpPort": server.addresses.plain.port().to_string(),
            "namespace": "shop",
            "ingress": "front",
            "service": "cart",
            "pod": "cart-7f-abc",
        })
    );
}

#[tokio::test]
async fn an_absolute_target_is_shown_whole_and_names_the_host() {
    let server = http_server().await;
    let answer = raw(
        server.addresses.plain,
        "GET http://other.example/p?q HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.contains(r#""path": "http://other.example/p?q""#), "{answer}");
    assert!(answer.contains(r#""host": "other.example""#), "{answer}");
}

#[tokio::test]
async fn http_1_0_is_named_and_closed_after_the_answer() {
    let server = http_server().await;
    let answer = raw(server.addresses.plain, "GET /old HTTP/1.0\r\n\r\n").await;
    assert!(answer.contains(r#""proto": "HTTP/1.0""#), "{answer}");
    assert!(answer.contains(r#""host": """#), "{answer}");
}

#[tokio::test]
async fn doubled_slashes_choose_the_same_path_and_stay_in_the_echo() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    assert_eq!(client.get("//health").await.text(), "OK");
    assert_eq!(client.get("//status///418").await.status, 418);
    assert_eq!(client.get("//a//b").await.json()["path"], "//a//b");
}

#[tokio::test]
async fn health_is_ok() {
    let server = http_server().await;
    let reply = get(server.addresses.plain, "/health").await;
    assert_eq!((reply.status, reply.text()), (StatusCode::OK, "OK"));
}

#[tokio::test]
async fn status_is_exact_or_a_bad_request() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    for code in [200, 204, 304, 404, 418, 500, 503, 599, 999] {
        let reply = client.get(&format!("/status/{code}")).await;
        assert_eq!((reply.status.as_u16(), reply.text()), (code, ""));
    }
    for path in [
        "/status/",
        "/status/20",
        "/status/2000",
        "/status/abc",
        "/status/404/x",
        "/status/404?x",
        "/status/101",
    ] {
        assert_eq!(client.get(path).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
}

#[tokio::test]
async fn a_delay_is_waited_and_a_bad_one_refused() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    let start = Instant::now();
    assert_eq!(
        client.get("/slow?delay=120ms").await.json()["path"],
        "/slow?delay=120ms"
    );
    assert!(start.elapsed() >= Duration::from_millis(120));
    let reply = client.get("/slow?delay=tomorrow").await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        reply.text(),
        "query parameter delay=tomorrow is not a duration such as 300ms\n"
    );
}

#[tokio::test]
async fn response_headers_are_set_in_the_case_they_were_given() {
    let server = http_server().await;
    let answer = raw(
        server.addresses.plain,
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Echo-Set-Header: x-lower:1,X-UPPER:2, x-lower: 3\r\n\
         X-Echo-Set-Header:\r\nX-Echo-Set-Header: Server:odd, Content-Length:1\r\n\r\n",
    )
    .await;
    let head: Vec<&str> = answer.split("\r\n\r\n").next().unwrap().lines().collect();
    for line in [
        "x-lower: 1,3",
        "X-UPPER: 2",
        "Server: odd",
        "Content-Type: application/json",
    ] {
        assert!(head.contains(&line), "{line} is missing in {head:?}");
    }
    assert!(!head.contains(&"Content-Length: 1"), "{head:?}");
}

#[tokio::test]
async fn bench_answers_exactly_as_many_bytes_as_asked() {
    let server = http_server().await;
    let mut client = Client::http1(server.addresses.plain).await;
    for size in [0, 1, 256, 100_000, 1 << 20] {
        let reply = client.get(&format!("/bench/{size}")).await;
        assert_eq!(reply.headers["content-type"], "text/plain");
        assert_eq!(reply.headers["content-length"], size.to_string());
        assert_eq!(reply.text(), "x".repeat(size));
    }
    // Beyond the limit it is a path like any other.
    assert_eq!(client.get("/bench/1048577").await.json()["path"], "/bench/1048577");
    assert_eq!(server.counters().connections(), 1);
    assert_eq!(server.counters().requests(), 6);
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let server = http_server().await;
    for mut client in [
        Client::http1(server.addresses.plain).await,
        Client::http2(server.addresses.h2c.unwrap()).await,
    ] {
        let length = client.get("/thing").await.headers["content-length"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap();
        let uri = if matches!(client, Client::One(_)) {
            "/thing"
        } else {
            "http://shop.example/thing"
        };
        let mut request = Request::head(uri).body(empty()).unwrap();
        if matches!(client, Client::One(_)) {
            request.headers_mut().insert("host", "shop.example".parse().unwrap());
        }
        let reply = client.send(request).await.unwrap();
        assert_eq!(reply.text(), "");
        // HEAD is one letter longer than GET.
        assert_eq!(reply.headers["content-length"], (length + 1).to_string());
    }
}

#[tokio::test]
async fn connect_opens_no_tunnel() {
    let server = http_server().await;
    let answer = raw(
        server.addresses.plain,
        "CONNECT a.example:80 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

#[tokio::test]
async fn the_h2c_port_speaks_http_2_with_prior_knowledge() {
    let server = http_server().await;
    let mut client = Client::http2(server.addresses.h2c.unwrap()).await;
    let request = Request::builder()
        .method(Method::PUT)
        .uri("http://shop.example/two?x=1")
        .header("x-echo-set-header", "X-Set:yes")
        .body(full("body"))
        .unwrap();
    let reply = client.send(request).await.unwrap();
    assert_eq!(reply.headers["x-set"], "yes");
    let echo = reply.json();
    assert_eq!(echo["proto"], "HTTP/2.0");
    assert_eq!(echo["path"], "/two?x=1");
    assert_eq!(echo["host"], "shop.example");
    assert_eq!(echo["method"], "PUT");
    assert_eq!(echo["httpPort"], server.addresses.plain.port().to_string());
    assert_eq!(client.get("/status/503").await.status, 503);
    assert_eq!(client.get("/bench/1000").await.text(), "x".repeat(1000));
}

#[tokio::test]
async fn the_h2c_port_refuses_http_1_unless_an_upgrade_is_offered() {
    let server = http_server().await;
    let address = server.addresses.h2c.unwrap();
    let answer = raw(address, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("\r\n\r\nExpected h2c request"),
        "{answer}"
    );
    let answer = raw(
        address,
        "GET /up HTTP/1.1\r\nHost: a\r\nConnection: close\r\nUpgrade: h2c\r\n\r\n",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""path": "/up""#),
        "{answer}"
    );
}

#[tokio::test]
async fn the_h2c_port_can_be_left_out() {
    let server = start(EchoSettings::local(EchoMode::Http).with_h2c_port(None)).await;
    assert_eq!(server.addresses.h2c, None);
    assert_eq!(get(server.addresses.plain, "/health").await.status, 200);
}

#[tokio::test]
async fn several_named_backends_run_in_one_process() {
    let cart = start(EchoSettings::local(EchoMode::Http).with_service("cart")).await;
    let stock = start(EchoSettings::local(EchoMode::Http).with_service("stock")).await;
    let answer = get(cart.addresses.plain, "/").await.json();
    assert_eq!((&answer["service"], &answer["pod"]), (&json!("cart"), &json!("cart-0")));
    assert_eq!(get(stock.addresses.plain, "/").await.json()["service"], "stock");
}
