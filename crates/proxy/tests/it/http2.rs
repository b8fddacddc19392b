//! HTTP/2 on either side of the proxy, and the traps on the way from HTTP/2 to HTTP/1.1.

use bytes::Bytes;
use http::{HeaderMap, Request};

use crate::support::{
    Backend, Client, Plan, Running,
    backend::{Manual, ok},
    http2::{END_HEADERS, END_STREAM, Http2, Http2Backend, Outcome, RawHttp2, fields, frame, whole},
    running::{free_port, here},
    soon, until,
};

async fn rig() -> (Running, Backend, u16) {
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body))).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    (Running::serving(plan).await, backend, port)
}

#[tokio::test]
async fn prior_knowledge_on_a_clear_text_port_is_understood() {
    let (_running, backend, port) = rig().await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::post("http://a.test/p?q=1")
        .header("x-a", "1")
        .body(&b"hello"[..])
        .unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!((response.status, response.body.as_slice()), (200, &b"hello"[..]));
    let seen = backend.only();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/p?q=1"));
    assert_eq!((seen.header("host"), seen.header("x-a")), (Some("a.test"), Some("1")));
    assert_eq!(seen.body, b"hello");
    // HTTP/1.1 on the same port goes on.
    assert_eq!(Client::connect(here(port)).await.get("a.test", "/").await.status, 200);
}

#[tokio::test]
async fn a_preface_in_pieces_is_still_a_preface() {
    let (_running, _backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    client.send(frame(4, 0, 0, &[])).await;
    let head = soon("a settings frame", client.reader.take(9)).await.unwrap();
    assert_eq!(head[3], 4, "{head:?}");
}

#[tokio::test]
async fn many_streams_share_a_connection() {
    let (_running, backend, port) = rig().await;
    let client = Http2::connect(here(port)).await;
    let mut streams = tokio::task::JoinSet::new();
    for number in 0..100_u32 {
        let send = client.send.clone();
        streams.spawn(async move {
            let mut send = send.ready().await?;
            let request = Request::post(format!("http://a.test/{number}")).body(()).unwrap();
            let (response, mut body) = send.send_request(request, false)?;
            body.send_data(Bytes::from(number.to_string()), true)?;
            let response = whole(response.await?).await?;
            assert_eq!(response.body, number.to_string().as_bytes());
            Ok::<_, h2::Error>(())
        });
    }
    while let Some(stream) = soon("a stream", streams.join_next()).await {
        stream.unwrap().unwrap();
    }
    assert_eq!(backend.count(), 100);
    backend.saw_no_garbage();
}

#[tokio::test]
async fn several_cookies_become_one_header() {
    let (_running, backend, port) = rig().await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::get("http://a.test/")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body(&b""[..])
        .unwrap();
    client.request(request).await.unwrap();
    assert_eq!(backend.only().header("cookie"), Some("a=1; b=2"));
}

#[tokio::test]
async fn streams_flow_piece_by_piece_with_their_trailers() {
    let mut backend: Manual = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::post("http://a.test/")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut body) = client.send.send_request(request, false).unwrap();
    let mut served = backend.accept().await;
    let head = served.head().await;
    assert_eq!(head.one("transfer-encoding"), Some("chunked"));
    for piece in ["one", "two"] {
        body.send_data(Bytes::from(piece), false).unwrap();
        assert_eq!(
            soon("a piece", served.reader.chunk()).await.unwrap().unwrap(),
            piece.as_bytes()
        );
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1".parse().unwrap());
    body.send_trailers(trailers).unwrap();
    assert_eq!(soon("the end", served.reader.chunk()).await.unwrap(), None);
    assert_eq!(
        soon("trailers", served.reader.trailers()).await.unwrap(),
        [("x-sum".to_owned(), "1".to_owned())]
    );
    served
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        .await;
    let (parts, mut stream) = soon("a response", response).await.unwrap().into_parts();
    assert_eq!(
        (parts.status.as_u16(), parts.headers.get("transfer-encoding")),
        (200, None)
    );
    assert_eq!(soon("a piece", stream.data()).await.unwrap().unwrap(), "one");
    served.send("3\r\ntwo\r\n0\r\nX-Sum: 2\r\n\r\n").await;
    assert_eq!(soon("a piece", stream.data()).await.unwrap().unwrap(), "two");
    assert!(soon("the end", stream.data()).await.is_none());
    assert_eq!(
        soon("trailers", stream.trailers()).await.unwrap().unwrap()["x-sum"],
        "2"
    );
}

#[tokio::test]
async fn a_stream_that_is_reset_takes_its_request_to_the_backend_with_it() {
    let mut backend: Manual = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::post("http://a.test/").body(()).unwrap();
    let (response, mut body) = client.send.send_request(request, false).unwrap();
    body.send_data(Bytes::from("half"), false).unwrap();
    let mut served = backend.accept().await;
    served.head().await;
    body.send_reset(h2::Reason::CANCEL);
    drop(response);
    served.ended().await;
    // The connection itself lives on.
    let answer = async {
        let mut served = backend.accept().await;
        served.request().await;
        served.send(ok("alive")).await;
    };
    let (response, ()) = tokio::join!(client.get("http://a.test/"), answer);
    assert_eq!(response.body, b"alive");
}

#[tokio::test]
async fn a_backend_that_breaks_off_resets_the_stream() {
    let mut backend: Manual = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = Request::get("http://a.test/").body(()).unwrap();
    let (response, _) = client.send.send_request(request, true).unwrap();
    let mut served = backend.accept().await;
    served.request().await;
    served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await;
    let response = soon("a response", response).await.unwrap();
    drop(served);
    assert!(soon("the end", whole(response)).await.is_err());
}

#[tokio::test]
async fn backends_that_speak_http2_are_reached_from_either_version() {
    let backend = Http2Backend::start().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .h2_cluster("backend", backend.address);
    let _running = Running::serving(plan).await;

    let mut client = Client::connect(here(port)).await;
    client
        .send("POST /one HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
        .await;
    let response = client.response().await;
    assert_eq!(
        (response.status, response.text(), response.header("x-backend")),
        (200, "hello", Some("h2"))
    );
    assert_eq!(response.trailers, [("x-sum".to_owned(), "1".to_owned())]);

    let mut client = Http2::connect(here(port)).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "2".parse().unwrap());
    let request = Request::post("http://a.test/two")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut body) = client.send.send_request(request, false).unwrap();
    body.send_data(Bytes::from("hello"), false).unwrap();
    body.send_trailers(trailers.clone()).unwrap();
    let response = soon("a response", async { whole(response.await.unwrap()).await.unwrap() }).await;
    assert_eq!(
        (response.status, response.body.as_slice(), response.trailers),
        (200, &b"hello"[..], Some(trailers))
    );
    assert_eq!(response.headers["x-backend"], "h2");

    let seen = backend.requests.lock().clone();
    for (request, path) in seen.iter().zip(["/one", "/two"]) {
        assert_eq!(request.head.uri.path(), path);
        assert_eq!(request.head.uri.authority().unwrap(), "a.test");
        assert_eq!(request.head.headers["x-forwarded-for"], "127.0.0.1");
        assert_eq!(
            (request.body.as_slice(), request.trailers.is_some()),
            (&b"hello"[..], true)
        );
        assert_eq!(request.head.headers.get("transfer-encoding"), None);
    }
    assert_eq!(seen.len(), 2);
}

#[tokio::test]
async fn unmatched_requests_over_http2_get_the_same_answers() {
    let port = free_port();
    let running = Running::serving(Plan::new().http("web", port)).await;
    let mut client = Http2::connect(here(port)).await;
    let response = client.get("http://a.test/").await;
    assert_eq!(response.status, 404);
    assert!(response.body.ends_with(b"\n"));
    until("the answer is counted", || {
        let metrics = running.proxy.metrics();
        metrics
            .answers
            .iter()
            .any(|answer| answer.reason == "no_route" && answer.count == 1)
    })
    .await;
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "a.test"),
    (":path", "/"),
];

/// The fields of a good request with one replaced.
fn with(name: &'static str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    GET.map(|field| if field.0 == name { (name, value) } else { field })
        .to_vec()
}

/// The fields of a good request and more.
fn and<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&GET[..], more].concat()
}

/// The fields of a good request without one.
fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    GET.into_iter().filter(|field| field.0 != name).collect()
}

#[tokio::test]
async fn what_would_mean_something_else_in_http_1_is_refused() {
    let (running, backend, port) = rig().await;
    let cases = [
        and(&[("x-a", "1\r\nx-b: 2")]),
        and(&[("x-a", "1\nx-b: 2")]),
        and(&[("x-a", "1\r")]),
        and(&[("x-a", "1\u{0}2")]),
        and(&[("x-a\r\nx-b", "1")]),
        and(&[("x a", "1")]),
        and(&[("x-a:", "1")]),
        and(&[("X-Upper", "1")]),
        and(&[("", "1")]),
        and(&[("x_a", "1")]),
        and(&[("transfer-encoding", "chunked")]),
        and(&[("connection", "close")]),
        and(&[("keep-alive", "1")]),
        and(&[("proxy-connection", "x")]),
        and(&[("upgrade", "websocket")]),
        and(&[("te", "gzip")]),
        and(&[("host", "b.test")]),
        and(&[("host", "a.test"), ("host", "b.test")]),
        and(&[("content-length", "1")]),
        and(&[("content-length", "0"), ("content-length", "1")]),
        and(&[("content-length", "+0")]),
        and(&[(":authority", "b.test")]),
        and(&[(":path", "/b")]),
        and(&[(":method", "POST")]),
        and(&[(":unknown", "1")]),
        with(":path", "/a b"),
        with(":path", "/a HTTP/1.1\r\nHost: b.test\r\n\r\nGET /"),
        with(":path", "/a\tb"),
        with(":path", "/a\u{0}"),
        with(":path", ""),
        with(":path", "a"),
        with(":path", "*"),
        with(":path", "/a%2fb"),
        with(":authority", ""),
        with(":authority", "a@b"),
        with(":authority", "a b"),
        with(":authority", "a,b"),
        with(":method", "GE T"),
        with(":method", "GET / HTTP/1.1\r\n"),
        with(":method", ""),
        with(":method", "CONNECT"),
        without(":method"),
        without(":path"),
        without(":scheme"),
        without(":authority"),
    ];
    for case in cases {
        let mut client = RawHttp2::connect(here(port)).await;
        client.request(1, &case).await;
        let outcome = client.outcome(1).await;
        let is_passed = !outcome.is_refused() && backend.count() > 0;
        assert!(!is_passed, "{case:?}: {outcome:?} {:?}", backend.requests());
    }
    // Nothing of all this may have left half a request on a connection to the backend.
    let mut client = RawHttp2::connect(here(port)).await;
    client.request(1, &GET).await;
    assert!(!client.outcome(1).await.is_refused());
    drop(client);
    running.stop().await;
    backend.quiet().await;
    assert_eq!(backend.count(), 1, "{:#?}", backend.requests());
    backend.saw_no_garbage();
}

#[tokio::test]
async fn a_fragment_in_a_path_reaches_no_backend() {
    // The library cuts it off before anybody could refuse it; what is routed and forwarded is the rest.
    let (_running, backend, port) = rig().await;
    let mut client = RawHttp2::connect(here(port)).await;
    client.request(1, &with(":path", "/a#b")).await;
    if !client.outcome(1).await.is_refused() {
        assert_eq!(backend.only().target, "/a");
    }
}

#[tokio::test]
async fn a_host_header_stands_in_for_a_missing_authority() {
    let (_running, backend, port) = rig().await;
    let mut client = RawHttp2::connect(here(port)).await;
    client
        .request(1, &[&without(":authority")[..], &[("host", "b.test")]].concat())
        .await;
    assert!(!client.outcome(1).await.is_refused());
    assert_eq!(backend.only().header("host"), Some("b.test"));
}

#[tokio::test]
async fn a_body_that_is_not_as_long_as_declared_is_never_complete_at_the_backend() {
    for (declared, body) in [("5", "1234"), ("5", "123456"), ("0", "1")] {
        let (running, backend, port) = rig().await;
        let mut client = RawHttp2::connect(here(port)).await;
        let head = [&with(":method", "POST")[..], &[("content-length", declared)]].concat();
        client.send(&frame(1, END_HEADERS, 1, &fields(&head))).await;
        _ = client.try_send(&frame(0, END_STREAM, 1, body.as_bytes())).await;
        let outcome = client.outcome(1).await;
        assert!(outcome.is_refused(), "{declared} {body}: {outcome:?}");
        drop(client);
        running.stop().await;
        backend.quiet().await;
        assert_eq!(backend.count(), 0, "{declared} {body}: {:?}", backend.requests());
    }
}

#[tokio::test]
async fn a_header_block_that_swells_on_reading_is_refused() {
    let (_running, backend, port) = rig().await;
    let mut client = RawHttp2::connect(here(port)).await;
    // One large field put into the table, then named a thousand times with a byte each.
    let mut block = fields(&GET);
    block.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    block.extend([b'a'; 4000]);
    block.extend([0xbe; 1000]);
    client.send(&frame(1, END_STREAM | END_HEADERS, 1, &block)).await;
    let outcome = client.outcome(1).await;
    // 431 has no short form in the table, so the block begins with a literal.
    let is_431 = matches!(&outcome, Outcome::Headers(block) if !block.starts_with(&[0x88]));
    assert!(is_431 || outcome.is_refused(), "{outcome:?}");
    assert_eq!(backend.count(), 0);
}

#[tokio::test]
async fn streams_and_hasty_resets_of_a_connection_have_the_limits_that_are_set() {
    let mut backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address])
        .settings(|settings| {
            settings.max_streams = 2;
            settings.max_hasty_resets = 3;
        });
    let _running = Running::serving(plan).await;
    let mut client = Http2::connect(here(port)).await;
    let request = || Request::get("http://a.test/").body(()).unwrap();
    let (response, _) = client.send.send_request(request(), true).unwrap();
    let mut served = backend.accept().await;
    served.request().await;
    assert_eq!(client.send.current_max_send_streams(), 2);
    drop(response);

    // Cancelled as soon as the backend has them.
    let ended = async {
        loop {
            let asked = client.send.clone().ready().await;
            let asked = asked.and_then(|mut ready| ready.send_request(request(), true));
            tokio::select! {
                ended = &mut client.connection => break ended.unwrap(),
                mut served = backend.accept() => { served.request().await; }
            }
            drop(asked);
        }
    };
    let error = soon("the end of the connection", ended).await.unwrap_err();
    assert_eq!(error.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM), "{error}");
}

#[tokio::test]
async fn floods_of_frames_end_their_connection_and_nobody_elses() {
    let (_running, _backend, port) = rig().await;
    let mut good = Http2::connect(here(port)).await;
    assert_eq!(good.get("http://a.test/").await.status, 200);

    // Streams opened and reset at once.
    let mut resets = RawHttp2::connect(here(port)).await;
    for stream in (1..20_000).step_by(2) {
        let open = frame(1, END_STREAM | END_HEADERS, stream, &fields(&GET));
        if !resets
            .try_send(&[open, frame(3, 0, stream, &8_u32.to_be_bytes())].concat())
            .await
        {
            break;
        }
    }
    assert_eq!(soon("the good client", good.get("http://a.test/")).await.status, 200);

    // A header block without an end.
    let mut continued = RawHttp2::connect(here(port)).await;
    continued.send(&frame(1, 0, 1, &fields(&GET))).await;
    let junk = fields(&[(
        "x-junk",
        "0123456789012345678901234567890123456789012345678901234567890123456789",
    )])
    .repeat(100);
    for _ in 0..1000 {
        if !continued.try_send(&frame(9, 0, 1, &junk)).await {
            break;
        }
    }
    assert!(matches!(
        continued.outcome(1).await,
        Outcome::GoAway(_) | Outcome::Closed | Outcome::Reset(_)
    ));
    assert_eq!(soon("the good client", good.get("http://a.test/")).await.status, 200);
}
