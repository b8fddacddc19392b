//! Bodies: they flow in both directions at once, piece by piece, with their trailers, and hold nobody's memory.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    Backend, Client, Plan, Running,
    backend::{Manual, Served, ok},
    client::status,
    running::{free_port, here},
    soon, until,
};

/// A proxy in front of a backend that the test plays.
async fn rig() -> (Running, Manual, u16) {
    let backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    // One worker, so that all clients share one pool.
    (Running::with_workers(1, [plan]).await, backend, port)
}

#[tokio::test]
async fn a_request_body_flows_chunk_by_chunk() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        .await;
    let mut served = backend.accept().await;
    let head = served.head().await;
    assert_eq!(head.one("transfer-encoding"), Some("chunked"));
    assert_eq!(head.one("content-length"), None);
    // The first piece is at the backend before the second is sent.
    assert_eq!(soon("a chunk", served.reader.chunk()).await.unwrap().unwrap(), b"one");
    client.send("3\r\ntwo\r\n").await;
    assert_eq!(soon("a chunk", served.reader.chunk()).await.unwrap().unwrap(), b"two");
    client.send("0\r\n\r\n").await;
    assert_eq!(soon("the end", served.reader.chunk()).await.unwrap(), None);
    assert!(soon("no trailers", served.reader.trailers()).await.unwrap().is_empty());
    served.send(ok("done")).await;
    assert_eq!(client.response().await.text(), "done");
}

#[tokio::test]
async fn a_request_body_of_known_length_flows_as_it_comes() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 6\r\n\r\none")
        .await;
    let mut served = backend.accept().await;
    let head = served.head().await;
    assert_eq!(
        (head.one("content-length"), head.one("transfer-encoding")),
        (Some("6"), None)
    );
    assert_eq!(soon("half", served.reader.take(3)).await.unwrap(), b"one");
    client.send("two").await;
    assert_eq!(soon("the rest", served.reader.take(3)).await.unwrap(), b"two");
    served.send(ok("done")).await;
    assert_eq!(client.response().await.text(), "done");
}

#[tokio::test]
async fn a_response_body_flows_chunk_by_chunk() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        .await;
    let head = client.head().await;
    assert_eq!(head.one("transfer-encoding"), Some("chunked"));
    assert_eq!(soon("a chunk", client.reader.chunk()).await.unwrap().unwrap(), b"one");
    served.send("3\r\ntwo\r\n").await;
    assert_eq!(soon("a chunk", client.reader.chunk()).await.unwrap().unwrap(), b"two");
    served.send("0\r\n\r\n").await;
    assert_eq!(soon("the end", client.reader.chunk()).await.unwrap(), None);
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n")
        .await;
    let mut served = backend.accept().await;
    let request = served.request().await;
    assert_eq!((request.body.as_slice(), request.trailers.len()), (&b"a"[..], 1));
    assert!(request.trailers[0].0.eq_ignore_ascii_case("x-sum") && request.trailers[0].1 == "1");
    served
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nX-Sum: 2\r\n\r\n")
        .await;
    let response = client.response().await;
    assert_eq!((response.body.as_slice(), response.trailers.len()), (&b"b"[..], 1));
    assert!(response.trailers[0].0.eq_ignore_ascii_case("x-sum") && response.trailers[0].1 == "2");
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue_gets_it_before_it_sends_the_body() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        .await;
    let serve = async {
        let mut served = backend.accept().await;
        let head = served.head().await;
        // Whoever of the two says it, proxy or backend: the client must hear it.
        if head.one("expect").is_some() {
            served.send("HTTP/1.1 100 Continue\r\n\r\n").await;
        }
        let body = soon("the body", served.reader.take(5)).await.unwrap();
        served.send(ok("done")).await;
        body
    };
    let ask = async {
        assert_eq!(status(&client.head().await), 100);
        client.send("hello").await;
        client.response().await
    };
    let (body, response) = tokio::join!(serve, ask);
    assert_eq!((body.as_slice(), response.text()), (&b"hello"[..], "done"));
}

#[tokio::test]
async fn a_client_whose_expectation_is_refused_keeps_its_body() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST /missing HTTP/1.1\r\nHost: a.test\r\nExpect: nonsense\r\nContent-Length: 5\r\n\r\n")
        .await;
    assert_eq!(client.response().await.status, 417);
    assert!(!backend.has_connection());
}

#[tokio::test]
async fn a_response_before_the_end_of_the_request_reaches_the_client_at_once() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\nonly a little")
        .await;
    let mut served = backend.accept().await;
    served.head().await;
    served
        .send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nstop")
        .await;
    let response = client.response().await;
    assert_eq!((response.status, response.text()), (413, "stop"));
    // The rest of the body will never be wanted, so neither connection can serve another request.
    _ = client.try_send(vec![b'x'; 100_000]).await;
    client.rest().await;
    served.ended().await;
}

#[tokio::test]
async fn a_whole_dialogue_can_run_inside_one_request() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    let mut served = backend.accept().await;
    served.head().await;
    served
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    client.head().await;
    for turn in 0..5 {
        client.send(format!("1\r\n{turn}\r\n")).await;
        let heard = soon("the question", served.reader.chunk()).await.unwrap().unwrap();
        assert_eq!(heard, turn.to_string().as_bytes());
        served.send(format!("1\r\n{turn}\r\n")).await;
        assert_eq!(soon("the answer", client.reader.chunk()).await.unwrap().unwrap(), heard);
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(soon("the end", served.reader.chunk()).await.unwrap(), None);
    served.send("0\r\n\r\n").await;
    assert_eq!(soon("the end", client.reader.chunk()).await.unwrap(), None);
}

#[tokio::test]
async fn responses_without_a_body_do_not_end_the_connection() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("HEAD / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    assert_eq!(served.request().await.method, "HEAD");
    served.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
    let response = client.response_to("HEAD").await;
    assert_eq!(
        (response.status, response.header("content-length")),
        (200, Some("1000"))
    );
    for status in [204, 304] {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
        served.request().await;
        served.send(format!("HTTP/1.1 {status} X\r\nETag: \"x\"\r\n\r\n")).await;
        let response = client.response().await;
        assert_eq!((response.status, response.header("etag")), (status, Some("\"x\"")));
    }
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    served.request().await;
    served.send(ok("last")).await;
    assert_eq!(client.response().await.text(), "last");
}

#[tokio::test]
async fn http_1_0_clients_get_answers_they_understand() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    let request = served.request().await;
    assert_eq!(request.head.parts()[2], "HTTP/1.1");
    served
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")
        .await;
    let response = client.response().await;
    // No chunks, which it does not know: the body ends with the connection.
    assert_eq!(
        (response.header("transfer-encoding"), response.text()),
        (None, "onetwo")
    );
    client.closed().await;

    let mut client = Client::connect(here(port)).await;
    client
        .send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n")
        .await;
    served.request().await;
    served.send(ok("one")).await;
    let response = client.response().await;
    assert_eq!(response.text(), "one");
    assert!(
        response
            .header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("keep-alive"))
    );
    client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    served.request().await;
    served.send(ok("two")).await;
    assert_eq!(client.response().await.text(), "two");
    client.closed().await;
}

#[tokio::test]
async fn a_backend_that_speaks_http_1_0_is_understood() {
    let backend = Backend::start(|_| b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end".to_vec()).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    for _ in 0..2 {
        assert_eq!(client.get("a.test", "/").await.text(), "until the end");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let backend = Backend::start(|request| ok(&format!("{} {}", request.target, request.body.len()))).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    let requests = (0..50).map(|number| {
        let body = "x".repeat(number);
        let (framing, body) = if number % 2 == 0 {
            (format!("Content-Length: {number}"), body)
        } else {
            (
                "Transfer-Encoding: chunked".to_owned(),
                format!("{number:x}\r\n{body}\r\n0\r\n\r\n"),
            )
        };
        format!("POST /{number} HTTP/1.1\r\nHost: a.test\r\n{framing}\r\n\r\n{body}")
    });
    let bytes = requests.collect::<Vec<_>>().concat();
    client.send(bytes).await;
    for number in 0..50 {
        assert_eq!(client.response().await.text(), format!("/{number} {number}"));
    }
    assert_eq!(backend.count(), 50);
    backend.saw_no_garbage();
}

#[tokio::test]
async fn every_split_of_a_request_into_packets_means_the_same() {
    let backend = Backend::start(|request| ok(&String::from_utf8_lossy(&request.body))).await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let _running = Running::serving(plan).await;
    let request = b"POST /a HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-T: 1\r\n\r\n";
    let mut client = Client::connect(here(port)).await;
    for cut in 1..request.len() {
        client.send(&request[..cut]).await;
        tokio::task::yield_now().await;
        client.send(&request[cut..]).await;
        assert_eq!(client.response().await.text(), "abcde", "cut at {cut}");
    }
    for byte in request {
        client.send([*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.response().await.text(), "abcde");
    backend.saw_no_garbage();
}

#[tokio::test]
async fn a_response_that_breaks_off_is_not_made_whole() {
    for head in ["Content-Length: 11", "Transfer-Encoding: chunked"] {
        let (_running, mut backend, port) = rig().await;
        let mut client = Client::connect(here(port)).await;
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
        let mut served = backend.accept().await;
        served.request().await;
        served
            .send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhello\r\n"))
            .await;
        assert_eq!(status(&client.head().await), 200);
        drop(served);
        let rest = client.rest().await;
        assert!(
            !rest.ends_with(b"0\r\n\r\n"),
            "{head}: {:?}",
            String::from_utf8_lossy(&rest)
        );
    }
}

#[tokio::test]
async fn a_client_that_goes_away_takes_the_request_to_the_backend_with_it() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhalf")
        .await;
    let mut served = backend.accept().await;
    served.head().await;
    drop(client);
    served.ended().await;
}

/// Bytes of a body that is never held as a whole.
const LARGE: u64 = 64 << 20;

/// Reads so many bytes and counts them; the count is how far the reader has come.
async fn drain(stream: &mut (impl AsyncReadExt + Unpin), already: u64, count: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut got = already;
    while got < LARGE {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        got += read as u64;
        count.store(got, Ordering::SeqCst);
    }
    Ok(())
}

async fn fill(stream: &mut (impl AsyncWriteExt + Unpin), count: &AtomicU64) -> io::Result<()> {
    let piece = vec![b'x'; 64 * 1024];
    while count.load(Ordering::SeqCst) < LARGE {
        stream.write_all(&piece).await?;
        count.fetch_add(piece.len() as u64, Ordering::SeqCst);
    }
    stream.flush().await
}

/// How much may be on the way while the receiver does not read: socket buffers and a few buffers of the proxy.
const ON_THE_WAY: u64 = 24 << 20;

#[tokio::test]
async fn a_large_request_body_waits_for_a_slow_backend() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client
        .send(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {LARGE}\r\n\r\n"
        ))
        .await;
    let mut served: Served = backend.accept().await;
    served.head().await;
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let sending = tokio::spawn(async move {
        fill(&mut client.reader.stream, &count).await.unwrap();
        client.response().await
    });
    stands_still(&sent).await;
    assert!(
        sent.load(Ordering::SeqCst) < ON_THE_WAY,
        "{}",
        sent.load(Ordering::SeqCst)
    );
    let already = served.reader.buffer.len() as u64;
    soon(
        "the body",
        drain(&mut served.reader.stream, already, &AtomicU64::new(0)),
    )
    .await
    .unwrap();
    served.send(ok("done")).await;
    assert_eq!(soon("the response", sending).await.unwrap().text(), "done");
}

#[tokio::test]
async fn a_large_response_body_waits_for_a_slow_client() {
    let (_running, mut backend, port) = rig().await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    served
        .send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n"))
        .await;
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let sending = tokio::spawn(async move { fill(&mut served.reader.stream, &count).await });
    client.head().await;
    stands_still(&sent).await;
    assert!(
        sent.load(Ordering::SeqCst) < ON_THE_WAY,
        "{}",
        sent.load(Ordering::SeqCst)
    );
    let already = client.reader.buffer.len() as u64;
    soon(
        "the body",
        drain(&mut client.reader.stream, already, &AtomicU64::new(0)),
    )
    .await
    .unwrap();
    soon("the backend", sending).await.unwrap().unwrap();
}

/// Waits until a number has not changed for a while, because the pipe is full.
async fn stands_still(number: &AtomicU64) {
    let mut last = (0, std::time::Instant::now());
    until("the pipe is full", || {
        let now = number.load(Ordering::SeqCst);
        if now != last.0 {
            last = (now, std::time::Instant::now());
        }
        now > 0 && last.1.elapsed() > std::time::Duration::from_millis(200)
    })
    .await;
}
