//! Datagrams: each client keeps its backend for a while, and hears the answers to what it asked.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use gatewright_ir::{Endpoint, Endpoints, ListenFailure, ListenerState, Protocol, Rule, Unresolved, UpstreamProtocol};
use tokio::{net::UdpSocket, task::AbortHandle};

use crate::support::{
    Plan, Running,
    gateway::{RuleChanges, counts, rule, split},
    running::{free_port, here, state_of},
    soon, to, until,
};

/// A backend that answers every datagram with its name, the port that it came from, and the datagram.
struct Named {
    address: SocketAddr,
    task: AbortHandle,
}

impl Drop for Named {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Named {
    async fn new(name: &'static str) -> Self {
        Self::at(name, (Ipv4Addr::LOCALHOST, 0).into()).await
    }

    async fn at(name: &'static str, address: SocketAddr) -> Self {
        let socket = UdpSocket::bind(address).await.unwrap();
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 65_535];
            loop {
                let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                    continue;
                };
                let mut answer = format!("{name} {} ", from.port()).into_bytes();
                answer.extend_from_slice(&buffer[..length]);
                answer.truncate(65_507);
                _ = socket.send_to(&answer, from).await;
            }
        });
        Self {
            address,
            task: task.abort_handle(),
        }
    }

    async fn stop(self) -> SocketAddr {
        let address = self.address;
        drop(self);
        until("the port is free", || std::net::UdpSocket::bind(address).is_ok()).await;
        address
    }
}

/// A client that speaks to the proxy alone.
struct Caller(UdpSocket);

impl Caller {
    async fn to(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        socket.connect(address).await.unwrap();
        Self(socket)
    }

    async fn hear(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_535];
        let length = soon("an answer", self.0.recv(&mut buffer)).await.unwrap();
        buffer.truncate(length);
        buffer
    }

    /// Asks, and says who answered from where, and what.
    async fn ask(&self, question: &str) -> (String, String, String) {
        self.0.send(question.as_bytes()).await.unwrap();
        answer(self.hear().await)
    }

    /// Asks again and again until somebody answers: the first datagrams after a backend is gone are lost.
    async fn ask_until_answered(&self, question: &str) -> (String, String, String) {
        soon("an answer at last", async {
            loop {
                self.0.send(question.as_bytes()).await.unwrap();
                let mut buffer = vec![0; 65_535];
                let heard = tokio::time::timeout(Duration::from_millis(50), self.0.recv(&mut buffer)).await;
                if let Ok(Ok(length)) = heard {
                    buffer.truncate(length);
                    return answer(buffer);
                }
            }
        })
        .await
    }
}

fn answer(bytes: Vec<u8>) -> (String, String, String) {
    let text = String::from_utf8(bytes).unwrap();
    let mut parts = text.splitn(3, ' ').map(str::to_owned);
    let mut next = || parts.next().unwrap();
    (next(), next(), next())
}

fn udp(port: u16, rule: Rule) -> Plan {
    Plan::new().listener("dns", port, Protocol::Udp).whole("", rule)
}

fn cluster(plan: Plan, id: &str, addresses: &[SocketAddr]) -> Plan {
    let endpoints = addresses.iter().map(|address| Endpoint { address: *address }).collect();
    plan.cluster_of(id, UpstreamProtocol::Udp, Endpoints::Known(endpoints))
}

fn open_flows(running: &Running) -> u64 {
    running.proxy.metrics().streams.iter().map(|traffic| traffic.open).sum()
}

#[tokio::test]
async fn two_clients_at_once_hear_their_own_answers() {
    let backend = Named::new("b").await;
    let port = free_port();
    let mut running = Running::serving(cluster(udp(port, to("b")), "b", &[backend.address])).await;
    let facts = running.facts();
    assert_eq!(
        state_of(&facts, "gateway/dns").unwrap().1,
        ListenerState::Listening(vec![here(port)])
    );
    let (one, two) = (Caller::to(here(port)).await, Caller::to(here(port)).await);
    let mut ports = Vec::new();
    for round in 0..20 {
        let (first, second) = (format!("one {round}"), format!("two {round}"));
        one.0.send(first.as_bytes()).await.unwrap();
        two.0.send(second.as_bytes()).await.unwrap();
        let (heard_two, heard_one) = (answer(two.hear().await), answer(one.hear().await));
        assert_eq!((heard_one.2, heard_two.2), (first, second));
        ports.push((heard_one.1, heard_two.1));
    }
    // Each client keeps one way to the backend.
    assert!(
        ports.iter().all(|pair| *pair == ports[0]) && ports[0].0 != ports[0].1,
        "{ports:?}"
    );
    // The largest datagram there is, and the smallest.
    let (_, _, heard) = one.ask(&"x".repeat(60_000)).await;
    assert_eq!(heard.len(), 60_000);
    assert_eq!(one.ask("").await.2, "");
    until("they are counted", || {
        let streams = running.proxy.metrics().streams;
        streams.len() == 1 && streams[0].open == 2 && streams[0].opened == 2 && streams[0].received_bytes == 60_220
    })
    .await;
}

#[tokio::test]
async fn flows_are_shared_out_by_weight_and_end_when_nothing_moves() {
    let (a, b) = (Named::new("a").await, Named::new("b").await);
    let port = free_port();
    let plan = udp(port, split(&[("a", 3), ("b", 1)]))
        .settings(|settings| settings.datagram_idle_timeout = Duration::from_millis(400));
    let plan = cluster(cluster(plan, "a", &[a.address]), "b", &[b.address]);
    let running = Running::with_workers(1, [plan]).await;
    let mut names = Vec::new();
    let mut callers = Vec::new();
    for _ in 0..40 {
        let caller = Caller::to(here(port)).await;
        let (name, way, _) = caller.ask("who").await;
        // A flow stays where it is.
        assert_eq!(caller.ask("again").await, (name.clone(), way, "again".to_owned()));
        names.push(name);
        callers.push(caller);
    }
    let counts = counts(names);
    assert!(
        counts.get("a").is_some_and(|count| (29..=31).contains(count)),
        "{counts:?}"
    );
    until("all flows are over", || open_flows(&running) == 0).await;
    let ways = running.proxy.metrics().streams[0].opened;
    callers[0].ask("anew").await;
    assert_eq!(running.proxy.metrics().streams[0].opened, ways + 1);
}

#[tokio::test]
async fn a_flow_moves_on_when_its_backend_is_gone_and_comes_back_with_it() {
    let (a, b) = (Named::new("a").await, Named::new("b").await);
    let port = free_port();
    let plan = cluster(udp(port, to("both")), "both", &[a.address, b.address]);
    let running = Running::serving(plan).await;
    let caller = Caller::to(here(port)).await;
    let (first, ..) = caller.ask("who").await;
    let (gone, stays) = if first == "a" { (a, b) } else { (b, a) };
    let address = gone.stop().await;
    assert_ne!(caller.ask_until_answered("who now").await.0, first);
    // With nobody left the listener goes on, and so does the client once somebody is back.
    let other = stays.stop().await;
    for _ in 0..5 {
        caller.0.send(b"anybody").await.unwrap();
    }
    until("it is counted", || {
        let refused = running.proxy.metrics().refused_streams;
        refused.iter().any(|count| count.reason == "connect_failed")
    })
    .await;
    let (_c, _d) = (Named::at("c", address).await, Named::at("c", other).await);
    assert_eq!(caller.ask_until_answered("and now").await.0, "c");
}

#[tokio::test]
async fn a_flow_leaves_a_backend_that_is_no_longer_one() {
    let (a, b) = (Named::new("a").await, Named::new("b").await);
    let port = free_port();
    let plan = |target: SocketAddr| cluster(udp(port, to("one")), "one", &[target]);
    let running = Running::serving(plan(a.address)).await;
    let caller = Caller::to(here(port)).await;
    assert_eq!(caller.ask("who").await.0, "a");
    running.apply([plan(b.address)]).await;
    assert_eq!(caller.ask("who").await.0, "b");
    // A change that leaves the backend where it is moves nobody.
    let before = running.proxy.metrics().streams[0].opened;
    running.apply([plan(b.address).generation(2)]).await;
    assert_eq!(caller.ask("who").await.0, "b");
    assert_eq!(running.proxy.metrics().streams[0].opened, before);
    // Nothing goes on without a route.
    running
        .apply([Plan::new()
            .listener("dns", port, Protocol::Udp)
            .whole("", rule().unresolved(1, Unresolved::NotPermitted))])
        .await;
    caller.0.send(b"anybody").await.unwrap();
    until("it is counted", || {
        let refused = running.proxy.metrics().refused_streams;
        refused
            .iter()
            .any(|count| (count.reason, count.count) == ("ref_not_permitted", 1))
    })
    .await;
}

#[tokio::test]
async fn there_are_at_most_so_many_flows() {
    let backend = Named::new("b").await;
    let port = free_port();
    let plan = udp(port, to("b")).settings(|settings| settings.max_connections = 2);
    let running = Running::serving(cluster(plan, "b", &[backend.address])).await;
    let (one, two, three) = (
        Caller::to(here(port)).await,
        Caller::to(here(port)).await,
        Caller::to(here(port)).await,
    );
    one.ask("first").await;
    two.ask("second").await;
    three.0.send(b"third").await.unwrap();
    until("the third is counted", || {
        let refused = running.proxy.metrics().refused_streams;
        refused
            .iter()
            .any(|count| (count.reason, count.count) == ("too_many_flows", 1))
    })
    .await;
    one.ask("first").await;
    two.ask("second").await;
}

#[tokio::test]
async fn answers_come_from_the_address_that_was_asked() {
    let backend = Named::new("b").await;
    let port = free_port();
    let plan = udp(port, to("b")).addresses(&["0.0.0.0"]);
    let _running = Running::serving(cluster(plan, "b", &[backend.address])).await;
    let mut ways = Vec::new();
    for last in 1..5 {
        // A connected socket hears nobody else.
        let caller = Caller::to((Ipv4Addr::new(127, 0, 0, last), port).into()).await;
        ways.push(caller.ask("who").await.1);
    }
    ways.sort();
    ways.dedup();
    assert_eq!(ways.len(), 4);
}

#[tokio::test]
async fn an_address_that_another_program_has_is_reported_and_freed_when_the_listener_goes() {
    let backend = Named::new("b").await;
    let port = free_port();
    let other = UdpSocket::bind(here(port)).await.unwrap();
    let mut running = Running::serving(cluster(udp(port, to("b")), "b", &[backend.address])).await;
    let failed = ListenerState::Failed {
        address: here(port),
        failure: ListenFailure::InUse,
    };
    assert_eq!(state_of(&running.facts(), "gateway/dns").unwrap().1, failed);
    drop(other);
    let mut facts = Vec::new();
    until("it listens", || {
        facts.extend(running.facts());
        state_of(&facts, "gateway/dns").is_some_and(|(_, state)| state == ListenerState::Listening(vec![here(port)]))
    })
    .await;
    let caller = Caller::to(here(port)).await;
    caller.ask("who").await;
    running.apply([]).await;
    drop(UdpSocket::bind(here(port)).await.unwrap());
    soon("the end", running.stop()).await;
}
