//! The PROXY protocol: fronts that are trusted say who the client is, and backends are told.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use gatewright_ir::{ListenerSettings, Protocol, ProxyHeader};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::support::{
    Backend, Client, Plan, Running,
    plain::{Plain, dial, expect, rest},
    running::{free_port, here},
    soon,
    tls::{certificate, connect, trusting},
    to, until,
};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A version 2 header of a client at 203.0.113.9:4321 that connected to 198.51.100.1:443.
fn binary() -> Vec<u8> {
    let addresses = [203, 0, 113, 9, 198, 51, 100, 1, 0x10, 0xe1, 0x01, 0xbb];
    [SIGNATURE, &[0x21, 0x11, 0, 12], &addresses].concat()
}

fn trust(settings: &mut ListenerSettings) {
    settings.proxy_fronts = vec!["127.0.0.1/32".parse().unwrap()];
}

/// A connection from another address of this host.
async fn dial_from(last: u8, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, last), 0).into()).unwrap();
    soon("a connection", socket.connect(address)).await.unwrap()
}

fn refused(running: &Running, reason: &str) -> u64 {
    let refused = running.proxy.metrics().refused_streams;
    refused
        .iter()
        .filter(|count| count.reason == reason)
        .map(|count| count.count)
        .sum()
}

#[tokio::test]
async fn a_front_says_who_the_client_is_and_the_backend_of_a_request_hears_it() {
    let backend = Backend::answering("hello").await;
    let port = free_port();
    let plan = Plan::new()
        .http("web", port)
        .settings(trust)
        .all_to("backend")
        .cluster("backend", &[backend.address]);
    let running = Running::serving(plan).await;
    let request = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for header in [binary(), b"PROXY TCP4 203.0.113.9 198.51.100.1 4321 443\r\n".to_vec()] {
        let mut stream = dial(here(port)).await;
        stream.write_all(&[&header[..], request].concat()).await.unwrap();
        let mut client = Client::on(stream);
        assert_eq!(client.response().await.status, 200);
    }
    // A front that looks whether we are here, and then asks for itself.
    let mut stream = dial(here(port)).await;
    let local = [SIGNATURE, &[0x20, 0, 0, 0]].concat();
    stream.write_all(&[&local[..], request].concat()).await.unwrap();
    assert_eq!(Client::on(stream).response().await.status, 200);
    // Whoever is no front says nothing, and is not believed if it does.
    let mut stranger = Client::on(dial_from(2, here(port)).await);
    assert_eq!(stranger.get("a.test", "/").await.status, 200);
    let mut stream = dial_from(2, here(port)).await;
    let line = b"PROXY TCP4 203.0.113.9 198.51.100.1 4321 443\r\n";
    stream.write_all(&[&line[..], request].concat()).await.unwrap();
    assert_eq!(Client::on(stream).response().await.status, 400);

    let seen: Vec<_> = backend
        .requests()
        .iter()
        .map(|request| request.header("x-forwarded-for").unwrap().to_owned())
        .collect();
    assert_eq!(seen, ["203.0.113.9", "203.0.113.9", "127.0.0.1", "127.0.0.2"]);
    // HTTP listeners count requests as ever.
    assert!(running.proxy.metrics().streams.is_empty());
}

#[tokio::test]
async fn a_front_that_says_nothing_is_cut_and_counted() {
    let backend = Plain::named("b").await;
    let port = free_port();
    let plan = Plan::new()
        .listener("raw", port, Protocol::Tcp)
        .settings(trust)
        .settings(|settings| settings.header_timeout = Duration::from_millis(200))
        .whole("", to("b"))
        .tcp_cluster("b", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut silent = dial(here(port)).await;
    assert!(rest(&mut silent).await.is_err());
    let mut wrong = dial(here(port)).await;
    wrong.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(rest(&mut wrong).await.is_err());
    until("both are counted", || {
        refused(&running, "proxy_header_timeout") == 1 && refused(&running, "proxy_header_malformed") == 1
    })
    .await;
    expect(&mut dial_from(2, here(port)).await, b"b").await;
}

#[tokio::test]
async fn backends_of_connections_are_told_who_the_client_is() {
    let mut backend = Plain::manual().await;
    let cert = certificate(&["a.test"]);
    let (one, two, three) = (free_port(), free_port(), free_port());
    let ask = |version| move |settings: &mut ListenerSettings| settings.proxy_header = Some(version);
    let ended = Protocol::Tls(gatewright_ir::Termination {
        certificates: vec![cert.clone()],
        clients: None,
    });
    let plan = Plan::new()
        .listener("one", one, Protocol::Tcp)
        .settings(ask(ProxyHeader::V1))
        .whole("", to("b"))
        .listener("two", two, Protocol::Tcp)
        .settings(ask(ProxyHeader::V2))
        .settings(trust)
        .whole("", to("b"))
        .listener("three", three, ended)
        .settings(ask(ProxyHeader::V1))
        .whole("", to("b"))
        .tcp_cluster("b", &[backend.address]);
    let _running = Running::serving(plan).await;

    let client = dial(here(one)).await;
    let mut served = backend.accept().await;
    let from = client.local_addr().unwrap().port();
    expect(
        &mut served,
        format!("PROXY TCP4 127.0.0.1 127.0.0.1 {from} {one}\r\n").as_bytes(),
    )
    .await;

    // What a front said is handed on, and so is what came with it.
    let mut client = dial(here(two)).await;
    client
        .write_all(b"PROXY TCP4 203.0.113.9 198.51.100.1 4321 443\r\nhello")
        .await
        .unwrap();
    let mut served = backend.accept().await;
    expect(&mut served, &binary()).await;
    expect(&mut served, b"hello").await;

    let mut client = connect(here(three), &trusting(&[&cert], &[]), "a.test").await.unwrap();
    client.write_all(b"in clear text").await.unwrap();
    let mut served = backend.accept().await;
    let from = client.get_ref().0.local_addr().unwrap().port();
    let expected = format!("PROXY TCP4 127.0.0.1 127.0.0.1 {from} {three}\r\nin clear text");
    expect(&mut served, expected.as_bytes()).await;
}

#[tokio::test]
async fn a_handshake_that_is_passed_on_follows_the_introduction() {
    let mut backend = Plain::manual().await;
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let plan = Plan::new()
        .listener("passed", port, Protocol::Passthrough)
        .settings(trust)
        .settings(|settings| settings.proxy_header = Some(ProxyHeader::V2))
        .whole("a.test", to("b"))
        .tcp_cluster("b", &[backend.address]);
    let _running = Running::serving(plan).await;
    let name = rustls::pki_types::ServerName::try_from("a.test").unwrap();
    let mut connection = rustls::ClientConnection::new(trusting(&[&cert], &[]), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    let mut client = dial(here(port)).await;
    client.write_all(&[binary(), hello.clone()].concat()).await.unwrap();
    let mut served = backend.accept().await;
    expect(&mut served, &[binary(), hello].concat()).await;
    served.write_all(b"x").await.unwrap();
    assert_eq!(soon("an answer", client.read_u8()).await.unwrap(), b'x');
}
