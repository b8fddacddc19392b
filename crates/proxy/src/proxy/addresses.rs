//! Which gateway has which address, and which of its listeners can be served there.
//!
//! Pure bookkeeping: sockets are opened and tables swapped elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use gatewright_ir::{Gateway, Listener, Origin, Protocol};

use crate::worker::BindAddress;

/// Who wants an address.
#[derive(Debug, Default)]
pub(super) struct Claims(BTreeMap<BindAddress, Claim>);

/// The gateways that want one address.
#[derive(Debug, Default)]
struct Claim {
    gateways: BTreeSet<Origin>,
    /// The one that has it. It keeps it for as long as it wants it.
    owner: Option<Origin>,
}

impl Claims {
    /// Notes which addresses a gateway wants now.
    pub(super) fn set(&mut self, gateway: &Origin, old: &BTreeSet<BindAddress>, new: &BTreeSet<BindAddress>) {
        for address in old.difference(new) {
            if let Some(claim) = self.0.get_mut(address) {
                claim.gateways.remove(gateway);
                if claim.gateways.is_empty() {
                    self.0.remove(address);
                }
            }
        }
        for address in new {
            self.0.entry(*address).or_default().gateways.insert(gateway.clone());
        }
    }

    /// Decides who has an address. The planner lets only one gateway want each; should it be several, one keeps it.
    pub(super) fn settle(&mut self, address: &BindAddress) {
        if let Some(claim) = self.0.get_mut(address) {
            let keeps = claim.owner.as_ref().is_some_and(|owner| claim.gateways.contains(owner));
            if !keeps {
                claim.owner = claim.gateways.first().cloned();
            }
        }
    }

    /// The gateway that has an address.
    pub(super) fn owner(&self, address: &BindAddress) -> Option<&Origin> {
        self.0.get(address)?.owner.as_ref()
    }

    /// All gateways that want an address.
    pub(super) fn gateways(&self, address: &BindAddress) -> impl Iterator<Item = &Origin> {
        self.0.get(address).into_iter().flat_map(|claim| &claim.gateways)
    }
}

/// The addresses that a gateway wants.
pub(super) fn addresses(gateway: &Gateway) -> BTreeSet<BindAddress> {
    gateway
        .listeners
        .iter()
        .flat_map(|listener| of_listener(listener))
        .collect()
}

/// The addresses that a listener wants.
pub(super) fn of_listener(listener: &Listener) -> impl Iterator<Item = BindAddress> {
    let (port, transport) = (listener.bind, listener.protocol.transport());
    listener.addresses.iter().map(move |address| BindAddress {
        socket: SocketAddr::new(*address, port),
        transport,
    })
}

/// The listeners that a gateway has on an address.
pub(super) fn on_address<'a>(gateway: &'a Gateway, address: &BindAddress) -> impl Iterator<Item = &'a Arc<Listener>> {
    gateway
        .listeners
        .iter()
        .filter(move |listener| of_listener(listener).any(|wanted| wanted == *address))
}

/// Whether a listener can be told apart from the first on that address.
pub(super) fn fits(listener: &Listener, gateway: &Gateway, address: &BindAddress) -> bool {
    let Some(first) = on_address(gateway, address).next() else {
        return true;
    };
    match first.protocol {
        Protocol::Http => listener.protocol == Protocol::Http,
        // By the names that clients ask for.
        Protocol::Https(_) | Protocol::Tls(_) | Protocol::Passthrough => listener.protocol.begins_with_tls(),
        // By nothing at all.
        Protocol::Tcp | Protocol::Udp => listener.origin == first.origin,
    }
}
