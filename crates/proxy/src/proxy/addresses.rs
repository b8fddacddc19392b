//! Which gateway has which address, and which of its listeners can be served there.
//!
//! Pure bookkeeping: sockets are opened and tables swapped elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::discriminant,
    net::SocketAddr,
    sync::Arc,
};

use gatewright_ir::{Gateway, Listener, Origin};

/// Who wants an address.
#[derive(Debug, Default)]
pub(super) struct Claims(BTreeMap<SocketAddr, Claim>);

/// The gateways that want one address.
#[derive(Debug, Default)]
struct Claim {
    gateways: BTreeSet<Origin>,
    /// The one that has it. It keeps it for as long as it wants it.
    owner: Option<Origin>,
}

impl Claims {
    /// Notes which addresses a gateway wants now.
    pub(super) fn set(&mut self, gateway: &Origin, old: &BTreeSet<SocketAddr>, new: &BTreeSet<SocketAddr>) {
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
    pub(super) fn settle(&mut self, address: &SocketAddr) {
        if let Some(claim) = self.0.get_mut(address) {
            let keeps = claim.owner.as_ref().is_some_and(|owner| claim.gateways.contains(owner));
            if !keeps {
                claim.owner = claim.gateways.first().cloned();
            }
        }
    }

    /// The gateway that has an address.
    pub(super) fn owner(&self, address: &SocketAddr) -> Option<&Origin> {
        self.0.get(address)?.owner.as_ref()
    }

    /// All gateways that want an address.
    pub(super) fn gateways(&self, address: &SocketAddr) -> impl Iterator<Item = &Origin> {
        self.0.get(address).into_iter().flat_map(|claim| &claim.gateways)
    }
}

/// The addresses that a gateway wants.
pub(super) fn addresses(gateway: &Gateway) -> BTreeSet<SocketAddr> {
    gateway
        .listeners
        .iter()
        .flat_map(|listener| of_listener(listener))
        .collect()
}

/// The addresses that a listener wants.
pub(super) fn of_listener(listener: &Listener) -> impl Iterator<Item = SocketAddr> {
    let port = listener.bind;
    listener
        .addresses
        .iter()
        .map(move |address| SocketAddr::new(*address, port))
}

/// The listeners that a gateway has on an address.
pub(super) fn on_address<'a>(gateway: &'a Gateway, address: &SocketAddr) -> impl Iterator<Item = &'a Arc<Listener>> {
    gateway
        .listeners
        .iter()
        .filter(move |listener| of_listener(listener).any(|wanted| wanted == *address))
}

/// Whether a listener speaks what the first on that address speaks; others cannot be told apart from it.
pub(super) fn fits(listener: &Listener, gateway: &Gateway, address: &SocketAddr) -> bool {
    on_address(gateway, address)
        .next()
        .is_none_or(|first| discriminant(&first.protocol) == discriminant(&listener.protocol))
}
