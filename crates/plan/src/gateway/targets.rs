//! Which port each replica binds for which port of which Gateway that is reached through a Service.
//!
//! All these Gateways share the address of a replica, so their ports are shared out among them. A port is given once and
//! read back from the Gateway's Service, so that it stays over restarts and is the same on every replica. Where two
//! Services name the same port, someone has written into one of them: then the Gateway that listens there keeps it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use ahash::{AHashMap, AHashSet};
use gatewright_ir::{ListenerState, Port, Transport};
use gatewright_world::{Key, World};

use super::Frame;

/// The ports that are shared out: below those of nodes and those from which clients connect.
pub(super) const RANGE: Range<u16> = 20_000..30_000;

/// Shares out the ports. `frames` are those reached through a Service, older first; ports in `avoid` belong to others.
pub(super) fn share_out(
    world: &World,
    frames: &[(&Key, &Frame)],
    mut avoid: BTreeSet<Port>,
) -> BTreeMap<Key, BTreeMap<Port, u16>> {
    let mut shares = Shares::default();
    shares.take_written(world, frames);
    // Before a Service was written, or after somebody deleted it.
    for (index, (_, frame)) in frames.iter().enumerate() {
        for port in frame.ports() {
            if !shares.has(index, port) {
                for target in bound(world, frame, port) {
                    shares.give(index, port, target);
                }
            }
        }
    }
    // Not what a Service that is about to be changed or deleted still leads to: its clients would come to a stranger.
    for entry in world.entries() {
        let targets = entry.targets.iter();
        avoid.extend(targets.map(|(port, target)| at(*port, *target)));
    }
    // Each transport has numbers of its own; each is looked through once.
    for transport in [Transport::Tcp, Transport::Udp] {
        let number = |number| Port { number, transport };
        let fresh = RANGE.filter(|target| !avoid.contains(&number(*target)));
        // Better those than none.
        let mut free = fresh.chain(RANGE.filter(|target| avoid.contains(&number(*target))));
        for (index, (_, frame)) in frames.iter().enumerate() {
            for port in frame.ports().into_iter().filter(|port| port.transport == transport) {
                if !shares.has(index, port)
                    && let Some(target) = free.find(|target| !shares.used.contains(&number(*target)))
                {
                    shares.give(index, port, target);
                }
            }
        }
    }
    let keys = frames.iter().enumerate();
    keys.map(|(index, (key, _))| ((*key).clone(), shares.given.remove(&index).unwrap_or_default()))
        .collect()
}

/// The port with this number, of the same transport.
fn at(port: Port, number: u16) -> Port {
    Port { number, ..port }
}

/// What has been given so far, by the position of the Gateway.
#[derive(Default)]
struct Shares {
    given: AHashMap<usize, BTreeMap<Port, u16>>,
    used: AHashSet<Port>,
}

impl Shares {
    fn has(&self, index: usize, port: Port) -> bool {
        self.given.get(&index).is_some_and(|ports| ports.contains_key(&port))
    }

    /// Gives a target to a port, if the one is free and the other has none.
    fn give(&mut self, index: usize, port: Port, target: u16) {
        if !self.has(index, port) && RANGE.contains(&target) && self.used.insert(at(port, target)) {
            self.given.entry(index).or_default().insert(port, target);
        }
    }

    /// Gives what is written in the Services.
    fn take_written(&mut self, world: &World, frames: &[(&Key, &Frame)]) {
        let mut claims: BTreeMap<Port, Vec<(usize, Port)>> = BTreeMap::new();
        for (index, (key, frame)) in frames.iter().enumerate() {
            let Some(entry) = world.entry(key) else { continue };
            let ports = frame.ports();
            for (port, target) in entry.targets.iter().filter(|(port, _)| ports.contains(port)) {
                claims.entry(at(*port, *target)).or_default().push((index, *port));
            }
        }
        for (target, claimants) in claims {
            let listens = |index: usize| {
                let frame = frames.get(index).map(|(_, frame)| *frame);
                frame.is_some_and(|frame| is_bound(world, frame, target))
            };
            let choice = match claimants.as_slice() {
                [_] => claimants.first(),
                several => several.iter().find(|(index, _)| listens(*index)).or(several.first()),
            };
            if let Some((index, port)) = choice {
                self.give(*index, *port, target.number);
            }
        }
    }
}

/// Whether any replica listens on this port for the Gateway.
fn is_bound(world: &World, frame: &Frame, target: Port) -> bool {
    let ports = frame.ports().into_iter();
    let mut ports = ports.filter(|port| port.transport == target.transport);
    ports.any(|port| bound(world, frame, port).contains(&target.number))
}

/// The ports on which replicas listen for a port of a Gateway.
fn bound(world: &World, frame: &Frame, port: Port) -> BTreeSet<u16> {
    let facts = frame
        .listeners_on(port)
        .flat_map(|listener| world.instances(&listener.origin));
    facts
        .flat_map(|(_, fact)| match &fact.state {
            ListenerState::Listening(addresses) => addresses.as_slice(),
            ListenerState::Failed { .. } => &[],
        })
        .map(std::net::SocketAddr::port)
        .collect()
}

#[cfg(test)]
mod tests;
