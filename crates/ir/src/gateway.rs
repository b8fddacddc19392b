//! The snapshot of one Gateway: its listeners, their hosts and entries, and the clusters these name.

use std::{fmt, net::IpAddr, sync::Arc};

use imbl::OrdMap;
use serde::Serialize;

use crate::{
    Certificate, Cluster, ClusterId, Entries, HostPattern, ListenerSettings, Origin, Termination, Text, Transport,
};

/// Everything a data plane must do for one Gateway.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gateway {
    /// The Gateway.
    pub origin: Origin,
    /// The generation of the Gateway's declaration; facts about its listeners carry it back.
    pub generation: i64,
    /// The listeners, in the order of their declaration. Only those that can be served are here.
    pub listeners: Vec<Arc<Listener>>,
    /// What it shows to backends that want to know over TLS who speaks to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<Arc<Certificate>>,
    /// The clusters that the entries name.
    pub clusters: OrdMap<ClusterId, Arc<Cluster>>,
}

/// One listener.
///
/// Listeners that share an address, a transport and a port share its sockets. A request belongs to the listener with the
/// most specific hostname that holds its host, and to that one alone; a TLS connection, by the name its client asks for.
#[derive(Clone, PartialEq, Serialize)]
pub struct Listener {
    /// The listener.
    pub origin: Origin,
    /// Its name, for labels.
    pub name: Text,
    /// The addresses to bind.
    pub addresses: Vec<IpAddr>,
    /// The port that clients connect to: redirects and forwarded headers name it.
    pub port: u16,
    /// The port to bind. The same, unless something in front hands connections on to another.
    pub bind: u16,
    /// What is spoken there.
    pub protocol: Protocol,
    /// The hosts it answers for.
    pub hostname: HostPattern,
    /// Limits and choices.
    pub settings: Arc<ListenerSettings>,
    /// What is routed, by host, the most specific first. When no entry of a host matches, the next host that holds the
    /// request's name is tried. A host may hold more names than the listener's hostname; those never come here.
    ///
    /// Where connections or datagrams are routed as a whole (`Tls`, `Tcp`, `Udp`), the entries have no conditions: the first
    /// one of the most specific host gets them, by the weights of its rule.
    pub hosts: OrdMap<HostPattern, Arc<Host>>,
}

/// What a listener speaks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Protocol {
    /// HTTP in clear text, HTTP/2 by prior knowledge included.
    Http,
    /// HTTP over TLS that is terminated here.
    Https(Termination),
    /// TLS that is terminated here, and what is in it goes to backends as it is.
    Tls(Termination),
    /// TLS that goes to backends as it is, by the name that its client asks for.
    Passthrough,
    /// Connections that go to backends as they are. The backend may speak first.
    Tcp,
    /// Datagrams; those of one client go to one backend until it has been silent for a while.
    Udp,
}

impl Protocol {
    /// What carries it.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Http | Self::Https(_) | Self::Tls(_) | Self::Passthrough | Self::Tcp => Transport::Tcp,
            Self::Udp => Transport::Udp,
        }
    }

    /// How TLS is terminated here, if it is.
    pub fn termination(&self) -> Option<&Termination> {
        match self {
            Self::Https(termination) | Self::Tls(termination) => Some(termination),
            Self::Http | Self::Passthrough | Self::Tcp | Self::Udp => None,
        }
    }

    /// Whether a connection begins with TLS, whoever terminates it.
    pub fn begins_with_tls(&self) -> bool {
        matches!(self, Self::Https(_) | Self::Tls(_) | Self::Passthrough)
    }
}

/// The entries of one host, in order of precedence.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// The first whose match is met wins.
    pub entries: Entries,
}

impl fmt::Debug for Listener {
    // Printing the whole routing table of a listener helps nobody; its size does.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Listener")
            .field("origin", &self.origin)
            .field("addresses", &self.addresses)
            .field("port", &self.port)
            .field("bind", &self.bind)
            .field("hostname", &self.hostname)
            .field("hosts", &self.hosts.len())
            .finish_non_exhaustive()
    }
}
