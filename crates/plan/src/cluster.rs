//! Clusters: the endpoints behind a Service port.

mod endpoints;

use gatewright_api::Kind;
use gatewright_ir::{Cluster, ClusterId, Endpoint, Endpoints, Security, Text, UpstreamProtocol};
use gatewright_world::{
    Key, World,
    object::{AppProtocol, Service},
    origin,
    resolve::Granted,
};

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

/// What requests are, as far as it says how to speak to a backend which does not say it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// HTTP of any kind.
    Http,
    /// gRPC, which needs HTTP/2.
    Grpc,
}

/// How to speak to a Service port; the name of what it speaks if that cannot be.
pub(crate) fn protocol(declared: Option<&AppProtocol>, traffic: Traffic) -> Result<UpstreamProtocol, Text> {
    match (declared, traffic) {
        (Some(AppProtocol::Unsupported(name)), _) => Err(name.clone()),
        (Some(AppProtocol::WebSocket), Traffic::Grpc) => Err("kubernetes.io/ws".into()),
        (Some(AppProtocol::H2c), _) | (_, Traffic::Grpc) => Ok(UpstreamProtocol::Http2),
        (None | Some(AppProtocol::Http | AppProtocol::WebSocket), Traffic::Http) => Ok(UpstreamProtocol::Http1),
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
    let port = declared.port(number);
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
        security: Security::Clear,
        endpoints,
        is_by_client: declared.is_by_client,
        retry_budget: policy::budget(world, service.key()),
    })
}
