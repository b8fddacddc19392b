//! Service, reduced.

use gatewright_api as api;
use gatewright_ir::{Port, Text, Transport};

use crate::Interner;

/// A Service, as far as it can be a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The ports. One number may be used by TCP and by UDP.
    pub ports: Box<[ServicePort]>,
    /// The name it stands for, if it is of type ExternalName.
    pub external_name: Option<Text>,
    /// Whether only endpoints on the node of whoever asks are meant (`internalTrafficPolicy: Local`).
    pub is_node_local: bool,
    /// Whether a client keeps its endpoint (`sessionAffinity: ClientIP`).
    pub is_by_client: bool,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name; empty when it has none. EndpointSlices name their ports by it.
    pub name: Text,
    /// Its number.
    pub port: u16,
    /// What carries it.
    pub transport: Transport,
    /// What is spoken there.
    pub protocol: AppProtocol,
}

/// What a Service port says it speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppProtocol {
    /// HTTP/1.1, also when nothing is said.
    Http,
    /// HTTP/1.1 whose connections may become WebSockets.
    WebSocket,
    /// HTTP/2 in clear text.
    H2c,
    /// HTTP over TLS, which needs a policy that says how the backend is known.
    Https,
    /// Something we do not speak to backends.
    Unsupported(Text),
}

impl Service {
    pub(crate) fn reduce(service: &api::Service, names: &mut Interner) -> Self {
        let spec = service.spec.clone().unwrap_or_default();
        let external_name = spec
            .external_name
            .filter(|_| spec.type_.as_deref() == Some("ExternalName"));
        let ports = spec.ports.unwrap_or_default();
        let ports = ports.into_iter().filter_map(|port| {
            Some(ServicePort {
                name: names.text(port.name.as_deref().unwrap_or_default()),
                port: u16::try_from(port.port).ok()?,
                transport: Transport::parse(port.protocol.as_deref())?,
                protocol: match port.app_protocol.as_deref() {
                    Some("kubernetes.io/h2c" | "grpc") => AppProtocol::H2c,
                    Some("kubernetes.io/ws") => AppProtocol::WebSocket,
                    Some("https" | "HTTPS" | "kubernetes.io/wss") => AppProtocol::Https,
                    Some("tls") => AppProtocol::Unsupported(names.text("tls")),
                    // `http`, and names of which Kubernetes says only that they mean something to
                    // someone.
                    _ => AppProtocol::Http,
                },
            })
        });
        let ports = ports.collect();
        Self {
            ports,
            external_name: names.optional(external_name.as_deref()),
            is_node_local: spec.internal_traffic_policy.as_deref() == Some("Local"),
            is_by_client: spec.session_affinity.as_deref() == Some("ClientIP"),
        }
    }

    /// The port with this number and transport.
    pub fn port(&self, wanted: Port) -> Option<&ServicePort> {
        let is_meant = |port: &&ServicePort| port.port == wanted.number && port.transport == wanted.transport;
        self.ports.iter().find(is_meant)
    }
}

#[cfg(test)]
mod tests;
