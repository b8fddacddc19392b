//! The whole proxy over real sockets, and what it says about its listeners.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gatewright_ir::{
    Backend, Cluster, ClusterId, Endpoint, Endpoints, Entry, Fact, Gateway, Host, HostPattern, ListenFailure, Listener,
    ListenerSettings, ListenerState, Match, Origin, Protocol, Rank, Rule, Security, Target, Timeouts, UpstreamProtocol,
};
use imbl::OrdMap;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
};

use super::{Proxy, ProxySettings};

/// A backend that answers every request head with its own name.
async fn backend(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while stream.read_buf(&mut head).await.is_ok_and(|count| count > 0) {
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{name}", name.len());
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                }
            });
        }
    });
    address
}

fn listener(name: &str, addresses: &[Ipv4Addr], port: u16) -> Listener {
    let rule = Rule {
        origin: Origin::new("route"),
        name: None,
        filters: None,
        backends: Box::new([Backend {
            weight: 1,
            target: Target::Cluster(ClusterId::new("backend")),
            filters: None,
        }]),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
    };
    let entry = Entry {
        matches: Match::everything(),
        rank: Rank {
            created: 0,
            route: "default/route".into(),
            rule: 0,
            position: 0,
        },
        rule: Arc::new(rule),
    };
    let mut host = Host::default();
    host.entries.insert(Arc::new(entry));
    Listener {
        origin: Origin::new(name),
        name: name.into(),
        addresses: addresses.iter().map(|address| (*address).into()).collect(),
        port,
        bind: port,
        protocol: Protocol::Http,
        hostname: HostPattern::Any,
        settings: Arc::new(ListenerSettings::default()),
        hosts: OrdMap::unit(HostPattern::Any, Arc::new(host)),
    }
}

fn gateway(name: &str, generation: i64, backend: SocketAddr, listeners: Vec<Listener>) -> Gateway {
    let cluster = Cluster {
        origin: Origin::new("service"),
        protocol: UpstreamProtocol::Http1,
        security: Security::Clear,
        endpoints: Endpoints::Known(vec![Endpoint { address: backend }]),
        is_by_client: false,
        retry_budget: None,
    };
    Gateway {
        origin: Origin::new(name),
        generation,
        listeners: listeners.into_iter().map(Arc::new).collect(),
        identity: None,
        clusters: OrdMap::unit(ClusterId::new("backend"), Arc::new(cluster)),
    }
}

async fn apply(proxy: &Proxy, gateways: impl IntoIterator<Item = Gateway>) {
    let gateways = gateways
        .into_iter()
        .map(|gateway| (gateway.origin.clone(), Arc::new(gateway)));
    proxy.apply(gateways.collect()).await;
}

/// What the facts sent so far say, the last about each listener.
fn states(facts: &mut UnboundedReceiver<Fact>) -> BTreeMap<String, Option<(i64, ListenerState)>> {
    let mut states = BTreeMap::new();
    while let Ok(fact) = facts.try_recv() {
        match fact {
            Fact::Listener {
                origin,
                generation,
                state,
            } => states.insert(origin.to_string(), Some((generation, state))),
            Fact::Gone { origin } => states.insert(origin.to_string(), None),
        };
    }
    states
}

fn listening(state: Option<&Option<(i64, ListenerState)>>) -> Vec<SocketAddr> {
    match state {
        Some(Some((_, ListenerState::Listening(addresses)))) => addresses.clone(),
        other => panic!("{other:?}"),
    }
}

async fn get(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 1000];
    let reading = stream.read(&mut answer);
    let count = tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .unwrap()
        .unwrap();
    String::from_utf8_lossy(&answer[..count]).into_owned()
}

#[tokio::test]
async fn requests_reach_the_backend_and_a_new_table_takes_over_on_open_connections() {
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 2 }).unwrap();
    let (one, two) = (backend("one").await, backend("two").await);
    apply(
        &proxy,
        [gateway("g", 1, one, vec![listener("l", &[Ipv4Addr::LOCALHOST], 0)])],
    )
    .await;
    let addresses = listening(states(&mut facts).get("l"));
    let mut stream = TcpStream::connect(addresses[0]).await.unwrap();
    assert!(get(&mut stream).await.ends_with("\r\n\r\none"));
    assert!(get(&mut stream).await.ends_with("\r\n\r\none"));
    apply(
        &proxy,
        [gateway("g", 2, two, vec![listener("l", &[Ipv4Addr::LOCALHOST], 0)])],
    )
    .await;
    assert!(get(&mut stream).await.ends_with("\r\n\r\ntwo"));
    // The same sockets, and a fact for the new generation.
    assert_eq!(
        states(&mut facts).get("l"),
        Some(&Some((2, ListenerState::Listening(addresses))))
    );
    // A response is counted after it was sent.
    let counted = async {
        while proxy.metrics().requests[0].count < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), counted).await.unwrap();
    let metrics = proxy.metrics();
    assert_eq!((metrics.requests[0].status, metrics.requests[0].count), (200, 3));
    assert_eq!((metrics.upstream.opened, metrics.upstream.reused), (2, 1));
    proxy.shutdown(Duration::from_secs(5)).await;
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn applying_the_same_again_says_nothing() {
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 1 }).unwrap();
    let backend = backend("one").await;
    for _ in 0..2 {
        apply(
            &proxy,
            [gateway("g", 1, backend, vec![listener("l", &[Ipv4Addr::LOCALHOST], 0)])],
        )
        .await;
    }
    assert_eq!(states(&mut facts).len(), 1);
    apply(
        &proxy,
        [gateway("g", 1, backend, vec![listener("l", &[Ipv4Addr::LOCALHOST], 0)])],
    )
    .await;
    assert_eq!(states(&mut facts).len(), 0);
}

#[tokio::test]
async fn an_address_that_is_taken_is_reported_and_opened_when_it_is_free() {
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 2 }).unwrap();
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let other = Ipv4Addr::new(127, 0, 0, 2);
    let wanted = [other, Ipv4Addr::LOCALHOST];
    apply(
        &proxy,
        [gateway("g", 1, address, vec![listener("l", &wanted, address.port())])],
    )
    .await;
    let failed = ListenerState::Failed {
        address,
        failure: ListenFailure::InUse,
    };
    assert_eq!(states(&mut facts).get("l"), Some(&Some((1, failed))));
    // Nothing is accepted, on the free address either.
    assert!(TcpStream::connect((other, address.port())).await.is_err());
    drop(taken);
    let fact = tokio::time::timeout(Duration::from_secs(20), facts.recv())
        .await
        .unwrap();
    assert!(
        matches!(&fact, Some(Fact::Listener { state: ListenerState::Listening(addresses), .. }) if addresses.len() == 2),
        "{fact:?}"
    );
    assert!(TcpStream::connect((other, address.port())).await.is_ok());
}

#[tokio::test]
async fn the_port_to_bind_is_opened_and_not_the_one_that_clients_name() {
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 1 }).unwrap();
    let backend = backend("one").await;
    let listener = Listener {
        port: 80,
        ..listener("l", &[Ipv4Addr::LOCALHOST], 0)
    };
    apply(&proxy, [gateway("g", 1, backend, vec![listener])]).await;
    let address = listening(states(&mut facts).get("l"))[0];
    assert_ne!(address.port(), 80);
    let mut stream = TcpStream::connect(address).await.unwrap();
    assert!(get(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn of_two_gateways_on_one_address_the_first_keeps_it_until_it_goes() {
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 1 }).unwrap();
    let backend = backend("one").await;
    let make = |name: &str, listener_name: &str, port| {
        gateway(
            name,
            1,
            backend,
            vec![listener(listener_name, &[Ipv4Addr::LOCALHOST], port)],
        )
    };
    apply(&proxy, [make("b", "of b", 0)]).await;
    let port = listening(states(&mut facts).get("of b"))[0].port();
    apply(&proxy, [make("a", "of a", 0), make("b", "of b", 0)]).await;
    let now = states(&mut facts);
    assert!(
        matches!(
            now.get("of a"),
            Some(Some((
                _,
                ListenerState::Failed {
                    failure: ListenFailure::InUse,
                    ..
                }
            )))
        ),
        "{now:?}"
    );
    apply(&proxy, [make("a", "of a", 0)]).await;
    let now = states(&mut facts);
    assert_eq!(now.get("of b"), Some(&None));
    assert_eq!(
        listening(now.get("of a"))[0].port(),
        port,
        "the socket goes over to the other gateway"
    );
}

#[tokio::test]
async fn a_listener_that_goes_away_lets_its_connections_finish() {
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 2 }).unwrap();
    let backend = backend("one").await;
    apply(
        &proxy,
        [gateway("g", 1, backend, vec![listener("l", &[Ipv4Addr::LOCALHOST], 0)])],
    )
    .await;
    let address = listening(states(&mut facts).get("l"))[0];
    let mut idle = TcpStream::connect(address).await.unwrap();
    assert!(get(&mut idle).await.ends_with("one"));
    let mut busy = TcpStream::connect(address).await.unwrap();
    busy.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    // The worker must have seen the first half.
    while proxy.metrics().connections[0].accepted < 2 {
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(Duration::from_secs(10), apply(&proxy, []))
        .await
        .unwrap();
    assert_eq!(states(&mut facts).get("l"), Some(&None));
    assert!(TcpStream::connect(address).await.is_err());
    let ended = tokio::time::timeout(Duration::from_secs(10), idle.read(&mut [0]))
        .await
        .unwrap();
    assert_eq!(ended.unwrap(), 0);
    busy.write_all(b"st: a\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(Duration::from_secs(10), busy.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer.contains("connection: close") && answer.ends_with("one"),
        "{answer}"
    );
}

#[tokio::test]
async fn more_requests_than_fit_a_buffer_can_be_sent_ahead() {
    const COUNT: usize = 2_000;
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 1 }).unwrap();
    let backend = backend("one").await;
    apply(
        &proxy,
        [gateway("g", 1, backend, vec![listener("l", &[Ipv4Addr::LOCALHOST], 0)])],
    )
    .await;
    let address = listening(states(&mut facts).get("l"))[0];
    let (mut reading, mut writing) = TcpStream::connect(address).await.unwrap().into_split();
    tokio::spawn(async move {
        let requests = "GET / HTTP/1.1\r\nHost: a\r\nX: 123\r\n\r\n".repeat(COUNT - 1);
        writing.write_all(requests.as_bytes()).await.unwrap();
        let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        writing.write_all(last.as_bytes()).await.unwrap();
        // Half-closed: the answers are still wanted.
        writing.shutdown().await.unwrap();
        std::future::pending::<()>().await;
    });
    let mut answers = String::new();
    let all = reading.read_to_string(&mut answers);
    tokio::time::timeout(Duration::from_secs(30), all)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answers.matches("\r\n\r\none").count(), COUNT);
}

#[tokio::test]
async fn a_backend_may_think_for_longer_than_a_body_may_stand_still() {
    const PATIENCE: Duration = Duration::from_millis(100);
    let slow = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let backend = slow.local_addr().unwrap();
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers: 1 }).unwrap();
    let mut listener = listener("l", &[Ipv4Addr::LOCALHOST], 0);
    listener.settings = Arc::new(ListenerSettings {
        body_timeout: PATIENCE,
        ..ListenerSettings::default()
    });
    apply(&proxy, [gateway("g", 1, backend, vec![listener])]).await;
    let address = listening(states(&mut facts).get("l"))[0];
    let mut client = TcpStream::connect(address).await.unwrap();
    client
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na")
        .await
        .unwrap();
    let (mut served, _) = slow.accept().await.unwrap();
    let mut request = Vec::new();
    // The proxy waits for the rest of the body now, but not for long.
    while !request.ends_with(b"\r\n\r\na") {
        served.read_buf(&mut request).await.unwrap();
    }
    client.write_all(b"b").await.unwrap();
    while !request.ends_with(b"ab") {
        served.read_buf(&mut request).await.unwrap();
    }
    tokio::time::sleep(PATIENCE * 4).await;
    served
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
        .await
        .unwrap();
    let mut answer = vec![0; 1000];
    let reading = client.read(&mut answer);
    let count = tokio::time::timeout(Duration::from_secs(10), reading)
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer[..count].ends_with(b"done"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
}
