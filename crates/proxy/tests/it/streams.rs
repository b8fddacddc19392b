//! Connections that are routed as a whole: both directions, each with its own end; weights, failures and time limits.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use gatewright_ir::{Endpoints, Protocol, Rule, Unresolved, UpstreamProtocol};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::support::{
    Plan, Running,
    gateway::{RuleChanges, counts, rule, split},
    plain::{Plain, assert_refused, assert_reset, dial, expect, rest},
    running::{free_port, here},
    soon, to, until,
};

fn tcp(port: u16, rule: Rule) -> Plan {
    Plan::new().listener("raw", port, Protocol::Tcp).whole("", rule)
}

/// What was refused, by reason.
fn refusals(running: &Running) -> Vec<(&'static str, u64)> {
    let refused = running.proxy.metrics().refused_streams;
    refused.iter().map(|count| (count.reason, count.count)).collect()
}

#[tokio::test]
async fn the_backend_may_speak_first_and_each_side_ends_by_itself() {
    let mut backend = Plain::manual().await;
    let port = free_port();
    let running = Running::serving(tcp(port, to("b")).tcp_cluster("b", &[backend.address])).await;
    let mut client = dial(here(port)).await;
    let mut served = backend.accept().await;
    served.write_all(b"hello\n").await.unwrap();
    expect(&mut client, b"hello\n").await;
    // The client has said everything, and still hears the answer.
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut served).await.unwrap(), b"question");
    served.write_all(b"late answer").await.unwrap();
    expect(&mut client, b"late answer").await;
    served.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await.unwrap(), b"");
    until("it is counted", || {
        let metrics = running.proxy.metrics();
        metrics
            .streams
            .iter()
            .any(|traffic| (traffic.open, traffic.opened, traffic.received_bytes, traffic.sent_bytes) == (0, 1, 8, 17))
    })
    .await;
}

#[tokio::test]
async fn megabytes_arrive_unchanged_in_both_directions_at_once() {
    let mut backend = Plain::manual().await;
    let port = free_port();
    let _running = Running::serving(tcp(port, to("b")).tcp_cluster("b", &[backend.address])).await;
    let client = dial(here(port)).await;
    let served = backend.accept().await;
    // Pieces of all sizes, so that small and large moves follow each other.
    let message: Vec<u8> = (0..24_000_000_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let say = |mut stream: tokio::net::tcp::OwnedWriteHalf, message: Vec<u8>| async move {
        let mut rest = message.as_slice();
        let mut size = 1;
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(size.min(rest.len()));
            stream.write_all(piece).await.unwrap();
            size = (size * 3) % 700_001 + 1;
            rest = left;
        }
        stream.shutdown().await.unwrap();
    };
    let (mut client_reader, client_writer) = client.into_split();
    let (mut served_reader, served_writer) = served.into_split();
    let said = [
        tokio::spawn(say(client_writer, message.clone())),
        tokio::spawn(say(served_writer, message.clone())),
    ];
    let (at_backend, at_client) = tokio::join!(rest(&mut served_reader), rest(&mut client_reader));
    assert!(at_backend.unwrap() == message && at_client.unwrap() == message);
    for said in said {
        said.await.unwrap();
    }
}

#[tokio::test]
async fn connections_are_shared_out_by_weight() {
    let (a, b, c) = (
        Plain::named("a").await,
        Plain::named("b").await,
        Plain::named("c").await,
    );
    let port = free_port();
    let plan = tcp(port, split(&[("a", 8), ("b", 2), ("c", 0)]))
        .tcp_cluster("a", &[a.address])
        .tcp_cluster("b", &[b.address])
        .tcp_cluster("c", &[c.address]);
    let _running = Running::with_workers(1, [plan]).await;
    let mut names = Vec::new();
    for _ in 0..100 {
        names.push(soon("a name", dial(here(port)).await.read_u8()).await.unwrap());
    }
    let counts = counts(names);
    assert!(
        counts.get(&b'a').is_some_and(|count| (78..=82).contains(count)) && !counts.contains_key(&b'c'),
        "{counts:?}"
    );
}

#[tokio::test]
async fn another_endpoint_is_tried_when_one_does_not_accept() {
    let backend = Plain::named("b").await;
    let gone = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        listener.local_addr().unwrap()
    };
    let port = free_port();
    let plan = tcp(port, to("b")).tcp_cluster("b", &[gone, backend.address]);
    let running = Running::serving(plan).await;
    for _ in 0..20 {
        expect(&mut dial(here(port)).await, b"b").await;
    }
    let upstream = running.proxy.metrics().upstream;
    // An endpoint that failed rests, so not every other connection finds out again.
    assert!((1..6).contains(&upstream.failed), "{upstream:?}");
}

#[tokio::test]
async fn a_connection_that_leads_nowhere_is_reset_and_counted() {
    let gone = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        listener.local_addr().unwrap()
    };
    let ports: Vec<_> = (0..6).map(|_| free_port()).collect();
    let plan = Plan::new()
        .tcp_cluster("gone", &[gone])
        .tcp_cluster("empty", &[])
        .listener("none", ports[0], Protocol::Tcp)
        .listener("no-backend", ports[1], Protocol::Tcp)
        .whole("", rule())
        .listener("weightless", ports[2], Protocol::Tcp)
        .whole("", split(&[("gone", 0)]))
        .listener("unresolved", ports[3], Protocol::Tcp)
        .whole("", rule().unresolved(1, Unresolved::NotPermitted))
        .listener("empty", ports[4], Protocol::Tcp)
        .whole("", to("empty"))
        .listener("gone", ports[5], Protocol::Tcp)
        .whole("", to("gone"));
    let running = Running::serving(plan).await;
    for port in ports {
        assert_refused(here(port)).await;
    }
    let mut expected = [
        ("connect_failed", 1),
        ("no_backend", 1),
        ("no_backend", 1),
        ("no_endpoints", 1),
        ("no_route", 1),
        ("ref_not_permitted", 1),
    ];
    expected.sort_unstable();
    until("all are counted", || {
        let mut refusals = refusals(&running);
        refusals.sort_unstable();
        refusals == expected
    })
    .await;
}

#[tokio::test]
async fn what_breaks_on_one_side_breaks_on_the_other() {
    let mut backend = Plain::manual().await;
    let port = free_port();
    let _running = Running::serving(tcp(port, to("b")).tcp_cluster("b", &[backend.address])).await;
    let mut client = dial(here(port)).await;
    let served = backend.accept().await;
    served.set_zero_linger().unwrap();
    drop(served);
    assert_reset(&mut client).await;
    let client = dial(here(port)).await;
    let mut served = backend.accept().await;
    client.set_zero_linger().unwrap();
    drop(client);
    assert_reset(&mut served).await;
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let mut backend = Plain::manual().await;
    let port = free_port();
    let _running = Running::serving(tcp(port, to("b")).tcp_cluster("b", &[backend.address])).await;
    let client = dial(here(port)).await;
    let mut served = backend.accept().await;
    let (mut reader, mut writer) = client.into_split();
    let sending = tokio::spawn(async move { while writer.write_all(&[b'x'; 8192]).await.is_ok() {} });
    soon("some bytes", served.read_exact(&mut vec![0; 1_000_000]))
        .await
        .unwrap();
    served.write_all(b"enough").await.unwrap();
    drop(served);
    expect(&mut reader, b"enough").await;
    soon("the client cannot send any more", sending).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_stands_still_is_closed_and_one_that_moves_is_not() {
    let mut backend = Plain::manual().await;
    let port = free_port();
    let plan = tcp(port, to("b"))
        .settings(|settings| settings.stream_idle_timeout = Duration::from_millis(300))
        .tcp_cluster("b", &[backend.address]);
    let _running = Running::serving(plan).await;
    let mut client = dial(here(port)).await;
    let mut served = backend.accept().await;
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_millis(900) {
        served.write_all(b".").await.unwrap();
        expect(&mut client, b".").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let still = std::time::Instant::now();
    assert_eq!(rest(&mut client).await.unwrap(), b"");
    assert!(still.elapsed() >= Duration::from_millis(200), "{:?}", still.elapsed());
    assert_eq!(rest(&mut served).await.unwrap(), b"");
}

#[tokio::test]
async fn open_connections_go_on_when_their_listener_closes_until_the_time_is_over() {
    let mut backend = Plain::manual().await;
    let port = free_port();
    let plan = tcp(port, to("b"))
        .settings(|settings| settings.drain_timeout = Duration::from_millis(700))
        .tcp_cluster("b", &[backend.address]);
    let running = Running::serving(plan).await;
    let mut client = dial(here(port)).await;
    let mut served = backend.accept().await;
    running.apply([]).await;
    assert!(TcpStream::connect(here(port)).await.is_err());
    served.write_all(b"still here").await.unwrap();
    expect(&mut client, b"still here").await;
    assert_eq!(rest(&mut client).await.unwrap(), b"");
    until("the proxy holds none", || running.proxy.metrics().upstream.open == 0).await;
}

#[tokio::test]
async fn open_connections_go_on_through_changes_and_through_a_shutdown() {
    let mut backend = Plain::manual().await;
    let other = Plain::named("other").await;
    let port = free_port();
    let plan = |cluster: &str| {
        tcp(port, to(cluster))
            .tcp_cluster("b", &[backend.address])
            .tcp_cluster("other", &[other.address])
    };
    let (first, second) = (plan("b"), plan("other"));
    let running = Running::serving(first).await;
    let mut client = dial(here(port)).await;
    let mut served = backend.accept().await;
    running.apply([second]).await;
    expect(&mut dial(here(port)).await, b"other").await;
    served.write_all(b"one").await.unwrap();
    expect(&mut client, b"one").await;
    let stopped = tokio::spawn(running.stop());
    until("nobody listens", || std::net::TcpStream::connect(here(port)).is_err()).await;
    client.write_all(b"two").await.unwrap();
    expect(&mut served, b"two").await;
    drop(served);
    assert_eq!(rest(&mut client).await.unwrap(), b"");
    drop(client);
    soon("the end", stopped).await.unwrap();
}

#[tokio::test]
async fn a_client_stays_at_its_endpoint_where_the_backend_wants_it_and_names_are_resolved() {
    let (a, b, c) = (
        Plain::named("a").await,
        Plain::named("b").await,
        Plain::named("c").await,
    );
    let (sticky, named) = (free_port(), free_port());
    let plan = tcp(sticky, to("sticky"))
        .tcp_cluster("sticky", &[a.address, b.address])
        .by_client("sticky")
        .listener("named", named, Protocol::Tcp)
        .whole("", to("named"))
        .cluster_of(
            "named",
            UpstreamProtocol::Tcp,
            Endpoints::Named {
                name: "localhost".into(),
                port: c.address.port(),
                allow_local: true,
            },
        );
    let _running = Running::serving(plan).await;
    let mut heard = Vec::new();
    for _ in 0..10 {
        heard.push(soon("a name", dial(here(sticky)).await.read_u8()).await.unwrap());
    }
    assert_eq!(counts(heard).len(), 1);
    expect(&mut dial(here(named)).await, b"c").await;
}

#[tokio::test]
async fn a_port_belongs_to_one_tcp_listener_and_udp_beside_it() {
    let backend = Plain::named("b").await;
    let port = free_port();
    let plan = tcp(port, to("b"))
        .listener("second", port, Protocol::Tcp)
        .listener("datagrams", port, Protocol::Udp)
        .tcp_cluster("b", &[backend.address]);
    let mut running = Running::serving(plan).await;
    expect(&mut dial(here(port)).await, b"b").await;
    let facts = running.facts();
    let state = |name: &str| {
        crate::support::running::state_of(&facts, &format!("gateway/{name}"))
            .unwrap()
            .1
    };
    let address: SocketAddr = here(port);
    assert_eq!(state("raw"), gatewright_ir::ListenerState::Listening(vec![address]));
    assert_eq!(
        state("datagrams"),
        gatewright_ir::ListenerState::Listening(vec![address])
    );
    assert_eq!(
        state("second"),
        gatewright_ir::ListenerState::Failed {
            address,
            failure: gatewright_ir::ListenFailure::InUse
        }
    );
}
