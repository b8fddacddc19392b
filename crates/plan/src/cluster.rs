//! Clusters: the endpoints behind a Service port.

use std::net::{IpAddr, SocketAddr};

use gatewright_api::Kind;
use gatewright_ir::{Cluster, ClusterId, Endpoint, Endpoints, Text, UpstreamProtocol};
use gatewright_world::{
    Key, World,
    object::{AppProtocol, EndpointSlice, Service},
    origin,
    resolve::Granted,
};

use crate::PlanSettings;

/// The id of the cluster of a Service port. Injective: no part can hold a slash or a colon. The protocol is part of it,
/// for one port may be spoken to in two ways: as HTTP/1 by one route, and as gRPC by another.
pub(crate) fn id(service: &Key, port: u16, protocol: UpstreamProtocol) -> ClusterId {
    ClusterId::new(match protocol {
        UpstreamProtocol::Http1 => format!("{service}:{port}"),
        UpstreamProtocol::H2c => format!("{service}:{port}/h2c"),
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
        (Some(AppProtocol::H2c), _) | (_, Traffic::Grpc) => Ok(UpstreamProtocol::H2c),
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
            let collect = |addresses: fn(&EndpointSlice) -> &[IpAddr]| {
                let mut endpoints = Vec::new();
                for slice in world.slices(service) {
                    let Some(target) = slice.ports.iter().find(|target| target.name == port.name) else {
                        continue;
                    };
                    let target = target.port.unwrap_or(number);
                    let addresses = addresses(slice).iter().copied();
                    let usable = addresses.filter(|address| settings.allow_local_backends || !is_local(*address));
                    endpoints.extend(usable.map(|address| Endpoint {
                        address: SocketAddr::new(address, target),
                    }));
                }
                // Slices come in no order, and one address may stand in two of them while they are rebalanced.
                endpoints.sort_unstable();
                endpoints.dedup();
                endpoints
            };
            let mut endpoints = collect(|slice| &slice.addresses);
            // Better one that is about to leave and still answers than none at all.
            if endpoints.is_empty() {
                endpoints = collect(|slice| &slice.leaving);
            }
            Endpoints::Known(endpoints)
        }
    };
    Some(Cluster {
        origin: origin::object(Kind::Service, service.key()),
        protocol,
        endpoints,
    })
}

/// Whether an address leads into the host of whoever connects to it.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local() || address.is_unspecified(),
    }
}
