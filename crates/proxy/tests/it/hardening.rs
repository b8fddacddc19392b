//! Every row of the table of HTTP/1.1 probes: what is refused, what is made harmless, and what the backend sees of it.

use gatewright_ir::ListenerSettings;

use crate::support::{
    Backend, Client, Plan, Recorded, Running,
    client::{Response, status},
    exact,
    gateway::to,
    prefix,
    running::{free_port, here},
};

/// A proxy with one backend, to which everything goes.
struct Rig {
    running: Running,
    backend: Backend,
    port: u16,
}

impl Rig {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(settings: impl FnOnce(&mut ListenerSettings)) -> Self {
        let backend = Backend::answering("hello").await;
        let port = free_port();
        let plan = Plan::new()
            .http("web", port)
            .settings(settings)
            .all_to("backend")
            .cluster("backend", &[backend.address]);
        let running = Running::serving(plan).await;
        Self { running, backend, port }
    }

    async fn client(&self) -> Client {
        Client::connect(here(self.port)).await
    }

    /// Sends bytes on a connection of their own and demands a refusal with this status; the connection must then end, and
    /// the backend must not have received any request of it.
    async fn refuses(&self, bytes: impl AsRef<[u8]>, expected: &[u16]) {
        let bytes = bytes.as_ref();
        let what = String::from_utf8_lossy(bytes).into_owned();
        let before = self.backend.count();
        let mut client = self.client().await;
        // Another request behind the refused one: it must not be read.
        let more = b"GET /smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n";
        client.send([bytes, more].concat()).await;
        let response = client.response().await;
        assert!(expected.contains(&response.status), "{what:?}: {response:?}");
        assert!(response.body.ends_with(b"\n"), "{what:?}: {response:?}");
        client.closed().await;
        assert_eq!(self.backend.count(), before, "{what:?}: {:?}", self.backend.requests());
    }

    /// Sends a request and gives what the backend made of it.
    async fn passes(&self, bytes: impl AsRef<[u8]>) -> Recorded {
        let before = self.backend.count();
        let mut client = self.client().await;
        client.send(bytes.as_ref()).await;
        let response = client.response().await;
        assert_eq!(
            response.status,
            200,
            "{:?}: {response:?}",
            String::from_utf8_lossy(bytes.as_ref())
        );
        let requests = self.backend.requests();
        assert_eq!(requests.len(), before + 1);
        requests.last().unwrap().clone()
    }

    /// What the backend receives as target for a target.
    async fn target(&self, target: &str) -> String {
        self.passes(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n"))
            .await
            .target
    }
}

/// A request with these header lines besides `Host`, and what follows the head.
fn post(lines: &[&str], rest: &str) -> String {
    let lines = lines.iter().map(|line| [line, "\r\n"].concat()).collect::<String>();
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n{rest}")
}

#[tokio::test]
async fn content_length_with_transfer_encoding_is_refused() {
    let rig = Rig::new().await;
    rig.refuses(
        post(&["Content-Length: 5", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
        &[400],
    )
    .await;
    rig.refuses(
        post(&["Transfer-Encoding: chunked", "Content-Length: 5"], "0\r\n\r\n"),
        &[400],
    )
    .await;
    rig.refuses(
        post(&["transfer-encoding: chunked", "content-length: 0"], "0\r\n\r\n"),
        &[400],
    )
    .await;
}

#[tokio::test]
async fn lengths_that_can_be_read_in_two_ways_are_refused() {
    let rig = Rig::new().await;
    for lines in [
        &["Content-Length: 5", "Content-Length: 6"][..],
        &["Content-Length: 5, 5"],
        &["Content-Length: +5"],
        &["Content-Length: -5"],
        &["Content-Length: 0x5"],
        &["Content-Length: 5 5"],
        &["Content-Length: 5;"],
        &["Content-Length: "],
        &["Content-Length: 99999999999999999999"],
        &["Content-Length: 5", "Content-Length: 5"],
    ] {
        rig.refuses(post(lines, "hello"), &[400]).await;
    }
}

#[tokio::test]
async fn transfer_encodings_other_than_chunked_are_not_implemented() {
    let rig = Rig::new().await;
    for value in [
        "xchunked",
        "chunked, identity",
        "gzip, chunked",
        "identity",
        "chunked, chunked",
        "chunked;q=1",
    ] {
        let line = format!("Transfer-Encoding: {value}");
        rig.refuses(post(&[&line], "0\r\n\r\n"), &[501, 400]).await;
    }
    rig.refuses(post(&["Transfer-Encoding: xchunked"], "0\r\n\r\n"), &[501])
        .await;
    rig.refuses(post(&["Transfer-Encoding: chunked, identity"], "0\r\n\r\n"), &[501])
        .await;
    rig.refuses(
        post(
            &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
            "0\r\n\r\n",
        ),
        &[501, 400],
    )
    .await;
    rig.refuses(
        post(
            &["Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
            "0\r\n\r\n",
        ),
        &[501, 400],
    )
    .await;
    rig.refuses(post(&["Transfer-Encoding: \u{b}chunked"], "0\r\n\r\n"), &[501, 400])
        .await;
}

#[tokio::test]
async fn transfer_encoding_in_http_1_0_is_refused() {
    let rig = Rig::new().await;
    let request = "POST / HTTP/1.0\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    rig.refuses(request, &[400, 426, 501]).await;
}

#[tokio::test]
async fn malformed_chunks_are_refused_and_never_complete_at_the_backend() {
    for body in [
        "0x1\r\na\r\n0\r\n\r\n",
        "+1\r\na\r\n0\r\n\r\n",
        "0_1\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        " 1\r\na\r\n0\r\n\r\n",
        "1;a\nb\r\na\r\n0\r\n\r\n",
        "1;a\rb\r\na\r\n0\r\n\r\n",
        "1\na\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "\r\na\r\n0\r\n\r\n",
        "g\r\na\r\n0\r\n\r\n",
        "1\r\na\r\n0\n\r\n",
        "1\r\na\r\n0\r\nx\r\n\r\n",
        "10000000000000001\r\na\r\n0\r\n\r\n",
    ] {
        let rig = Rig::new().await;
        rig.refuses(post(&["Transfer-Encoding: chunked"], body), &[400]).await;
        // The head may have been forwarded before the fault was seen; then the connection to the backend must be given up.
        rig.running.stop().await;
        rig.backend.quiet().await;
        assert_eq!(rig.backend.count(), 0, "{body:?}");
    }
}

#[tokio::test]
async fn heads_that_break_the_grammar_are_refused() {
    let rig = Rig::new().await;
    for request in [
        "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-A : 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-A\t: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\u{0}2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\u{1}2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\u{7f}2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\n: 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX(A): 1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-A\r\n\r\n",
        "GET / HTTP/1.1\r\nX-A: 1\r\n\r\n",
        "GET /a#fragment HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "G\u{1}T / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET\t/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a.test\r\n\r\n",
        "GET /\u{1} HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET / http/1.1\r\nHost: a.test\r\n\r\n",
        "GET a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "GET /\r\nHost: a.test\r\n\r\n",
    ] {
        rig.refuses(request, &[400]).await;
    }
}

#[tokio::test]
async fn folded_lines_are_refused() {
    let rig = Rig::new().await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r\n 2\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r\n\t2\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\n Host: a.test\r\n\r\n", &[400]).await;
    rig.refuses(
        "GET / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        &[400],
    )
    .await;
}

#[tokio::test]
async fn line_feeds_alone_do_not_end_lines() {
    let rig = Rig::new().await;
    rig.refuses("GET / HTTP/1.1\nHost: a.test\n\n", &[400]).await;
    rig.refuses("GET / HTTP/1.1\nHost: a.test\r\n\r\n", &[400]).await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\nX-A: 1\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\n\n", &[400]).await;
}

#[tokio::test]
async fn a_carriage_return_alone_is_refused() {
    let rig = Rig::new().await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r2\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nX-A: 1\r\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\rX-A: 1\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\rHost: a.test\r\n\r\n", &[400]).await;
}

#[tokio::test]
async fn exactly_one_valid_host_is_needed() {
    let rig = Rig::new().await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n", &[400])
        .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nhost: a.test\r\n\r\n", &[400])
        .await;
    for host in [
        "", "a@b", "a,b", "a b", "a/b", "a?b", "a:b", "a:99999", "a..b", "[::1", "::1",
    ] {
        rig.refuses(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"), &[400])
            .await;
    }
}

#[tokio::test]
async fn the_host_of_an_absolute_target_is_routed_and_forwarded() {
    let (x, a) = (Backend::answering("x").await, Backend::answering("a").await);
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("x.test", prefix("/"), to("x"))
        .route("a.test", prefix("/"), to("a"))
        .cluster("x", &[x.address])
        .cluster("a", &[a.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("GET http://x.test/p?q=1 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .await;
    assert_eq!(client.response().await.text(), "x");
    let seen = x.only();
    assert_eq!((seen.target.as_str(), seen.header("host")), ("/p?q=1", Some("x.test")));
    client
        .send("GET http://user@x.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 400);
    assert_eq!((x.count(), a.count()), (1, 0));
}

#[tokio::test]
async fn versions_nobody_has_defined_are_refused() {
    let rig = Rig::new().await;
    rig.refuses("GET / HTTP/1.2\r\nHost: a.test\r\n\r\n", &[505, 426]).await;
    rig.refuses("GET / HTTP/9.9\r\nHost: a.test\r\n\r\n", &[505, 426]).await;
    // What stands behind the second blank is taken for a version.
    rig.refuses("GET /  HTTP/1.1\r\nHost: a.test\r\n\r\n", &[505, 400])
        .await;
    rig.refuses("GET /a b HTTP/1.1\r\nHost: a.test\r\n\r\n", &[505, 400])
        .await;
    rig.refuses("GET / HTTP/1.10\r\nHost: a.test\r\n\r\n", &[505, 426, 400])
        .await;
}

#[tokio::test]
async fn paths_are_normalised_before_they_are_matched() {
    let (a, b) = (Backend::answering("a").await, Backend::answering("b").await);
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", prefix("/a"), to("a"))
        .route("", prefix("/b"), to("b"))
        .cluster("a", &[a.address])
        .cluster("b", &[b.address]);
    let _running = Running::serving(plan).await;
    for target in [
        "/a/../b",
        "/a/%2e%2e/b",
        "/a/%2E./b",
        "/a/.%2e/b",
        "/a/./../b",
        "/x/../../../b",
        "/a/..//b",
    ] {
        let mut client = Client::connect(here(port)).await;
        assert_eq!(client.get("h.test", target).await.text(), "b", "{target}");
        assert_eq!(b.requests().last().unwrap().target, "/b", "{target}");
    }
    assert_eq!(a.count(), 0);
}

#[tokio::test]
async fn repeated_slashes_are_merged() {
    let rig = Rig::new().await;
    assert_eq!(rig.target("//a///b").await, "/a/b");
    assert_eq!(rig.target("/a//").await, "/a/");
    assert_eq!(rig.target("/a?x=//b").await, "/a?x=//b");
}

#[tokio::test]
async fn backslashes_never_reach_the_backend() {
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    let response = client.get("a.test", "/a\\..\\b").await;
    match response.status {
        400 => assert_eq!(rig.backend.count(), 0),
        _ => assert_eq!(rig.backend.only().target, "/b"),
    }
}

#[tokio::test]
async fn escaped_slashes_are_refused_unless_kept_by_choice() {
    let rig = Rig::new().await;
    for target in ["/a%2fb", "/a%2Fb", "/a%5cb", "/a%5Cb", "/a/..%2f"] {
        rig.refuses(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n"), &[400])
            .await;
    }
    assert_eq!(rig.target("/a?b=%2f").await, "/a?b=%2f");
    let keeping = Rig::with(|settings| settings.keep_escaped_slashes = true).await;
    assert_eq!(keeping.target("/a%2fb").await.to_ascii_lowercase(), "/a%2fb");
    assert_eq!(keeping.target("/a%5cb").await.to_ascii_lowercase(), "/a%5cb");
}

#[tokio::test]
async fn an_escaped_null_is_refused() {
    let rig = Rig::with(|settings| settings.keep_escaped_slashes = true).await;
    rig.refuses("GET /a%00b HTTP/1.1\r\nHost: a.test\r\n\r\n", &[400]).await;
    rig.refuses("GET /a%0 HTTP/1.1\r\nHost: a.test\r\n\r\n", &[400]).await;
    rig.refuses("GET /a%zz HTTP/1.1\r\nHost: a.test\r\n\r\n", &[400]).await;
}

#[tokio::test]
async fn what_only_looks_like_a_dot_segment_is_matched_literally() {
    let backend = Backend::answering("literal").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .route("", exact("/;x/"), to("backend"))
        .route("", exact("/%c0%ae%c0%ae/a"), to("backend"))
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(client.get("a.test", "/;x/").await.status, 200);
    assert_eq!(backend.requests()[0].target, "/;x/");
    assert_eq!(client.get("a.test", "/%c0%ae%c0%ae/a").await.status, 200);
    assert_eq!(backend.requests()[1].target, "/%c0%ae%c0%ae/a");
    assert_eq!(client.get("a.test", "/;x/../;x/").await.status, 200);
}

#[tokio::test]
async fn header_names_with_underscores_are_refused_unless_allowed() {
    let rig = Rig::new().await;
    rig.refuses(
        "GET / HTTP/1.1\r\nHost: a.test\r\nX_Forwarded_For: 1.1.1.1\r\n\r\n",
        &[400],
    )
    .await;
    rig.refuses("GET / HTTP/1.1\r\nHost: a.test\r\nx_a: 1\r\n\r\n", &[400])
        .await;
    let allowing = Rig::with(|settings| settings.allow_underscores = true).await;
    let seen = allowing
        .passes("GET / HTTP/1.1\r\nHost: a.test\r\nX_A: 1\r\nX_Forwarded_For: 9.9.9.9\r\nTransfer_Encoding: x\r\n\r\n")
        .await;
    assert_eq!(seen.header("x_a"), Some("1"));
    // What a CGI-like backend would take for a header of the proxy's own must not pass in any case.
    assert_eq!(
        (seen.header("x_forwarded_for"), seen.header("transfer_encoding")),
        (None, None)
    );
}

#[tokio::test]
async fn too_many_or_too_large_headers_are_refused_as_such() {
    let rig = Rig::new().await;
    let head = |lines: String| format!("GET / HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n");
    let many = |count| {
        (0..count)
            .map(|number: usize| ["X-", &number.to_string(), ": 1\r\n"].concat())
            .collect::<String>()
    };
    rig.refuses(head(many(101)), &[431]).await;
    rig.refuses(head(format!("X-Large: {}\r\n", "a".repeat(100 * 1024))), &[431])
        .await;
    assert_eq!(rig.passes(head(many(90))).await.head.all("x-89"), ["1"]);
    let large = rig
        .passes(head(format!("X-Large: {}\r\n", "a".repeat(60 * 1024))))
        .await;
    assert_eq!(large.header("x-large").unwrap().len(), 60 * 1024);
    let small = Rig::with(|settings| settings.max_header_bytes = 2048).await;
    small
        .refuses(head(format!("X-Large: {}\r\n", "a".repeat(2048))), &[431])
        .await;
    let target = format!("GET /{} HTTP/1.1\r\nHost: a.test\r\n\r\n", "a".repeat(100 * 1024));
    rig.refuses(target, &[414, 431]).await;
}

#[tokio::test]
async fn a_good_request_is_not_harmed_by_all_this() {
    let rig = Rig::new().await;
    let body = "hello";
    let seen = rig
        .passes(format!(
            "POST /a/b?c=d&e HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\nX-Empty:\r\nX-Text: \u{e9}t\u{e9}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/a/b?c=d&e"));
    assert_eq!(seen.header("host"), Some("a.test:8080"));
    assert_eq!((seen.header("x-empty"), seen.header("x-text")), (Some(""), Some("été")));
    assert_eq!(seen.body, b"hello");
}

#[tokio::test]
async fn an_empty_line_before_a_request_is_passed_over() {
    // RFC 9112 asks for it: old clients send one behind a body.
    let rig = Rig::new().await;
    let mut client = rig.client().await;
    client.send("\r\nGET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let response: Response = client.response().await;
    assert!(matches!(response.status, 200 | 400), "{response:?}");
    assert_eq!(status(&response.head), response.status);
}
