//! Somebody else decides whether requests may pass, over HTTP and over gRPC, and whatever goes wrong lets nothing pass.

use std::time::Duration;

use gatewright_ir::{
    AuthProtocol, ClusterId, Cors, ExternalAuth, Filters, Listed, OriginPattern, Rule, Target, Unresolved,
};
use http::{HeaderMap, HeaderValue, Request, Response};

use crate::support::{
    Backend, Client, Plan, Recorded, Running,
    backend::ok,
    client::status,
    gateway::{RuleChanges, headers, prefix, redirect, split, to},
    http2::{Http2, Http2Answer, Http2Backend, Http2Recorded},
    running::{free_port, here},
    soon,
};

fn names(names: &[&str]) -> Box<[gatewright_ir::Text]> {
    names.iter().map(|name| (*name).into()).collect()
}

fn http(max_body: Option<u32>) -> ExternalAuth {
    ExternalAuth {
        target: Target::Cluster(ClusterId::new("auth")),
        protocol: AuthProtocol::Http {
            path: "/check/".into(),
            request_headers: names(&["x-sent"]),
            response_headers: Some(names(&["x-user", "x-group"])),
        },
        max_body,
    }
}

fn grpc(max_body: Option<u32>) -> ExternalAuth {
    ExternalAuth {
        protocol: AuthProtocol::Grpc { request_headers: None },
        ..http(max_body)
    }
}

fn asking(auth: ExternalAuth) -> impl FnOnce(&mut Filters) {
    move |filters| filters.auth = Some(Box::new(auth))
}

/// Lets those pass who say the word.
fn guard(request: &Recorded) -> Vec<u8> {
    if request.header("authorization") == Some("Bearer word") {
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/x-auth\r\nX-User: ann\r\n\
                 X-Secret: 1\r\n\r\nok"
            .to_vec();
    }
    b"HTTP/1.1 401 No\r\nContent-Length: 12\r\nWWW-Authenticate: Bearer\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\nwho are you?"
        .to_vec()
}

async fn serving(rule: Rule, auth: &Backend, backend: &Backend) -> (Running, u16) {
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("auth", &[auth.address])
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, port)
}

async fn rig(rule: Rule) -> (Running, Backend, Backend, u16) {
    let auth = Backend::start(guard).await;
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body))).await;
    let (running, port) = serving(rule, &auth, &backend).await;
    (running, auth, backend, port)
}

#[tokio::test]
async fn a_grant_lets_the_request_pass_with_what_the_authoriser_says() {
    let rule = to("backend").filters(asking(http(None))).filters(|filters| {
        filters.request_headers = Some(headers(&[("x-rule", "1")], &[("x-user", "added")], &[]));
    });
    let (_running, auth, backend, port) = rig(rule).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send(
            "POST /p/q?r=s HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer word\r\nX-Sent: 1\r\nX-Kept: 1\r\n\
             X-User: root\r\nX-Group: wheel\r\nContent-Length: 4\r\n\r\nbody",
        )
        .await;
    let response = client.response_to("POST").await;
    assert_eq!((response.status, response.text()), (200, "body"));
    let asked = auth.only();
    assert_eq!(
        (asked.method.as_str(), asked.target.as_str()),
        ("POST", "/check/p/q?r=s")
    );
    assert_eq!(asked.header("host"), Some("a.test"));
    assert_eq!(asked.header("authorization"), Some("Bearer word"));
    assert_eq!((asked.header("x-sent"), asked.header("x-kept")), (Some("1"), None));
    assert_eq!(
        (asked.header("content-length"), asked.body.as_slice()),
        (Some("0"), &b""[..])
    );
    let seen = backend.only();
    // What the client claims to be does not count, whether the authoriser says something about it or not.
    assert_eq!(seen.head.all("x-user"), ["ann", "added"]);
    assert_eq!(seen.head.all("x-group"), [""; 0]);
    assert_eq!((seen.header("x-secret"), seen.header("x-rule")), (None, Some("1")));
    assert_eq!((seen.header("x-kept"), seen.body.as_slice()), (Some("1"), &b"body"[..]));
    // Connections on all sides go on.
    client
        .send("GET / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer word\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 200);
    auth.saw_no_garbage();
    backend.saw_no_garbage();
}

#[tokio::test]
async fn without_a_list_all_headers_of_a_grant_are_put_on_the_request() {
    let mut auth = http(None);
    auth.protocol = AuthProtocol::Http {
        path: "".into(),
        request_headers: names(&[]),
        response_headers: None,
    };
    let (_running, auth, backend, port) = rig(to("backend").filters(asking(auth))).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("GET /p HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer word\r\nContent-Type: text/mine\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 200);
    assert_eq!(auth.only().target, "/p");
    let seen = backend.only();
    assert_eq!(
        (seen.header("x-user"), seen.header("x-secret")),
        (Some("ann"), Some("1"))
    );
    // What describes the authoriser's own answer does not describe the request.
    assert_eq!(
        (seen.header("content-type"), seen.header("host")),
        (Some("text/mine"), Some("a.test"))
    );
}

#[tokio::test]
async fn a_refusal_is_what_the_authoriser_says() {
    let (running, _auth, backend, port) = rig(to("backend").filters(asking(http(None)))).await;
    let mut client = Client::connect(here(port)).await;
    let response = client.get("a.test", "/").await;
    assert_eq!((response.status, response.text()), (401, "who are you?"));
    assert_eq!(
        (response.header("www-authenticate"), response.header("x-hop")),
        (Some("Bearer"), None)
    );
    let mut client = Http2::connect(here(port)).await;
    let response = client.get("http://a.test/").await;
    assert_eq!((response.status, response.body.as_slice()), (401, &b"who are you?"[..]));
    assert_eq!(response.headers["www-authenticate"], "Bearer");
    // A call of gRPC is refused as calls are.
    let call = Request::post("http://a.test/s/m")
        .header("content-type", "application/grpc")
        .body(&b"\0\0\0\0\0"[..])
        .unwrap();
    let response = client.request(call).await.unwrap();
    assert_eq!(
        (response.status, response.headers["grpc-status"].as_bytes()),
        (200, &b"16"[..])
    );
    assert_eq!(backend.count(), 0);
    let answers = running.proxy.metrics().answers;
    assert!(
        answers.iter().any(|one| one.reason == "auth_denied" && one.count == 3),
        "{answers:?}"
    );
}

#[tokio::test]
async fn whatever_goes_wrong_lets_nothing_pass() {
    let backend = Backend::answering("passed").await;
    let answers: [&'static [u8]; 5] = [
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\nConnection: close\r\n\r\nshort",
    ];
    for answer in answers {
        let auth = Backend::start(move |_| answer.to_vec()).await;
        let (_running, port) = serving(to("backend").filters(asking(http(None))), &auth, &backend).await;
        let response = Client::connect(here(port)).await.get("a", "/").await;
        assert_eq!(response.status, 403, "{}", String::from_utf8_lossy(answer));
    }
    let huge = Backend::start(|_| ok(&"x".repeat(200_000))).await;
    let (_running, port) = serving(to("backend").filters(asking(http(None))), &huge, &backend).await;
    assert_eq!(Client::connect(here(port)).await.get("a", "/").await.status, 403);
    let port = free_port();
    let lost = |target: Target| {
        let target = ExternalAuth { target, ..http(None) };
        to("backend").filters(asking(target))
    };
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/dead"), to("backend").filters(asking(http(None))))
        .route("", prefix("/dead-grpc"), to("backend").filters(asking(grpc(None))))
        .route(
            "",
            prefix("/unresolved"),
            lost(Target::Unresolved(Unresolved::NotPermitted)),
        )
        .route("", prefix("/unknown"), lost(Target::Cluster(ClusterId::new("unknown"))))
        .route("", prefix("/empty"), lost(Target::Cluster(ClusterId::new("empty"))))
        .cluster("auth", &[here(free_port())])
        .cluster("empty", &[])
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    for path in ["/dead", "/dead-grpc", "/unresolved", "/unknown", "/empty"] {
        assert_eq!(client.get("a", path).await.status, 403, "{path}");
    }
    assert_eq!(backend.count(), 0);
}

#[tokio::test]
async fn a_silent_authoriser_does_not_outlast_the_rule_s_limit() {
    let backend = Backend::answering("passed").await;
    let mut auth = Backend::manual().await;
    let port = free_port();
    let rule = to("backend")
        .filters(asking(http(None)))
        .request_timeout(Duration::from_millis(100));
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("auth", &[auth.address])
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    assert_eq!(Client::connect(here(port)).await.get("a", "/").await.status, 504);
    auth.accept().await.request().await;
    assert_eq!(backend.count(), 0);
}

#[tokio::test]
async fn bodies_are_shown_up_to_the_limit_and_refused_beyond() {
    let (_running, auth, backend, port) = rig(to("backend").filters(asking(http(Some(10))))).await;
    let start = "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer word\r\n";
    let mut client = Client::connect(here(port)).await;
    client
        .send(format!("{start}Content-Length: 10\r\n\r\n0123456789"))
        .await;
    assert_eq!(client.response_to("POST").await.text(), "0123456789");
    client
        .send(format!(
            "{start}Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n4\r\nmore\r\n0\r\nX-Sum: 8\r\n\r\n"
        ))
        .await;
    assert_eq!(client.response_to("POST").await.text(), "fourmore");
    assert_eq!(backend.requests()[1].trailers, [("x-sum".to_owned(), "8".to_owned())]);
    // A client that waits is told to go on by the proxy, and the backend is not asked for that again.
    client
        .send(format!("{start}Content-Length: 4\r\nExpect: 100-continue\r\n\r\n"))
        .await;
    assert_eq!(status(&client.head().await), 100);
    client.send("wait").await;
    assert_eq!(client.response_to("POST").await.text(), "wait");
    let shown: Vec<_> = auth.requests().into_iter().map(|asked| asked.body).collect();
    assert_eq!(shown, [&b"0123456789"[..], b"fourmore", b"wait"]);
    assert_eq!(auth.requests()[1].header("content-length"), Some("8"));
    assert_eq!(backend.requests()[2].header("expect"), None);
    // Too much, announced or not.
    client.send(format!("{start}Content-Length: 11\r\n\r\n")).await;
    assert_eq!(client.response_to("POST").await.status, 413);
    let mut client = Client::connect(here(port)).await;
    client
        .send(format!("{start}Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n"))
        .await;
    assert_eq!(client.response_to("POST").await.status, 413);
    assert_eq!((auth.count(), backend.count()), (3, 3));
    let mut client = Http2::connect(here(port)).await;
    let request = Request::post("http://a/").header("authorization", "Bearer word");
    let response = client.request(request.body(&b"h2"[..]).unwrap()).await.unwrap();
    assert_eq!((response.status, response.body.as_slice()), (200, &b"h2"[..]));
    assert_eq!(auth.requests()[3].body, b"h2");
    backend.saw_no_garbage();
}

#[tokio::test]
async fn redirects_come_after_authorisation_and_preflights_before() {
    let rule = to("backend").filters(asking(http(None))).filters(|filters| {
        let mut away = redirect(302);
        away.hostname = Some("new.test".into());
        filters.redirect = Some(away);
        filters.cors = Some(Box::new(Cors {
            origins: Box::new([OriginPattern::parse("https://page.test").unwrap()]),
            credentials: true,
            methods: Listed::All,
            request_headers: Listed::All,
            exposed_headers: Listed::All,
            max_age: Duration::from_secs(5),
        }));
    });
    let (_running, auth, _backend, port) = rig(rule).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send(
            "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: https://page.test\r\nAccess-Control-Request-Method: GET\r\n\r\n",
        )
        .await;
    assert_eq!(client.response_to("OPTIONS").await.status, 204);
    assert_eq!(auth.count(), 0);
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nOrigin: https://page.test\r\n\r\n")
        .await;
    let response = client.response().await;
    assert_eq!((response.status, response.header("location")), (401, None));
    assert_eq!(
        response.header("access-control-allow-origin"),
        Some("https://page.test")
    );
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer word\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 302);
}

#[tokio::test]
async fn a_backend_s_authoriser_concerns_its_share_alone() {
    let rule = split(&[("backend", 1), ("auth", 1)]).backend_filters(asking(http(Some(100))));
    let (_running, _auth, backend, port) = rig(rule).await;
    let mut client = Client::connect(here(port)).await;
    let mut statuses = Vec::new();
    for _ in 0..8 {
        client
            .send("POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer word\r\nContent-Length: 1\r\n\r\nx")
            .await;
        assert_eq!(client.response_to("POST").await.status, 200);
        // The other backend is the guard itself, which says no to those whom nobody asks for the word.
        statuses.push(client.get("a", "/").await.status);
    }
    assert_eq!(statuses, [401; 8]);
    assert!(
        backend
            .requests()
            .iter()
            .all(|seen| seen.header("x-user") == Some("ann"))
    );
    assert!(backend.count() > 0);
}

#[tokio::test]
async fn granted_requests_can_be_mirrored_and_tried_again() {
    let rule = to("flaky")
        .filters(asking(http(Some(100))))
        .mirror("copies", 1, 1)
        .retry(&[503], 2, Duration::from_millis(1));
    let auth = Backend::start(guard).await;
    let copies = Backend::answering("copy").await;
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let flaky = Backend::start(
        move |request| match asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec(),
            _ => ok(&String::from_utf8_lossy(&request.body)),
        },
    )
    .await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), rule)
        .cluster("auth", &[auth.address])
        .cluster("copies", &[copies.address])
        .cluster("flaky", &[flaky.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer word\r\nContent-Length: 4\r\n\r\nbody")
        .await;
    assert_eq!(client.response_to("POST").await.text(), "body");
    assert_eq!((flaky.count(), auth.count()), (2, 1));
    crate::support::until("the copy arrives", || copies.count() == 1).await;
    assert_eq!(
        (copies.only().body.as_slice(), copies.only().header("x-user")),
        (&b"body"[..], Some("ann"))
    );
}

/// A field of a protobuf message that is text or another message.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    assert!(bytes.len() < 128);
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

fn option(name: &str, value: &str) -> Vec<u8> {
    field(1, [field(1, name), field(2, value)].concat())
}

fn answer(message: &[u8]) -> Http2Answer {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = [&[0][..], &length, message].concat();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let head = Response::builder()
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    (head, body, Some(trailers))
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}

fn check(request: &Http2Recorded) -> Http2Answer {
    if contains(&request.body, "Bearer word") {
        let granted = [
            field(2, option("x-user", "ann")),
            field(5, "x-gone"),
            field(6, option("x-seen", "1")),
        ]
        .concat();
        return answer(&[field(1, []), field(3, granted)].concat());
    }
    // PERMISSION_DENIED, with 401 for the client.
    let denied = [
        field(1, [0x08, 0x91, 0x03]),
        field(2, option("x-why", "no word")),
        field(3, "go away"),
    ]
    .concat();
    answer(&[field(1, [0x08, 0x07]), field(2, denied)].concat())
}

#[tokio::test]
async fn envoy_s_protocol_is_spoken() {
    let auth = Http2Backend::answering(check).await;
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body))).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").filters(asking(grpc(Some(20)))))
        // What the Service says it speaks does not matter: the filter says gRPC.
        .cluster("auth", &[auth.address])
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST /p?q=1 HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer word\r\nX-Gone: 1\r\nContent-Length: 4\r\n\r\nbody")
        .await;
    let response = client.response_to("POST").await;
    assert_eq!(
        (response.status, response.text(), response.header("x-seen")),
        (200, "body", Some("1"))
    );
    let seen = backend.only();
    assert_eq!((seen.header("x-user"), seen.header("x-gone")), (Some("ann"), None));
    let asked = auth.requests.lock()[0].clone();
    assert_eq!(asked.head.uri.path(), "/envoy.service.auth.v3.Authorization/Check");
    assert_eq!(asked.head.headers["content-type"], "application/grpc");
    for part in ["POST", "/p?q=1", "a.test", "127.0.0.1", "body", "x-gone"] {
        assert!(contains(&asked.body, part), "{part}");
    }
    let response = client.get("a.test", "/").await;
    assert_eq!((response.status, response.text()), (401, "go away"));
    assert_eq!(response.header("x-why"), Some("no word"));
    assert_eq!(backend.count(), 1);
    let mut client = Http2::connect(here(port)).await;
    assert_eq!(soon("a refusal", client.get("http://a.test/")).await.status, 401);
}

#[tokio::test]
async fn an_authoriser_over_h2c_is_asked_in_http2() {
    let auth = Http2Backend::answering(|request| {
        let is_known = request.head.headers.contains_key("authorization");
        let head = Response::builder().status(if is_known { 200 } else { 302 });
        let head = head.header("x-user", "bob").header("location", "https://login.test/");
        (head.body(()).unwrap(), Vec::new(), None)
    })
    .await;
    let backend = Backend::answering("passed").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/"), to("backend").filters(asking(http(None))))
        .h2_cluster("auth", auth.address)
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    let response = client.get("a.test", "/x").await;
    assert_eq!(
        (response.status, response.header("location")),
        (302, Some("https://login.test/"))
    );
    client
        .send("GET /x HTTP/1.1\r\nHost: a.test\r\nAuthorization: any\r\n\r\n")
        .await;
    assert_eq!(client.response().await.text(), "passed");
    assert_eq!(backend.only().header("x-user"), Some("bob"));
    assert_eq!(auth.requests.lock()[1].head.uri.to_string(), "http://a.test/check/x");
}
