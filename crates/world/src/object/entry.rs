//! The Service of a Gateway: one that we made, read back.
//!
//! Which target ports were given to it once, and which addresses the cluster gave it since. Both are facts about the
//! cluster that survive our restarts, so nothing of them is kept anywhere else.

use gatewright_api::{self as api, GATEWAY_GROUP, Kind};
use gatewright_ir::{Port, Text, Transport};

use crate::{
    Interner, Key,
    desired::{Address, owned::service_name},
};

/// The Service through which a Gateway is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryService {
    /// The Gateway.
    pub gateway: Key,
    /// Ports of the Gateway with the ports to which their connections go.
    pub targets: Box<[(Port, u16)]>,
    /// The addresses that it was given.
    pub addresses: Box<[Address]>,
}

impl EntryService {
    /// None unless it is the Service that we make for a Gateway: of the name that we give it, with the Gateway as controller.
    /// Not by our label, which a slip of somebody's hand can remove; the writer puts it back.
    pub(crate) fn reduce(service: &api::Service, names: &mut Interner) -> Option<Self> {
        let metadata = &service.metadata;
        let owner = metadata
            .owner_references
            .iter()
            .flatten()
            .find(|owner| owner.controller == Some(true))?;
        let group = owner.api_version.split_once('/').map(|(group, _)| group);
        let is_gateway = group == Some(GATEWAY_GROUP) && owner.kind == Kind::Gateway.as_str();
        if !is_gateway || metadata.name.as_deref() != Some(&service_name(&owner.name)) {
            return None;
        }
        let spec = service.spec.as_ref()?;
        let targets = spec.ports.iter().flatten().filter_map(|port| {
            let target = match port.target_port.as_ref()? {
                api::IntOrString::Int(target) => u16::try_from(*target).ok()?,
                api::IntOrString::String(_) => return None,
            };
            let number = u16::try_from(port.port).ok()?;
            let transport = Transport::parse(port.protocol.as_deref())?;
            Some((Port { number, transport }, target))
        });
        let mut targets: Vec<(Port, u16)> = targets.collect();
        targets.sort_unstable();
        Some(Self {
            gateway: names.key(metadata.namespace.as_deref().unwrap_or_default(), &owner.name),
            targets: targets.into(),
            addresses: addresses(service).into(),
        })
    }
}

fn addresses(service: &api::Service) -> Vec<Address> {
    let spec = service.spec.as_ref();
    let mut addresses = Vec::new();
    if spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer") {
        let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        for ingress in status.and_then(|status| status.ingress.as_ref()).into_iter().flatten() {
            let address = ingress.ip.as_deref().and_then(|address| address.parse().ok());
            addresses.extend(address.map(Address::Ip));
            let name = ingress.hostname.as_deref().filter(|name| !name.is_empty());
            addresses.extend(name.map(|name| Address::Hostname(Text::from(name))));
        }
    } else {
        // The address inside the cluster is the one at which the ports are those of the listeners, also where a port of
        // every node leads there. A headless Service says `None`.
        let declared = spec.and_then(|spec| spec.cluster_ips.as_ref()).into_iter().flatten();
        addresses.extend(declared.filter_map(|address| address.parse().ok()).map(Address::Ip));
    }
    // In the order in which the cluster tells them; it may tell one twice, once for each of two ports.
    let mut known = Vec::with_capacity(addresses.len());
    for address in addresses {
        if !known.contains(&address) {
            known.push(address);
        }
    }
    known
}

#[cfg(test)]
mod tests;
