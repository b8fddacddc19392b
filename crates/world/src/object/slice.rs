//! EndpointSlice, reduced to addresses that accept requests.

use std::net::IpAddr;

use gatewright_api as api;
use gatewright_ir::Text;

use crate::{Interner, Key, desired::owned::SERVICE_NAME};

/// Ready addresses and the ports they answer on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// The Service it belongs to, if any.
    pub service: Option<Key>,
    /// The ports.
    pub ports: Box<[SlicePort]>,
    /// Ready addresses. Slices of type FQDN have none: Kubernetes gives them no meaning for routing.
    pub addresses: Box<[IpAddr]>,
    /// Addresses that are about to leave and still answer: used where none is ready.
    pub leaving: Box<[IpAddr]>,
}

/// A port of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePort {
    /// The name of the Service port it stands for; empty when it has none.
    pub name: Text,
    /// The number; without one, the Service port's own.
    pub port: Option<u16>,
}

impl EndpointSlice {
    pub(crate) fn reduce(slice: &api::EndpointSlice, names: &mut Interner) -> Self {
        let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
        let service = slice
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(SERVICE_NAME));
        let service = service.map(|service| names.key(namespace, service));
        let ports = slice.ports.iter().flatten();
        let ports = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
        let ports = ports.map(|port| SlicePort {
            name: names.text(port.name.as_deref().unwrap_or_default()),
            port: port.port.and_then(|port| u16::try_from(port).ok()),
        });
        let ports = ports.collect();
        let is_ready = |endpoint: &api::discovery::Endpoint| {
            // An unset `ready` means ready, as the API says.
            let conditions = endpoint.conditions.as_ref();
            conditions.and_then(|conditions| conditions.ready).unwrap_or(true)
        };
        let is_leaving = |endpoint: &api::discovery::Endpoint| {
            let conditions = endpoint.conditions.as_ref();
            conditions
                .is_some_and(|conditions| conditions.serving == Some(true) && conditions.terminating == Some(true))
        };
        let collect = |is_meant: &dyn Fn(&api::discovery::Endpoint) -> bool| {
            let endpoints = slice.endpoints.iter().flatten().filter(|endpoint| is_meant(endpoint));
            let addresses = endpoints.flat_map(|endpoint| endpoint.addresses.iter());
            addresses.filter_map(|address| address.parse().ok()).collect()
        };
        Self {
            service,
            ports,
            addresses: collect(&is_ready),
            leaving: collect(&|endpoint| !is_ready(endpoint) && is_leaving(endpoint)),
        }
    }
}

#[cfg(test)]
mod tests;
