//! Which Gateway binds which address.
//!
//! A Gateway that asks for addresses gets those or none; the others take the first address of their pool on which all
//! their ports are free, and keep the one they already listen on as long as they can. Older Gateways choose first: where two
//! want the same address and port, the younger one's listener stays closed and says why. A listener that cannot be served
//! takes no port from anyone. Gateways that are reached through a Service have no address to choose, only ports.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use ahash::AHashMap;
use gatewright_ir::{ListenerState, Port};
use gatewright_world::{Key, World};

use super::{Entry, Frame, targets};

/// What a Gateway may bind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// Its addresses.
    pub(crate) addresses: Vec<IpAddr>,
    /// Ports that another Gateway has there.
    pub(crate) taken: BTreeMap<Port, Key>,
    /// The ports to bind for its own, if it is reached through a Service.
    pub(crate) targets: Option<BTreeMap<Port, u16>>,
}

impl Assignment {
    /// The port to bind for a port of the Gateway, if there is one.
    pub(crate) fn bind(&self, port: Port) -> Option<u16> {
        match &self.targets {
            None => Some(port.number).filter(|_| !self.taken.contains_key(&port)),
            Some(targets) => targets.get(&port).copied(),
        }
    }
}

/// Assigns addresses to all frames that are served.
pub(crate) fn assign<'a>(
    world: &World,
    frames: impl Iterator<Item = (&'a Key, &'a Frame)>,
) -> BTreeMap<Key, Assignment> {
    let mut frames: Vec<_> = frames.filter(|(_, frame)| frame.is_served()).collect();
    frames.sort_by_key(|(key, frame)| (frame.created, *key));
    let is_balanced = |frame: &Frame| matches!(frame.entry, Entry::LoadBalancer(_));
    let (balanced, frames): (Vec<_>, Vec<_>) = frames.into_iter().partition(|(_, frame)| is_balanced(frame));
    let mut bound: AHashMap<Port, Vec<(IpAddr, &Key)>> = AHashMap::new();
    let mut assignments = BTreeMap::new();
    if !balanced.is_empty() {
        let declared = frames.iter().flat_map(|(_, frame)| frame.ports()).collect();
        let addresses = everywhere(world);
        for (key, targets) in targets::share_out(world, &balanced, declared) {
            assignments.insert(
                key,
                Assignment {
                    addresses: addresses.clone(),
                    targets: Some(targets),
                    ..Assignment::default()
                },
            );
        }
        // These are bound on every address of the host, so nobody else can have them.
        for (key, _) in &balanced {
            let targets = assignments.get(*key).and_then(|assignment| assignment.targets.as_ref());
            for (port, target) in targets.into_iter().flatten() {
                let taken = Port {
                    number: *target,
                    ..*port
                };
                bound
                    .entry(taken)
                    .or_default()
                    .extend(addresses.iter().map(|address| (*address, *key)));
            }
        }
    }
    for (key, frame) in frames {
        let mut ports: Vec<Port> = frame
            .listeners
            .iter()
            .filter(|listener| listener.is_servable())
            .filter_map(|one| one.declared.door())
            .collect();
        ports.sort_unstable();
        ports.dedup();
        let owner = |address: IpAddr, port: Port| {
            let owners = bound.get(&port).into_iter().flatten();
            owners
                .filter(|(other, _)| overlap(*other, address))
                .map(|(_, owner)| (*owner).clone())
                .next()
        };
        let is_free = |address: &IpAddr| ports.iter().all(|port| owner(*address, *port).is_none());
        let addresses = if frame.fixed.is_empty() {
            let current = current_address(world, frame).filter(|address| frame.pool.contains(address));
            let choice = current
                .filter(is_free)
                .or_else(|| frame.pool.iter().copied().find(is_free));
            choice
                .or(current)
                .or_else(|| frame.pool.first().copied())
                .into_iter()
                .collect()
        } else {
            frame.fixed.clone()
        };
        let mut taken = BTreeMap::new();
        for port in &ports {
            if let Some(owner) = addresses.iter().find_map(|address| owner(*address, *port)) {
                taken.insert(*port, owner);
            }
        }
        for port in ports.into_iter().filter(|port| !taken.contains_key(port)) {
            bound
                .entry(port)
                .or_default()
                .extend(addresses.iter().map(|address| (*address, key)));
        }
        let assignment = Assignment {
            addresses,
            taken,
            targets: None,
        };
        assignments.insert(key.clone(), assignment);
    }
    assignments
}

/// All addresses of this replica, of each family by which others reach it.
fn everywhere(world: &World) -> Vec<IpAddr> {
    let known = &world.local().addresses;
    let mut addresses = Vec::new();
    if known.is_empty() || known.iter().any(IpAddr::is_ipv4) {
        addresses.push(Ipv4Addr::UNSPECIFIED.into());
    }
    // Where there is no IPv6 its socket could not be opened, and nothing would be accepted.
    if known.iter().any(IpAddr::is_ipv6) {
        addresses.push(Ipv6Addr::UNSPECIFIED.into());
    }
    addresses
}

/// Whether two sockets on one port would be in each other's way. Those of different families never are: data planes open
/// `::` for IPv6 alone.
fn overlap(left: IpAddr, right: IpAddr) -> bool {
    left.is_ipv4() == right.is_ipv4() && (left == right || left.is_unspecified() || right.is_unspecified())
}

/// The address that a Gateway listens on now.
fn current_address(world: &World, frame: &Frame) -> Option<IpAddr> {
    frame
        .listeners
        .iter()
        .find_map(|listener| match &world.fact(&listener.origin)?.state {
            ListenerState::Listening(addresses) => addresses.first().map(std::net::SocketAddr::ip),
            ListenerState::Failed { .. } => None,
        })
}
