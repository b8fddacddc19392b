//! Changes and endings under load: what is under way is finished, and nothing is lost.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use tokio::{net::TcpStream, task::JoinHandle};

use crate::support::{
    Backend, Client, Plan, Running,
    backend::{Recorded, ok},
    client::status,
    http2::{Http2, whole},
    message::{Framing, declared},
    running::{free_port, here},
    soon, until,
};

#[tokio::test]
async fn a_hundred_changes_cut_no_websocket_and_no_stream() {
    let mut talks = Backend::manual().await;
    let hello = Backend::answering("hello").await;
    let port = free_port();
    let plan = |change: usize| {
        let plan = Plan::new()
            .http("web", port)
            .all_to("talks")
            .cluster("talks", &[talks.address])
            .cluster("plain", &[hello.address]);
        // Every change touches the table that the open connections came through.
        let path = format!("/changed/{change}");
        plan.route("", crate::support::exact(&path), crate::support::to("plain"))
    };
    let plans: Vec<_> = (0..=100).map(plan).collect();
    let mut plans = plans.into_iter();
    let running = Running::serving(plans.next().unwrap()).await;

    let (mut socket, mut socket_served) = crate::upgrade::upgraded(&mut talks, port).await;
    let mut download = Client::connect(here(port)).await;
    download.send("GET /download HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut download_served = talks.accept().await;
    download_served.request().await;
    download_served
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    download.head().await;
    let mut http2 = Http2::connect(here(port)).await;
    let request = Request::post("http://a.test/upload").body(()).unwrap();
    let (response, mut upload) = http2.send.send_request(request, false).unwrap();
    let mut upload_served = talks.accept().await;
    upload_served.head().await;

    for (change, plan) in plans.enumerate() {
        running.apply([plan]).await;
        crate::upgrade::talk(&mut socket, &mut socket_served, "still here").await;
        download_served.send("1\r\nx\r\n").await;
        assert_eq!(soon("a chunk", download.reader.chunk()).await.unwrap().unwrap(), b"x");
        upload.send_data(Bytes::from_static(b"y"), false).unwrap();
        assert_eq!(
            soon("a chunk", upload_served.reader.chunk()).await.unwrap().unwrap(),
            b"y"
        );
        // And the change is there.
        let path = format!("/changed/{}", change + 1);
        assert_eq!(
            Client::connect(here(port)).await.get("a.test", &path).await.text(),
            "hello"
        );
    }
    download_served.send("0\r\n\r\n").await;
    assert_eq!(soon("the end", download.reader.chunk()).await.unwrap(), None);
    upload.send_data(Bytes::new(), true).unwrap();
    assert_eq!(soon("the end", upload_served.reader.chunk()).await.unwrap(), None);
    soon("no trailers", upload_served.reader.trailers()).await.unwrap();
    upload_served.send(ok("done")).await;
    let response = soon("the response", async { whole(response.await.unwrap()).await.unwrap() }).await;
    assert_eq!(response.body, b"done");
}

/// What became of a request on a connection that might be ending.
enum Fate {
    Answered {
        closes: bool,
    },
    /// The connection ended before a byte of an answer came.
    NotRead,
    Broken(String),
}

async fn ask(client: &mut Client) -> Fate {
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    if client.try_send(request).await.is_err() {
        return Fate::NotRead;
    }
    let head = match soon("an answer", client.reader.head()).await {
        Ok(Some(head)) => head,
        Ok(None) => return Fate::NotRead,
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset && client.reader.buffer.is_empty() => {
            return Fate::NotRead;
        }
        Err(error) => return Fate::Broken(error.to_string()),
    };
    if status(&head) != 200 {
        return Fate::Broken(format!("{head:?}"));
    }
    let framing = declared(&head).unwrap().unwrap_or(Framing::Close);
    match soon("a body", client.reader.body(framing)).await {
        Ok((body, _)) if body == b"hello" => Fate::Answered {
            closes: head
                .one("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close")),
        },
        other => Fate::Broken(format!("{other:?}")),
    }
}

/// What the clients of a loaded proxy share.
#[derive(Debug, Default)]
struct Load {
    is_over: AtomicBool,
    answered: AtomicUsize,
    /// New connections that ended without a byte after the end had begun.
    dropped: AtomicUsize,
}

impl Load {
    /// Starts so many clients; half of them make a new connection for every request.
    fn start(clients: usize, port: u16) -> (Arc<Self>, Vec<JoinHandle<Result<(), String>>>) {
        let load = Arc::new(Self::default());
        let client = |number| tokio::spawn(Arc::clone(&load).ask_on(port, number % 2 == 0));
        let clients = (0..clients).map(client).collect();
        (load, clients)
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    /// Ends the proxy and then the clients, and demands that no request was lost.
    async fn end(&self, running: Running, clients: Vec<JoinHandle<Result<(), String>>>) {
        self.is_over.store(true, Ordering::SeqCst);
        running.stop().await;
        for client in clients {
            soon("a client", client).await.unwrap().unwrap();
        }
        // The kernel may finish a handshake between a worker's last look at its socket and the close; with two workers
        // that can happen twice.
        assert!(self.dropped.load(Ordering::SeqCst) <= 2, "{self:?}");
    }

    /// Asks and asks until nothing listens any more.
    async fn ask_on(self: Arc<Self>, port: u16, keeps: bool) -> Result<(), String> {
        loop {
            let Ok(stream) = TcpStream::connect(here(port)).await else {
                let is_over = self.is_over.load(Ordering::SeqCst);
                return is_over.then_some(()).ok_or_else(|| "refused too early".to_owned());
            };
            let mut client = Client::on(stream);
            let mut is_fresh = true;
            loop {
                match ask(&mut client).await {
                    Fate::Answered { closes } => {
                        self.answered.fetch_add(1, Ordering::SeqCst);
                        if closes || !keeps {
                            break;
                        }
                    }
                    // An idle connection may end at any moment; every client knows to try again on a new one.
                    Fate::NotRead if !is_fresh => break,
                    Fate::NotRead if self.is_over.load(Ordering::SeqCst) => {
                        self.dropped.fetch_add(1, Ordering::SeqCst);
                        break;
                    }
                    Fate::NotRead => return Err("a new connection was dropped".to_owned()),
                    Fate::Broken(what) => return Err(what),
                }
                is_fresh = false;
            }
        }
    }
}

#[tokio::test]
async fn a_shutdown_under_load_costs_no_request() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let (load, clients) = Load::start(8, port);
    until("some load", || load.answered() >= 200).await;
    load.end(running, clients).await;
    assert!(backend.count() >= load.answered(), "{load:?} {}", backend.count());
}

#[tokio::test]
async fn who_leaves_serves_on_and_asks_every_client_to_go_elsewhere() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut idle = Client::connect(here(port)).await;
    let before = idle.get("a.test", "/").await;
    assert_eq!(before.header("connection"), None);
    let mut http2 = Http2::connect(here(port)).await;
    let request = Request::get("http://a.test/").body(()).unwrap();
    let (response, _) = http2.send.send_request(request, true).unwrap();
    whole(response.await.unwrap()).await.unwrap();

    running.proxy.leave();
    // Told to go and not cut off: GOAWAY without an error.
    soon("the connection ends", &mut http2.connection)
        .await
        .unwrap()
        .unwrap();
    let mut fresh = Client::connect(here(port)).await;
    for client in [&mut idle, &mut fresh] {
        let response = client.get("a.test", "/").await;
        assert_eq!(
            (response.text(), response.header("connection")),
            ("hello", Some("close"))
        );
        client.closed().await;
    }
}

#[tokio::test]
async fn a_shutdown_waits_for_what_is_under_way_and_then_ends_it() {
    let mut backend = Backend::manual().await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    let mut served = backend.accept().await;
    served.request().await;
    let mut http2 = Http2::connect(here(port)).await;
    let request = Request::get("http://a.test/").body(()).unwrap();
    let (response, _) = http2.send.send_request(request, true).unwrap();
    let mut served_http2 = backend.accept().await;
    served_http2.request().await;
    let (mut socket, mut socket_served) = crate::upgrade::upgraded(&mut backend, port).await;

    let stopping = tokio::spawn(running.proxy.shutdown(Duration::from_secs(2)));
    soon("the port closes", async {
        while TcpStream::connect(here(port)).await.is_ok() {}
    })
    .await;
    assert!(!stopping.is_finished());
    crate::upgrade::talk(&mut socket, &mut socket_served, "still here").await;
    served.send(ok("late")).await;
    assert_eq!(client.response().await.text(), "late");
    client.closed().await;
    served_http2.send(ok("late")).await;
    let response = soon("the response", async { whole(response.await.unwrap()).await.unwrap() }).await;
    assert_eq!(response.body, b"late");
    soon("the connection ends", &mut http2.connection)
        .await
        .unwrap()
        .unwrap();
    // The websocket would go on for ever, so the grace ends it.
    socket.rest().await;
    soon("the shutdown", stopping).await.unwrap();
}

#[tokio::test]
async fn an_idle_proxy_shuts_down_at_once() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut client = Client::connect(here(port)).await;
    assert_eq!(client.get("a.test", "/").await.text(), "hello");
    let begun = std::time::Instant::now();
    soon("shutdown", running.proxy.shutdown(Duration::from_mins(1))).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    client.closed().await;
    backend.quiet().await;
}

#[tokio::test]
async fn endpoints_replaced_under_load_cost_no_request() {
    let backend = |name: &'static str| Backend::start(move |_: &Recorded| ok(name));
    let (first, second) = (backend("hello").await, backend("hello").await);
    let port = free_port();
    let plan = |backend: &Backend| {
        Plan::new()
            .http("web", port)
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let running = Running::serving(plan(&first)).await;
    let (load, clients) = Load::start(4, port);
    for change in 1..=40 {
        running
            .apply([plan(if change % 2 == 0 { &first } else { &second })])
            .await;
        let before = load.answered();
        until("more answers", || load.answered() >= before + 5).await;
    }
    load.end(running, clients).await;
    assert!(first.count() > 0 && second.count() > 0);
}
