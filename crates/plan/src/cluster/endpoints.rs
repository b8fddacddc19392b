//! Which endpoints of a Service are used here: those that are ready, and of these the near ones where that is asked for.
//!
//! The rules are those by which Kubernetes itself chooses. What is near depends on this replica's node and zone; so data
//! planes of different replicas may use different endpoints, and what is shown of a route is the same everywhere.

use std::net::{IpAddr, SocketAddr};

use gatewright_ir::Text;
use gatewright_world::{
    World,
    object::{Hints, Service, ServicePort, SliceEndpoint},
    resolve::Granted,
};

use crate::PlanSettings;

type Candidate<'a> = (&'a SliceEndpoint, SocketAddr);

/// The addresses to use for a port of a Service, in no order.
pub(super) fn choose(
    world: &World,
    settings: &PlanSettings,
    service: &Granted<Service>,
    declared: &Service,
    port: &ServicePort,
) -> Vec<SocketAddr> {
    let node = world.local().node.as_ref();
    // Where nobody knows the node, as with files, there is only one.
    let only_on = node.filter(|_| declared.is_node_local);
    let (leaving, ready): (Vec<Candidate<'_>>, Vec<Candidate<'_>>) = world
        .slices(service)
        .filter_map(|slice| {
            Some((
                slice,
                slice
                    .ports
                    .iter()
                    .find(|target| target.name == port.name && target.transport == port.transport)?,
            ))
        })
        .flat_map(|(slice, target)| {
            let number = target.port.unwrap_or(port.port);
            let endpoints = slice.endpoints.iter();
            endpoints.map(move |endpoint| (endpoint, SocketAddr::new(endpoint.address, number)))
        })
        .filter(|(endpoint, _)| settings.allow_local_backends || !is_local(endpoint.address))
        .filter(|(endpoint, _)| only_on.is_none_or(|node| endpoint.node.as_ref() == Some(node)))
        .partition(|(endpoint, _)| endpoint.is_leaving);
    // Better one that is about to leave and still answers than none at all.
    let chosen = if ready.is_empty() {
        leaving
    } else if only_on.is_some() {
        ready
    } else {
        near(ready, node, settings.zone.as_ref())
    };
    chosen.into_iter().map(|(_, address)| address).collect()
}

/// The endpoints that are meant for this node, else those for this zone; all of them where one of them says nothing, or
/// none is meant for us: so Kubernetes says when not to trust hints.
fn near<'a>(candidates: Vec<Candidate<'a>>, node: Option<&Text>, zone: Option<&Text>) -> Vec<Candidate<'a>> {
    let hints = |place: Option<&Text>, named: fn(&Hints) -> &[Text]| -> Option<Vec<Candidate<'a>>> {
        let place = place?;
        let names = |endpoint: &'a SliceEndpoint| endpoint.hints.as_deref().map(named).unwrap_or_default();
        if candidates.iter().any(|(endpoint, _)| names(endpoint).is_empty()) {
            return None;
        }
        let meant = candidates.iter().copied();
        let meant: Vec<Candidate<'a>> = meant.filter(|(endpoint, _)| names(endpoint).contains(place)).collect();
        (!meant.is_empty()).then_some(meant)
    };
    hints(node, |hints| &hints.nodes)
        .or_else(|| hints(zone, |hints| &hints.zones))
        .unwrap_or(candidates)
}

/// Whether an address leads into the host of whoever connects to it.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local() || address.is_unspecified(),
    }
}

#[cfg(test)]
mod tests;
