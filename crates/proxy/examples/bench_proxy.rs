//! One listener in front of one backend, to be measured from outside.
//!
//! `bench_proxy <port> <backend address> [workers] [h2c|tcp|passthrough]` listens on 127.0.0.1 until it is ended.

use std::{net::SocketAddr, sync::Arc};

use gatewright_ir::{
    Backend, Cluster, ClusterId, Endpoint, Endpoints, Entry, Fact, Gateway, Host, HostPattern, Listener,
    ListenerSettings, Match, Origin, Protocol, Rank, Rule, Security, Target, Timeouts, UpstreamProtocol,
};
use gatewright_proxy::{Proxy, ProxySettings};
use imbl::OrdMap;

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().ok_or("which port?")?.parse()?;
    let backend = arguments.next().ok_or("which backend?")?.parse()?;
    let workers = arguments.next().map_or(Ok(1), |workers| workers.parse())?;
    let (spoken, protocol) = match arguments.next().as_deref() {
        Some("h2c") => (Protocol::Http, UpstreamProtocol::Http2),
        Some("tcp") => (Protocol::Tcp, UpstreamProtocol::Tcp),
        Some("passthrough") => (Protocol::Passthrough, UpstreamProtocol::Tcp),
        _ => (Protocol::Http, UpstreamProtocol::Http1),
    };
    let (proxy, mut facts) = Proxy::start(ProxySettings { workers })?;
    let gateway = gateway(port, backend, spoken, protocol);
    proxy
        .apply(OrdMap::unit(gateway.origin.clone(), Arc::new(gateway)))
        .await;
    while let Some(fact) = facts.recv().await {
        report(&fact);
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "whoever measures waits for this line")]
fn report(fact: &Fact) {
    println!("{fact:?}");
}

fn gateway(port: u16, backend: SocketAddr, spoken: Protocol, protocol: UpstreamProtocol) -> Gateway {
    let cluster = ClusterId::new("backend");
    let rule = Rule {
        origin: Origin::new("route"),
        name: None,
        filters: None,
        backends: Box::new([Backend {
            weight: 1,
            target: Target::Cluster(cluster.clone()),
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
    let listener = Listener {
        origin: Origin::new("listener"),
        name: "measured".into(),
        addresses: vec![[127, 0, 0, 1].into()],
        port,
        bind: port,
        protocol: spoken,
        hostname: HostPattern::Any,
        settings: Arc::new(ListenerSettings::default()),
        hosts: OrdMap::unit(HostPattern::Any, Arc::new(host)),
    };
    let endpoints = Endpoints::Known(vec![Endpoint { address: backend }]);
    let cluster_value = Cluster {
        origin: Origin::new("service"),
        protocol,
        security: Security::Clear,
        endpoints,
        is_by_client: false,
        retry_budget: None,
    };
    Gateway {
        origin: Origin::new("gateway"),
        generation: 1,
        listeners: vec![Arc::new(listener)],
        identity: None,
        clusters: OrdMap::unit(cluster, Arc::new(cluster_value)),
    }
}
