//! Answers that a real API server cannot be asked to give: a fake one gives them, for one kind.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use gatewright_api::Kind;
use gatewright_source::kube::Cluster;
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::support::{Followed, name};

/// What a watch of Services is answered with, in this order; the last one again and again.
#[derive(Clone, Debug)]
enum Answer {
    /// A status instead of a stream.
    Status(u16, &'static str),
    /// A stream of lines, which then ends in the middle of another.
    Lines(Vec<Value>),
    /// A stream that says nothing.
    Silence,
}

struct Fake {
    watches: Vec<Answer>,
    watched: AtomicUsize,
    lists: AtomicUsize,
}

impl Fake {
    async fn start(watches: Vec<Answer>) -> (Arc<Self>, Cluster) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let fake = Arc::new(Self {
            watches,
            watched: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
        });
        tokio::spawn({
            let fake = fake.clone();
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(fake.clone().serve(stream));
                }
            }
        });
        let mut config = kube::Config::new(server.parse().unwrap());
        config.default_retry = false;
        (fake, Cluster::new(Client::try_from(config).unwrap(), server))
    }

    async fn serve(self: Arc<Self>, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = String::new();
            loop {
                let before = head.len();
                if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                    return;
                }
                if head.len() - before <= 2 {
                    break;
                }
            }
            let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
            if self.answer(&mut stream, &target).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&self, stream: &mut BufReader<TcpStream>, target: &str) -> std::io::Result<()> {
        if target == "/api/v1" {
            let resources = json!([{"name": "services", "namespaced": true, "kind": "Service", "verbs": ["list", "watch"],
                                    "singularName": "service"}]);
            return whole(
                stream,
                200,
                &json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources}),
            )
            .await;
        }
        if !target.starts_with("/api/v1/services") {
            return whole(stream, 404, &failure(404, "NotFound")).await;
        }
        if !target.contains("watch=") {
            let count = self.lists.fetch_add(1, Ordering::SeqCst);
            // What is there changes from list to list.
            let item = json!({"metadata": {"name": format!("s{count}"), "namespace": "a", "resourceVersion": "5", "uid": "u"}});
            let list = json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": {"resourceVersion": "10"}, "items": [item]});
            return whole(stream, 200, &list).await;
        }
        let turn = self.watched.fetch_add(1, Ordering::SeqCst);
        let answer = self.watches.get(turn).or(self.watches.last()).cloned();
        match answer.unwrap_or(Answer::Silence) {
            Answer::Status(code, reason) => whole(stream, code, &failure(code, reason)).await,
            Answer::Lines(lines) => {
                begin(stream).await?;
                for line in lines {
                    chunk(stream, &format!("{line}\n")).await?;
                }
                chunk(stream, "{\"type\":\"ADDED\",\"object\":{\"meta").await?;
                // The connection is cut in the middle of an event.
                stream.get_mut().shutdown().await?;
                Err(std::io::ErrorKind::ConnectionAborted.into())
            }
            Answer::Silence => {
                begin(stream).await?;
                let mut byte = [0];
                stream.read_exact(&mut byte).await.map(|_| ())
            }
        }
    }
}

fn failure(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason,
           "metadata": {}})
}

async fn whole(stream: &mut BufReader<TcpStream>, code: u16, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await
}

async fn begin(stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await
}

async fn chunk(stream: &mut BufReader<TcpStream>, text: &str) -> std::io::Result<()> {
    stream
        .write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
        .await?;
    stream.flush().await
}

fn event(kind: &str, service: &str, version: &str) -> Value {
    json!({"type": kind, "object": {"kind": "Service", "apiVersion": "v1",
        "metadata": {"name": service, "namespace": "a", "resourceVersion": version, "uid": service}}})
}

/// After these answers the Service of the second list must be known, and that of the first gone.
async fn is_listed_again(watches: Vec<Answer>) {
    let (fake, cluster) = Fake::start(watches).await;
    let mut followed = Followed::synced(&cluster, "example.com/faults", &[]).await;
    let (first, second) = (name(Kind::Service, "a", "s0"), name(Kind::Service, "a", "s1"));
    followed
        .until("the second list", |followed| {
            followed.has(&second) && !followed.has(&first)
        })
        .await;
    assert_eq!(fake.lists.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_version_that_is_gone_is_left_when_an_event_says_so() {
    let gone = json!({"type": "ERROR", "object": failure(410, "Expired")});
    is_listed_again(vec![Answer::Lines(vec![gone]), Answer::Silence]).await;
}

#[tokio::test]
async fn a_version_that_is_gone_is_left_when_a_status_says_so() {
    is_listed_again(vec![Answer::Status(410, "Expired"), Answer::Silence]).await;
}

#[tokio::test]
async fn a_version_from_the_future_is_left_after_some_attempts() {
    let refused = Answer::Status(400, "BadRequest");
    let mut watches = vec![refused; 6];
    watches.push(Answer::Silence);
    is_listed_again(watches).await;
}

#[tokio::test]
async fn a_stream_that_is_cut_or_throttled_is_resumed_without_a_list() {
    let watches = vec![
        Answer::Lines(vec![event("ADDED", "one", "11")]),
        Answer::Status(429, "TooManyRequests"),
        Answer::Status(500, "InternalError"),
        Answer::Lines(vec![
            json!({"type": "BOOKMARK", "object": {"kind": "Service", "apiVersion": "v1", "metadata": {"resourceVersion": "12"}}}),
            json!({"type": "ERROR", "object": failure(500, "InternalError")}),
        ]),
        Answer::Lines(vec![event("ADDED", "two", "13")]),
        Answer::Lines(vec![event("DELETED", "one", "14")]),
        Answer::Silence,
    ];
    let (fake, cluster) = Fake::start(watches).await;
    let mut followed = Followed::synced(&cluster, "example.com/faults", &[]).await;
    let (one, two) = (name(Kind::Service, "a", "one"), name(Kind::Service, "a", "two"));
    followed.until("the first event", |followed| followed.has(&one)).await;
    followed
        .until("the events after the trouble", |followed| {
            followed.has(&two) && !followed.has(&one)
        })
        .await;
    assert_eq!(fake.lists.load(Ordering::SeqCst), 1, "nothing was listed again");
}
