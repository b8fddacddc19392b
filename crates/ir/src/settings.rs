//! Limits and choices of a listener and of its backends, with safe defaults.
//!
//! Filled by the planner from a GatewayConfig; every field has the default that its documentation states there.

use std::time::Duration;

use serde::Serialize;

use crate::Network;

/// How connections, requests and datagrams are read and limited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListenerSettings {
    /// Keep `%2f` and `%5c` in paths instead of refusing them.
    pub keep_escaped_slashes: bool,
    /// Let header names with underscores pass instead of refusing them.
    pub allow_underscores: bool,
    /// Peers whose `X-Forwarded-*` and `Forwarded` headers are believed.
    pub trusted_proxies: Vec<Network>,
    /// Largest request head in bytes.
    pub max_header_bytes: u32,
    /// How long a client may take to send a request head.
    pub header_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// How long open connections may go on after their listener is gone.
    pub drain_timeout: Duration,
    /// How long a body may stand still.
    pub body_timeout: Duration,
    /// Most connections held at once, over all workers.
    pub max_connections: u32,
    /// Most requests that a client may have open at once on one HTTP/2 connection.
    pub max_streams: u32,
    /// An HTTP/2 client that cancels most of its requests as soon as it has begun them is cut off after so many.
    pub max_hasty_resets: u32,
    /// How long a connection that is routed as a whole may stand still in both directions.
    pub stream_idle_timeout: Duration,
    /// How long a client of a UDP listener keeps its backend without a datagram in either direction.
    pub datagram_idle_timeout: Duration,
    /// Peers whose connections begin with a PROXY protocol header, which says who the client is.
    pub proxy_fronts: Vec<Network>,
    /// Whether backends of connections that are routed as a whole are told who the client is.
    pub proxy_header: Option<ProxyHeader>,
    /// How backends are reached.
    pub upstream: UpstreamSettings,
}

/// A form of the PROXY protocol's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ProxyHeader {
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

/// How backends are reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpstreamSettings {
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
    /// Most unused connections kept per endpoint and worker.
    pub max_idle: u32,
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            keep_escaped_slashes: false,
            allow_underscores: false,
            trusted_proxies: Vec::new(),
            max_header_bytes: 65_536,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(5),
            drain_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_mins(1),
            max_connections: 10_000,
            max_streams: 100,
            max_hasty_resets: 500,
            stream_idle_timeout: Duration::from_hours(1),
            datagram_idle_timeout: Duration::from_mins(1),
            proxy_fronts: Vec::new(),
            proxy_header: None,
            upstream: UpstreamSettings::default(),
        }
    }
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_mins(1),
            max_idle: 128,
        }
    }
}
