//! A builder of gateways: just enough of the IR to say what a test is about in a few lines.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use gatewright_ir::{
    Backend, Certificate, ClientValidation, Cluster, ClusterId, Endpoint, Endpoints, Entry, Field, Filters, Gateway,
    HeaderChange, Host, HostPattern, Listener, ListenerSettings, Match, Mirror, Origin, PathChange, PathMatch, Pattern,
    Protocol, Rank, Redirect, Retry, RetryBudget, Rewrite, Rule, Security, Share, Target, Termination, TextMatch,
    Timeouts, Unresolved, UpstreamProtocol,
};
use imbl::OrdMap;

/// A gateway in the making. Listener methods speak of the listener added last.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    origin: String,
    generation: i64,
    listeners: Vec<Listener>,
    identity: Option<Arc<Certificate>>,
    clusters: OrdMap<ClusterId, Arc<Cluster>>,
    routes: u16,
}

impl Plan {
    pub(crate) fn new() -> Self {
        Self::named("gateway")
    }

    pub(crate) fn named(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            generation: 1,
            listeners: Vec::new(),
            identity: None,
            clusters: OrdMap::new(),
            routes: 0,
        }
    }

    pub(crate) fn generation(mut self, generation: i64) -> Self {
        self.generation = generation;
        self
    }

    /// Adds a listener for clear text. Its origin is `gateway/name`.
    pub(crate) fn http(self, name: &str, port: u16) -> Self {
        self.listener(name, port, Protocol::Http)
    }

    /// Adds a listener for TLS.
    pub(crate) fn https(self, name: &str, port: u16, certificates: &[&Arc<Certificate>]) -> Self {
        let certificates = certificates.iter().copied().cloned().collect();
        self.listener(
            name,
            port,
            Protocol::Https(Termination {
                certificates,
                clients: None,
            }),
        )
    }

    /// Adds a listener of whatever protocol.
    pub(crate) fn listener(mut self, name: &str, port: u16, protocol: Protocol) -> Self {
        self.listeners.push(Listener {
            origin: Origin::new(format!("{}/{name}", self.origin)),
            name: name.into(),
            addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            port,
            bind: port,
            protocol,
            hostname: HostPattern::Any,
            settings: Arc::new(ListenerSettings::default()),
            hosts: OrdMap::new(),
        });
        self
    }

    fn last(&mut self) -> &mut Listener {
        self.listeners.last_mut().expect("a listener was added")
    }

    pub(crate) fn hostname(mut self, hostname: &str) -> Self {
        self.last().hostname = HostPattern::parse(hostname).unwrap();
        self
    }

    pub(crate) fn addresses(mut self, addresses: &[&str]) -> Self {
        self.last().addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self
    }

    pub(crate) fn settings(mut self, change: impl FnOnce(&mut ListenerSettings)) -> Self {
        let listener = self.last();
        let mut settings = (*listener.settings).clone();
        change(&mut settings);
        listener.settings = Arc::new(settings);
        self
    }

    /// Adds a route to the last listener. Earlier routes win where both are equally specific.
    pub(crate) fn route(mut self, host: &str, matches: Match, rule: Rule) -> Self {
        self.routes += 1;
        let entry = Entry {
            matches,
            rank: Rank {
                created: 0,
                route: rule.origin.text().clone(),
                rule: self.routes,
                position: 0,
            },
            rule: Arc::new(rule),
        };
        let pattern = HostPattern::parse(host).unwrap();
        let hosts = &mut self.last().hosts;
        let mut host = hosts.get(&pattern).map(|host| Host::clone(host)).unwrap_or_default();
        host.entries.insert(Arc::new(entry));
        hosts.insert(pattern, Arc::new(host));
        self
    }

    /// Every request of the last listener goes to this cluster.
    pub(crate) fn all_to(self, cluster: &str) -> Self {
        self.route("", prefix("/"), to(cluster))
    }

    pub(crate) fn cluster(self, id: &str, addresses: &[SocketAddr]) -> Self {
        let endpoints = addresses.iter().map(|address| Endpoint { address: *address }).collect();
        self.cluster_of(id, UpstreamProtocol::Http1, Endpoints::Known(endpoints))
    }

    /// Every connection of the last listener that asks for this name goes by this rule.
    pub(crate) fn whole(self, host: &str, rule: Rule) -> Self {
        self.route(host, Match::everything(), rule)
    }

    /// A cluster that gets connections as they are.
    pub(crate) fn tcp_cluster(self, id: &str, addresses: &[SocketAddr]) -> Self {
        let endpoints = addresses.iter().map(|address| Endpoint { address: *address }).collect();
        self.cluster_of(id, UpstreamProtocol::Tcp, Endpoints::Known(endpoints))
    }

    /// A cluster that speaks HTTP/2.
    pub(crate) fn h2_cluster(self, id: &str, address: SocketAddr) -> Self {
        self.cluster_of(
            id,
            UpstreamProtocol::Http2,
            Endpoints::Known(vec![Endpoint { address }]),
        )
    }

    pub(crate) fn cluster_of(mut self, id: &str, protocol: UpstreamProtocol, endpoints: Endpoints) -> Self {
        let cluster = Cluster {
            origin: Origin::new(format!("Service/{id}")),
            protocol,
            security: Security::Clear,
            endpoints,
            is_by_client: false,
            retry_budget: None,
        };
        self.clusters.insert(ClusterId::new(id), Arc::new(cluster));
        self
    }

    /// Says how the endpoints of a cluster are spoken to.
    pub(crate) fn secured(mut self, id: &str, security: Security) -> Self {
        let id = ClusterId::new(id);
        let cluster = self.clusters.get(&id).expect("a cluster was added");
        let secured = Cluster {
            security,
            ..Cluster::clone(cluster)
        };
        self.clusters.insert(id, Arc::new(secured));
        self
    }

    /// What the gateway shows to backends.
    pub(crate) fn identity(mut self, certificate: &Arc<Certificate>) -> Self {
        self.identity = Some(Arc::clone(certificate));
        self
    }

    /// Which clients the last listener lets in.
    pub(crate) fn clients(mut self, validation: &Arc<ClientValidation>) -> Self {
        match &mut self.last().protocol {
            Protocol::Https(termination) | Protocol::Tls(termination) => {
                termination.clients = Some(Arc::clone(validation));
            }
            _ => panic!("a listener that terminates TLS was added"),
        }
        self
    }

    /// Limits the retries of a cluster.
    pub(crate) fn budget(mut self, id: &str, budget: RetryBudget) -> Self {
        let id = ClusterId::new(id);
        let cluster = self.clusters.get(&id).expect("a cluster was added");
        let limited = Cluster {
            retry_budget: Some(budget),
            ..Cluster::clone(cluster)
        };
        self.clusters.insert(id, Arc::new(limited));
        self
    }

    /// Keeps the clients of a cluster at their endpoints.
    pub(crate) fn by_client(mut self, id: &str) -> Self {
        let id = ClusterId::new(id);
        let cluster = self.clusters.get(&id).expect("a cluster was added");
        let sticky = Cluster {
            is_by_client: true,
            ..Cluster::clone(cluster)
        };
        self.clusters.insert(id, Arc::new(sticky));
        self
    }

    pub(crate) fn build(self) -> Arc<Gateway> {
        Arc::new(Gateway {
            origin: Origin::new(self.origin),
            generation: self.generation,
            listeners: self.listeners.into_iter().map(Arc::new).collect(),
            identity: self.identity,
            clusters: self.clusters,
        })
    }
}

/// Gateways as the proxy takes them.
pub(crate) fn gateways(plans: impl IntoIterator<Item = Plan>) -> OrdMap<Origin, Arc<Gateway>> {
    let built = plans.into_iter().map(Plan::build);
    built.map(|gateway| (gateway.origin.clone(), gateway)).collect()
}

pub(crate) fn prefix(path: &str) -> Match {
    with_path(PathMatch::Prefix(path.into()))
}

pub(crate) fn exact(path: &str) -> Match {
    with_path(PathMatch::Exact(path.into()))
}

pub(crate) fn pattern(path: &str) -> Match {
    with_path(PathMatch::Pattern(Pattern::new(path).unwrap()))
}

fn with_path(path: PathMatch) -> Match {
    Match {
        path,
        ..Match::everything()
    }
}

/// The match, and a header besides.
pub(crate) fn and_header(mut matches: Match, name: &str, value: &str) -> Match {
    let field = Field {
        name: name.into(),
        value: TextMatch::Exact(value.into()),
    };
    matches.headers = matches.headers.iter().cloned().chain([field]).collect();
    matches
}

/// A rule without backends.
pub(crate) fn rule() -> Rule {
    Rule {
        origin: Origin::new("HTTPRoute/test"),
        name: None,
        filters: None,
        backends: Box::new([]),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
    }
}

/// A rule to one cluster.
pub(crate) fn to(cluster: &str) -> Rule {
    split(&[(cluster, 1)])
}

/// A rule to several clusters, by weight.
pub(crate) fn split(shares: &[(&str, u32)]) -> Rule {
    let backends = shares.iter().map(|(cluster, weight)| Backend {
        weight: *weight,
        target: Target::Cluster(ClusterId::new(*cluster)),
        filters: None,
    });
    Rule {
        backends: backends.collect(),
        ..rule()
    }
}

/// Small changes to a rule.
pub(crate) trait RuleChanges: Sized {
    fn filters(self, change: impl FnOnce(&mut Filters)) -> Self;
    fn origin(self, origin: &str) -> Self;
    fn request_timeout(self, timeout: Duration) -> Self;
    fn backend_timeout(self, timeout: Duration) -> Self;
    fn unresolved(self, weight: u32, why: Unresolved) -> Self;
    /// Changes the filters of the first backend.
    fn backend_filters(self, change: impl FnOnce(&mut Filters)) -> Self;
    /// Sends a share of the requests to this cluster as well.
    fn mirror(self, cluster: &str, numerator: u32, denominator: u32) -> Self;
    fn retry(self, codes: &[u16], attempts: u32, backoff: Duration) -> Self;
}

impl RuleChanges for Rule {
    fn filters(mut self, change: impl FnOnce(&mut Filters)) -> Self {
        change(self.filters.get_or_insert_default());
        self
    }

    fn origin(mut self, origin: &str) -> Self {
        self.origin = Origin::new(origin);
        self
    }

    fn backend_filters(mut self, change: impl FnOnce(&mut Filters)) -> Self {
        change(self.backends[0].filters.get_or_insert_default());
        self
    }

    fn mirror(self, cluster: &str, numerator: u32, denominator: u32) -> Self {
        self.filters(|filters| {
            let mirror = mirror(cluster, numerator, denominator);
            filters.mirrors = filters.mirrors.iter().cloned().chain([mirror]).collect();
        })
    }

    fn retry(mut self, codes: &[u16], attempts: u32, backoff: Duration) -> Self {
        self.retry = Some(Retry {
            codes: codes.into(),
            attempts,
            backoff,
        });
        self
    }

    fn request_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.request = Some(timeout);
        self
    }

    fn backend_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.backend_request = Some(timeout);
        self
    }

    fn unresolved(mut self, weight: u32, why: Unresolved) -> Self {
        let share = Backend {
            weight,
            target: Target::Unresolved(why),
            filters: None,
        };
        self.backends = self.backends.iter().cloned().chain([share]).collect();
        self
    }
}

/// A mirror that gets this share of the requests.
pub(crate) fn mirror(cluster: &str, numerator: u32, denominator: u32) -> Mirror {
    Mirror {
        target: Target::Cluster(ClusterId::new(cluster)),
        share: Share { numerator, denominator },
    }
}

/// A redirect that changes nothing but what is filled in afterwards.
pub(crate) fn redirect(status: u16) -> Redirect {
    Redirect {
        scheme: None,
        hostname: None,
        port: None,
        path: None,
        status,
    }
}

pub(crate) fn rewrite(hostname: Option<&str>, path: Option<PathChange>) -> Rewrite {
    Rewrite {
        hostname: hostname.map(Into::into),
        path,
    }
}

pub(crate) fn headers(set: &[(&str, &str)], add: &[(&str, &str)], remove: &[&str]) -> HeaderChange {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    };
    HeaderChange {
        set: pairs(set),
        add: pairs(add),
        remove: remove.iter().map(|name| (*name).into()).collect(),
    }
}

/// How often each value occurs.
pub(crate) fn counts<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}
