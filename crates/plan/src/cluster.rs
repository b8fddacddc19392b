//! Clusters: the endpoints behind a Service port, and how they are spoken to.

mod endpoints;
mod security;

use gatewright_api::Kind;
use gatewright_ir::{Cluster, ClusterId, Endpoint, Endpoints, Port, Security, Text, UpstreamProtocol};
use gatewright_world::{
    Key, World,
    object::{AppProtocol, Service, ServicePort},
    origin,
    resolve::Granted,
};

pub(crate) use security::policy_status;

use crate::{PlanSettings, policy};

/// The id of the cluster of a Service port. Injective: no part can hold a slash or a colon. The protocol is part of it,
/// for one port may be spoken to in two ways: as HTTP/1 by one route, and as gRPC by another.
pub(crate) fn id(service: &Key, port: u16, protocol: UpstreamProtocol) -> ClusterId {
    ClusterId::new(match protocol {
        UpstreamProtocol::Http1 => format!("{service}:{port}"),
        UpstreamProtocol::Http2 => format!("{service}:{port}/h2c"),
        UpstreamProtocol::Tcp => format!("{service}:{port}/tcp"),
        UpstreamProtocol::Udp => format!("{service}:{port}/udp"),
    })
}

/// What is sent, as far as it says how to speak to a backend which does not say it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// HTTP of any kind.
    Http,
    /// gRPC, which needs HTTP/2.
    Grpc,
    /// Connections as a whole.
    Stream,
    /// Datagrams.
    Datagram,
}

impl Traffic {
    /// The port of a Service that is meant by a number.
    pub(crate) fn port(self, number: u16) -> Port {
        match self {
            Self::Http | Self::Grpc | Self::Stream => Port::tcp(number),
            Self::Datagram => Port::udp(number),
        }
    }
}

/// Why a Service port cannot be spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unspoken {
    /// It speaks this, which is not supported for what is sent.
    Protocol(Text),
    /// It speaks HTTPS, and no policy says how it is known.
    NoPolicy,
}

/// How to speak to a Service port.
pub(crate) fn protocol(
    world: &World,
    service: &Key,
    port: Option<&ServicePort>,
    traffic: Traffic,
) -> Result<UpstreamProtocol, Unspoken> {
    let declared = port.map(|port| &port.protocol);
    match (declared, traffic) {
        (_, Traffic::Stream) => Ok(UpstreamProtocol::Tcp),
        (_, Traffic::Datagram) => Ok(UpstreamProtocol::Udp),
        (Some(AppProtocol::Unsupported(name)), _) => Err(Unspoken::Protocol(name.clone())),
        (Some(AppProtocol::WebSocket), Traffic::Grpc) => Err(Unspoken::Protocol("kubernetes.io/ws".into())),
        // In clear text it would be refused, and to believe whoever answers is no TLS.
        (Some(AppProtocol::Https), _) if security::policy(world, service, port).is_none() => Err(Unspoken::NoPolicy),
        (Some(AppProtocol::H2c), _) | (_, Traffic::Grpc) => Ok(UpstreamProtocol::Http2),
        (None | Some(AppProtocol::Http | AppProtocol::WebSocket | AppProtocol::Https), Traffic::Http) => {
            Ok(UpstreamProtocol::Http1)
        }
    }
}

/// Builds the cluster of a Service port; none if the Service does not have the port, or is gone.
pub(crate) fn build(
    world: &World,
    settings: &PlanSettings,
    service: &Granted<Service>,
    number: u16,
    protocol: UpstreamProtocol,
) -> Option<Cluster> {
    let declared = world.read(service)?;
    let port = declared.port(match protocol {
        UpstreamProtocol::Http1 | UpstreamProtocol::Http2 | UpstreamProtocol::Tcp => Port::tcp(number),
        UpstreamProtocol::Udp => Port::udp(number),
    });
    let endpoints = match (&declared.external_name, port) {
        // A Service that stands for a name needs no ports of its own.
        (Some(name), _) => Endpoints::Named {
            name: name.clone(),
            port: number,
            allow_local: settings.allow_local_backends,
        },
        (None, None) => return None,
        (None, Some(port)) => {
            let chosen = endpoints::choose(world, settings, service, declared, port);
            let mut endpoints: Vec<Endpoint> = chosen.into_iter().map(|address| Endpoint { address }).collect();
            // Slices come in no order, and one address may stand in two of them while they are rebalanced.
            endpoints.sort_unstable();
            endpoints.dedup();
            Endpoints::Known(endpoints)
        }
    };
    Some(Cluster {
        origin: origin::object(Kind::Service, service.key()),
        protocol,
        security: match protocol {
            UpstreamProtocol::Http1 | UpstreamProtocol::Http2 | UpstreamProtocol::Tcp => {
                security::of(world, service.key(), port)
            }
            // TLS has no say over datagrams.
            UpstreamProtocol::Udp => Security::Clear,
        },
        endpoints,
        is_by_client: declared.is_by_client,
        retry_budget: policy::budget(world, service.key()),
    })
}
