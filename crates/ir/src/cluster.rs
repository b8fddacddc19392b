//! A set of endpoints that answer for one backend.
//!
//! Rules name a cluster by its id and never hold its endpoints, so that a changed endpoint touches no rule.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{Origin, Text, UpstreamTls};

/// The name of a cluster, unique within a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ClusterId(Text);

impl ClusterId {
    /// Makes an id. Whoever calls this sees to it that different clusters get different ids.
    pub fn new(text: impl Into<Text>) -> Self {
        Self(text.into())
    }

    /// The id as text, for labels.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Where requests for one backend go.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cluster {
    /// The Service this comes from.
    pub origin: Origin,
    /// What the endpoints speak.
    pub protocol: UpstreamProtocol,
    /// Whether it is spoken to over TLS. Of no concern to a listener that passes TLS through.
    #[serde(skip_serializing_if = "Security::is_clear")]
    pub security: Security,
    /// The endpoints.
    pub endpoints: Endpoints,
    /// Whether the requests of one client go to one endpoint, as long as it is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_by_client: bool,
    /// How many of the requests to it may be retries; absent means no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_budget: Option<RetryBudget>,
}

/// How many requests may be retries. What exceeds it is answered with 503 instead of being tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RetryBudget {
    /// This share of the requests, in percent…
    pub percent: u8,
    /// …of the last so much time.
    pub interval: Duration,
    /// So many retries are allowed in any case…
    pub least: u32,
    /// …in so much time.
    pub least_interval: Duration,
}

/// What endpoints speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; in clear text with prior knowledge, over TLS by agreement.
    Http2,
    /// Whatever the client speaks, over a connection of its own.
    Tcp,
    /// Datagrams.
    Udp,
}

/// How a cluster's endpoints are protected, and known to be the right ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub enum Security {
    /// Not at all.
    #[default]
    Clear,
    /// By TLS.
    Tls(Arc<UpstreamTls>),
    /// By something that cannot be honoured: nothing is sent to them.
    Refused,
}

impl Security {
    fn is_clear(&self) -> bool {
        *self == Self::Clear
    }
}

/// The endpoints of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Endpoints {
    /// Known addresses; none means that requests are answered with 503.
    Known(Vec<Endpoint>),
    /// A name that the data plane resolves, and resolves again as its records expire.
    Named {
        /// The DNS name.
        name: Text,
        /// The port.
        port: u16,
        /// Whether loopback and link-local addresses count; elsewhere they would lead into the proxy's own host.
        allow_local: bool,
    },
}

/// One address that accepts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Endpoint {
    /// Where it listens.
    pub address: SocketAddr,
}
