//! Clusters: the endpoints behind a Service port.

use std::net::{IpAddr, SocketAddr};

use gatewright_api::Kind;
use gatewright_ir::{Cluster, ClusterId, Endpoint, Endpoints, UpstreamProtocol};
use gatewright_world::{
    Key, World,
    object::{AppProtocol, Service},
    origin,
    resolve::Granted,
};

use crate::PlanSettings;

/// The id of the cluster of a Service port. Injective: neither part can hold a slash or a colon.
pub(crate) fn id(service: &Key, port: u16) -> ClusterId {
    ClusterId::new(format!("{service}:{port}"))
}

/// Why a Service port cannot be a backend.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The Service does not have the port, or is gone.
    NoPort,
    /// It speaks something we do not.
    Protocol(String),
}

/// Builds the cluster of a Service port.
pub(crate) fn build(
    world: &World,
    settings: &PlanSettings,
    service: &Granted<Service>,
    number: u16,
) -> Result<Cluster, Unusable> {
    let declared = world.read(service).ok_or(Unusable::NoPort)?;
    let port = declared.port(number);
    let protocol = match port.map(|port| &port.protocol) {
        None | Some(AppProtocol::Http) => UpstreamProtocol::Http1,
        Some(AppProtocol::H2c) => UpstreamProtocol::H2c,
        Some(AppProtocol::Unsupported(name)) => return Err(Unusable::Protocol(name.to_string())),
    };
    let endpoints = match (&declared.external_name, port) {
        // A Service that stands for a name needs no ports of its own.
        (Some(name), _) => Endpoints::Named {
            name: name.clone(),
            port: number,
            allow_local: settings.allow_local_backends,
        },
        (None, None) => return Err(Unusable::NoPort),
        (None, Some(port)) => {
            let mut endpoints = Vec::new();
            for slice in world.slices(service) {
                let Some(target) = slice.ports.iter().find(|target| target.name == port.name) else {
                    continue;
                };
                let target = target.port.unwrap_or(number);
                let addresses = slice.addresses.iter().copied();
                let usable = addresses.filter(|address| settings.allow_local_backends || !is_local(*address));
                endpoints.extend(usable.map(|address| Endpoint {
                    address: SocketAddr::new(address, target),
                }));
            }
            // Slices come in no order, and one address may stand in two of them while they are rebalanced.
            endpoints.sort_unstable();
            endpoints.dedup();
            Endpoints::Known(endpoints)
        }
    };
    Ok(Cluster {
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
