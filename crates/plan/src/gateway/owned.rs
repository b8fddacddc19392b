//! The objects that are made for a Gateway which is reached through a Service of its own.
//!
//! A Service without selector, and for each of its ports and each family of addresses an EndpointSlice that lists all
//! replicas, once the Service is there. What is not planned here is deleted; a Service is therefore kept as it is while
//! nobody knows what it should be like, for with it would go the address that clients know.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use gatewright_api::{Kind, ObjectName, config::ServiceType};
use gatewright_ir::{ListenerState, Text};
use gatewright_world::{
    Key, Replica, World,
    desired::{
        Owned, OwnedBody, OwnedKind, OwnedName,
        owned::{
            EntryPort, Family, GATEWAY_NAME, MANAGED_BY, MANAGER, SERVICE_NAME, SLICE_MANAGED_BY, ServiceBody,
            SliceBody, SliceEndpoint, gateway_label, service_name, slice_name,
        },
    },
};

use super::{Assignment, Balancer, Entry, Frame};

/// The objects of a Gateway.
pub(crate) fn owned(world: &World, key: &Key, frame: &Frame, assignment: Option<&Assignment>) -> Vec<Owned> {
    let maker = Maker { key, frame };
    let ports: Vec<EntryPort> = assignment
        .and_then(|assignment| assignment.targets.as_ref())
        .into_iter()
        .flatten()
        .map(|(port, target)| EntryPort {
            port: *port,
            target: *target,
        })
        .collect();
    match &frame.entry {
        Entry::Host => Vec::new(),
        Entry::LoadBalancer(balancer) if frame.is_served() && !ports.is_empty() => {
            let mut made = vec![maker.service(balancer, &ports)];
            // A slice belongs to whatever Service has the name: one of somebody else must not get our endpoints.
            if world.entry(key).is_some() {
                made.extend(maker.slices(world, &ports));
            }
            made
        }
        Entry::LoadBalancer(_) | Entry::Unknown => kept(world, key).into_iter().collect(),
    }
}

/// The Service of a Gateway as it is, if there is one.
pub(crate) fn kept(world: &World, key: &Key) -> Option<Owned> {
    world.entry(key)?;
    Some(Owned {
        name: OwnedName {
            kind: OwnedKind::Service,
            namespace: key.namespace.clone(),
            name: service_name(&key.name).into(),
        },
        owner: owner(key),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        body: OwnedBody::Kept,
    })
}

fn owner(key: &Key) -> ObjectName {
    ObjectName {
        kind: Kind::Gateway,
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

struct Maker<'a> {
    key: &'a Key,
    frame: &'a Frame,
}

impl Maker<'_> {
    fn object(&self, kind: OwnedKind, name: Option<String>, body: OwnedBody) -> Owned {
        let Key {
            namespace,
            name: gateway,
        } = self.key;
        let infrastructure = self.frame.infrastructure.as_deref().cloned().unwrap_or_default();
        let mut labels = infrastructure.labels;
        // Ours come last: nobody may say that these objects are somebody else's.
        labels.insert(MANAGED_BY.into(), MANAGER.into());
        labels.insert(GATEWAY_NAME.into(), gateway_label(gateway).into());
        Owned {
            name: OwnedName {
                kind,
                namespace: namespace.clone(),
                name: name.unwrap_or_else(|| service_name(gateway)).into(),
            },
            owner: owner(self.key),
            labels,
            annotations: infrastructure.annotations,
            body,
        }
    }

    fn service(&self, balancer: &Balancer, ports: &[EntryPort]) -> Owned {
        let Balancer {
            service_type,
            annotations,
            external_traffic_policy,
            class,
        } = balancer;
        let is_balanced = *service_type == ServiceType::LoadBalancer;
        let body = ServiceBody {
            kind: *service_type,
            ports: ports.to_vec(),
            // What Kubernetes takes only from some types is left out on the others.
            external_traffic_policy: external_traffic_policy.filter(|_| *service_type != ServiceType::ClusterIp),
            load_balancer_class: class.clone().filter(|_| is_balanced),
            load_balancer_ip: self.frame.fixed.first().copied().filter(|_| is_balanced),
        };
        let mut service = self.object(OwnedKind::Service, None, OwnedBody::Service(body));
        // What the class states is not for the Gateway to change, unless the class allows it.
        service.annotations.extend(annotations.clone());
        service
    }

    fn slices(&self, world: &World, ports: &[EntryPort]) -> Vec<Owned> {
        let replicas: Vec<&Replica> = world.replicas().map(|(_, replica)| replica).collect();
        let addresses = replicas.iter().flat_map(|replica| &replica.addresses);
        let families: BTreeSet<Family> = addresses
            .filter(|address| is_reachable(**address))
            .map(|address| Family::of(*address))
            .collect();
        let mut slices = Vec::new();
        for port in ports {
            for family in &families {
                slices.push(self.slice(&replicas, *port, *family));
            }
        }
        slices
    }

    fn slice(&self, replicas: &[&Replica], port: EntryPort, family: Family) -> Owned {
        // By address: should two replicas claim one, the one that listens is there now.
        let mut endpoints: BTreeMap<IpAddr, SliceEndpoint> = BTreeMap::new();
        for replica in replicas {
            let own = replica.addresses.iter().copied();
            for address in own.filter(|own| is_reachable(*own) && Family::of(*own) == family) {
                let endpoint = SliceEndpoint {
                    address,
                    node: replica.node.clone(),
                    is_listening: self.listens(replica, port, family),
                    is_leaving: replica.is_leaving,
                };
                let known = endpoints.entry(address).or_insert_with(|| endpoint.clone());
                if endpoint.is_listening && !known.is_listening {
                    *known = endpoint;
                }
            }
        }
        let body = SliceBody {
            family,
            port,
            endpoints: endpoints.into_values().collect(),
        };
        let gateway = &self.key.name;
        let name = slice_name(gateway, port.port, family);
        let mut slice = self.object(OwnedKind::EndpointSlice, Some(name), OwnedBody::EndpointSlice(body));
        let (manager, value) = SLICE_MANAGED_BY;
        slice.labels.insert(Text::from(manager), Text::from(value));
        slice.labels.insert(SERVICE_NAME.into(), service_name(gateway).into());
        slice
    }

    /// Whether a replica accepts connections for a port of this Gateway. Of whatever generation: an open socket serves.
    fn listens(&self, replica: &Replica, port: EntryPort, family: Family) -> bool {
        let is_meant = |bound: &SocketAddr| bound.port() == port.target && Family::of(bound.ip()) == family;
        self.frame.listeners_on(port.port).any(|listener| {
            let fact = replica.facts.get(&listener.origin);
            fact.is_some_and(
                |fact| matches!(&fact.state, ListenerState::Listening(bound) if bound.iter().any(is_meant)),
            )
        })
    }
}

/// Whether others can reach an address, and an API server takes it as that of an endpoint.
pub(super) fn is_reachable(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(is_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

#[cfg(test)]
mod tests;
