//! `GatewayConfig`: how the Gateways of a class, or one Gateway, are run.
//!
//! Named by a GatewayClass's or a Gateway's `parametersRef`. Every field is optional; what is left out keeps the
//! default that its documentation states. The planner turns it into IR settings; nothing else reads it.

#![expect(unreachable_pub, reason = "the derive checks a copy of the spec in a private module")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// In CEL what `validate` says of files: a tunnel hands connections to the proxy inside this process.
const TUNNELS: &str =
    "!(has(self.entry) && self.entry in ['SSH', 'Portal'] && has(self.dataPlane)) || self.dataPlane == 'Builtin'";

/// How Gateways are run: data plane, entry, and the settings of each.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "gatewright.dev",
    version = "v1alpha1",
    kind = "GatewayConfig",
    plural = "gatewayconfigs",
    namespaced,
    category = "gatewright",
    doc = "How Gateways are run. Named by a GatewayClass's or a Gateway's `parametersRef`; every field is optional.",
    printcolumn = r#"{"name":"Data plane","type":"string","jsonPath":".spec.dataPlane"}"#,
    printcolumn = r#"{"name":"Entry","type":"string","jsonPath":".spec.entry"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq"
)]
#[x_kube(validation = Rule::new(TUNNELS).message("SSH and Portal need dataPlane Builtin").field_path(".entry"))]
#[serde(rename_all = "camelCase")]
pub struct GatewayConfigSpec {
    /// Which data plane serves the traffic. Default: `Builtin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_plane: Option<DataPlane>,
    /// How traffic reaches the data plane. Default: `Host` with files, `LoadBalancer` in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// What a Gateway's own GatewayConfig may override when this one is named by its class. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_overrides: Option<Vec<Section>>,
    /// Settings of `entry: Host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostEntry>,
    /// Settings of `entry: LoadBalancer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancerEntry>,
    /// How requests are read and limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSettings>,
    /// How connections are kept that are routed as a whole: those of TLSRoutes and TCPRoutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpSettings>,
    /// How datagrams are kept together: those of UDPRoutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpSettings>,
    /// Who says by the PROXY protocol who a client is, and who is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<ProxyProtocol>,
    /// How backends are reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamSettings>,
}

/// A data plane.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
pub enum DataPlane {
    /// The proxy inside this binary.
    Builtin,
    /// Envoy, fed over xDS.
    Envoy,
    /// agentgateway, fed over xDS.
    Agentgateway,
}

/// A way in.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
pub enum Entry {
    /// The listeners' ports on addresses of this host.
    Host,
    /// A Service of the Gateway's own, of type LoadBalancer unless `loadBalancer` says otherwise. Needs a cluster.
    LoadBalancer,
    /// Reverse forwards of an SSH server.
    #[serde(rename = "SSH")]
    Ssh,
    /// Leases of a Portal relay.
    Portal,
}

/// A part of this object that a Gateway's own config may be allowed to override.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Section {
    /// `dataPlane`.
    DataPlane,
    /// `entry`, `host` and `loadBalancer`.
    Entry,
    /// `http`.
    Http,
    /// `tcp`.
    Tcp,
    /// `udp`.
    Udp,
    /// `proxyProtocol`.
    ProxyProtocol,
    /// `upstream`.
    Upstream,
}

/// Settings of `entry: Host`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostEntry {
    /// The pool of addresses. A Gateway takes the first one on which all its ports are free. Default: `0.0.0.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
}

/// Settings of `entry: LoadBalancer`: what the Service of a Gateway is like.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancerEntry {
    /// The type of the Service. Default: `LoadBalancer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_type: Option<ServiceType>,
    /// Annotations of the Service, most of all for the load balancer's controller. They win over those of a Gateway's
    /// `spec.infrastructure`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Whether nodes hand connections on to other nodes. Default: `Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<ExternalTrafficPolicy>,
    /// Which load balancer is asked for an address. Kubernetes lets nobody change it on a Service that exists.
    /// Default: the cluster's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer_class: Option<String>,
}

/// The type of a Gateway's Service.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, schemars::JsonSchema)]
pub enum ServiceType {
    /// An address from outside, given by a load balancer.
    #[default]
    LoadBalancer,
    /// A port on every node.
    NodePort,
    /// An address inside the cluster.
    #[serde(rename = "ClusterIP")]
    ClusterIp,
}

/// Whether nodes hand connections on to other nodes.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
pub enum ExternalTrafficPolicy {
    /// Any node takes connections; the client's address may be lost.
    Cluster,
    /// Only nodes that run a replica take connections; the client's address is kept.
    Local,
}

/// How requests are read and limited.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSettings {
    /// What happens to a path with `%2f` or `%5c`. Default: `Reject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escaped_slashes: Option<EscapedSlashes>,
    /// What happens to a request with a header name that has an underscore. Default: `Reject`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underscores_in_headers: Option<Underscores>,
    /// Networks (CIDR) whose `X-Forwarded-*` headers are believed. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_proxies: Option<Vec<String>>,
    /// Largest request head in bytes, 1024 to 1048576. Default: 65536.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_header_bytes: Option<u32>,
    /// How long a client may take to send a request head. Default: `10s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_timeout: Option<String>,
    /// How long an idle connection is kept. Default: `300s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
    /// How long open connections may go on after their listener is gone. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<String>,
    /// How long a request or response body may stand still. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_timeout: Option<String>,
    /// Most connections a listener port holds at once. Default: 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Most requests that a client may have open at once on one HTTP/2 connection. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_streams: Option<u32>,
    /// An HTTP/2 client that cancels most of its requests as soon as it has begun them is cut off after so many. Default: 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hasty_resets: Option<u32>,
}

/// What happens to escaped slashes in a path.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
pub enum EscapedSlashes {
    /// The request is refused with 400.
    Reject,
    /// They are kept as they are and match literally.
    Keep,
}

/// What happens to header names with underscores.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
pub enum Underscores {
    /// The request is refused with 400.
    Reject,
    /// They pass.
    Allow,
}

/// How connections are kept that are routed as a whole.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpSettings {
    /// How long a connection may stand still in both directions before it is closed. Default: `1h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
}

/// How datagrams are kept together.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UdpSettings {
    /// How long a client keeps its backend without a datagram in either direction. Default: `1m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
}

/// Who says by the PROXY protocol who a client is, and who is told.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxyProtocol {
    /// Networks (CIDR) of load balancers and the like whose connections begin with a header, of version 1 or 2, on every
    /// listener but those of UDP. From there a connection without one is closed; from elsewhere a header is not read.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_from: Option<Vec<String>>,
    /// The header that backends of TLSRoutes and TCPRoutes get at the beginning of each connection. Default: `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send: Option<SentHeader>,
}

/// A header of the PROXY protocol.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
pub enum SentHeader {
    /// No header.
    None,
    /// Version 1, a line of text.
    V1,
    /// Version 2, binary.
    V2,
}

/// How backends are reached.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamSettings {
    /// How long a connection to a backend may take to open. Default: `5s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<String>,
    /// How long an unused connection to a backend is kept. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
    /// Most unused connections kept per endpoint and worker. Default: 128.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_idle: Option<u32>,
}
