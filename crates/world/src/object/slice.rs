//! EndpointSlice, reduced to addresses that accept requests, and where they are.

use std::net::IpAddr;

use gatewright_api as api;
use gatewright_ir::{Text, Transport};

use crate::{Interner, Key, desired::owned::SERVICE_NAME};

/// Addresses that answer, and the ports they answer on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSlice {
    /// The Service it belongs to, if any.
    pub service: Option<Key>,
    /// The ports.
    pub ports: Box<[SlicePort]>,
    /// The endpoints that are ready, and those that are about to leave and still answer. Slices of type FQDN have none:
    /// Kubernetes gives them no meaning for routing.
    pub endpoints: Box<[SliceEndpoint]>,
}

/// An endpoint of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceEndpoint {
    /// Its address.
    pub address: IpAddr,
    /// Whether it is about to leave: then it is used where none is ready.
    pub is_leaving: bool,
    /// The node it runs on.
    pub node: Option<Text>,
    /// Whom it is meant for, if that is said.
    pub hints: Option<Box<Hints>>,
}

/// Whom an endpoint is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    /// Those in these zones.
    pub zones: Box<[Text]>,
    /// Those on these nodes.
    pub nodes: Box<[Text]>,
}

/// A port of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePort {
    /// The name of the Service port it stands for; empty when it has none.
    pub name: Text,
    /// What carries it.
    pub transport: Transport,
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
        let ports = ports.filter_map(|port| {
            Some(SlicePort {
                name: names.text(port.name.as_deref().unwrap_or_default()),
                transport: Transport::parse(port.protocol.as_deref())?,
                port: port.port.and_then(|port| u16::try_from(port).ok()),
            })
        });
        let ports = ports.collect();
        let mut endpoints = Vec::new();
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.clone().unwrap_or_default();
            // An unset `ready` means ready, as the API says.
            let is_ready = conditions.ready.unwrap_or(true);
            let still_answers = conditions.serving == Some(true) && conditions.terminating == Some(true);
            if !is_ready && !still_answers {
                continue;
            }
            let node = names.optional(endpoint.node_name.as_deref());
            let hints = endpoint.hints.as_ref().map(|hints| {
                let zones = hints.for_zones.iter().flatten();
                let nodes = hints.for_nodes.iter().flatten();
                Box::new(Hints {
                    zones: zones.map(|zone| names.text(&zone.name)).collect(),
                    nodes: nodes.map(|node| names.text(&node.name)).collect(),
                })
            });
            let addresses = endpoint.addresses.iter().filter_map(|address| address.parse().ok());
            endpoints.extend(addresses.map(|address| SliceEndpoint {
                address,
                is_leaving: !is_ready,
                node: node.clone(),
                hints: hints.clone(),
            }));
        }
        Self {
            service,
            ports,
            endpoints: endpoints.into(),
        }
    }
}

#[cfg(test)]
mod tests;
