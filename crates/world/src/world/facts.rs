//! What the planes of all replicas observed.
//!
//! Every replica plans and serves; each publishes what its own plane saw, and the one that writes status must know it
//! all. What this replica's plane says comes through [`World::observe`], what the others published through
//! [`World::set_replica`].

use std::{cmp::Reverse, collections::BTreeMap, net::IpAddr};

use gatewright_ir::{Fact, ListenerState, Origin, Text};

use super::World;
use crate::{ChangeSet, ListenerFact, Replica};

impl World {
    /// Takes in what the plane of this replica observed.
    pub fn observe(&mut self, fact: Fact) {
        let facts = &mut self.replicas.entry(self.local.clone()).or_default().facts;
        let (origin, changed) = match fact {
            Fact::Listener {
                origin,
                generation,
                state,
            } => {
                let fact = ListenerFact { generation, state };
                let changed = facts.get(&origin) != Some(&fact);
                facts.insert(origin.clone(), fact);
                (origin, changed)
            }
            Fact::Gone { origin } => {
                let changed = facts.remove(&origin).is_some();
                (origin, changed)
            }
        };
        if changed {
            self.changes.facts.insert(origin);
        }
    }

    /// Names this replica and its place. Its facts stay; what another of that name published is void.
    pub fn set_local(&mut self, name: &str, addresses: &[IpAddr], node: Option<&str>) {
        let name = self.names.text(name);
        let mut own = self.local().clone();
        own.addresses = addresses.to_vec();
        own.node = self.names.optional(node);
        if name != self.local {
            self.put_replica(&self.local.clone(), None);
            self.local = name.clone();
        }
        self.put_replica(&name, Some(own));
    }

    /// Says that this replica is about to stop: it is sent no new connections, unless nobody else is there.
    pub fn set_leaving(&mut self) {
        let own = Replica {
            is_leaving: true,
            ..self.local().clone()
        };
        self.put_replica(&self.local.clone(), Some(own));
    }

    /// Takes in what another replica published, or that it is gone with all its facts. What this replica published
    /// itself comes back this way, too, and is passed over.
    pub fn set_replica(&mut self, name: &str, replica: Option<Replica>) {
        let name = self.names.text(name);
        if name != self.local {
            self.put_replica(&name, replica);
        }
    }

    fn put_replica(&mut self, name: &Text, replica: Option<Replica>) {
        let old = self.replicas.remove(name);
        let differs = |old: &Replica, new: &Replica| {
            old.addresses != new.addresses || old.node != new.node || old.is_leaving != new.is_leaving
        };
        let place_changed = match (&old, &replica) {
            (Some(old), Some(new)) => differs(old, new),
            (None, None) => false,
            // One that has said nothing yet is as good as none.
            (Some(one), None) | (None, Some(one)) => differs(one, &Replica::default()),
        };
        if place_changed {
            self.changes.replicas.insert(name.clone());
        }
        let none = BTreeMap::new();
        let before = old.as_ref().map_or(&none, |replica| &replica.facts);
        let after = replica.as_ref().map_or(&none, |replica| &replica.facts);
        for origin in before.keys().chain(after.keys()) {
            if before.get(origin) != after.get(origin) {
                self.changes.facts.insert(origin.clone());
            }
        }
        if let Some(replica) = replica {
            self.replicas.insert(name.clone(), replica);
        }
    }

    /// This replica as it is to be published.
    pub fn local(&self) -> &Replica {
        static NOTHING: Replica = Replica::unknown();
        self.replicas.get(&self.local).unwrap_or(&NOTHING)
    }

    /// Whether this replica's place is among what changed.
    pub fn local_has_moved(&self, changes: &ChangeSet) -> bool {
        changes.replicas.contains(&self.local)
    }

    /// All replicas that are known, this one included, by name.
    pub fn replicas(&self) -> impl Iterator<Item = (&Text, &Replica)> {
        self.replicas.iter()
    }

    /// What is known of a listener, over all replicas: what answers to the newest generation, and of that rather one
    /// that listens.
    pub fn fact(&self, listener: &Origin) -> Option<&ListenerFact> {
        let facts = self.instances(listener).map(|(_, fact)| fact);
        // The first of equals, so that every replica comes to the same one.
        facts.min_by_key(|fact| {
            let is_listening = matches!(fact.state, ListenerState::Listening(_));
            Reverse((fact.generation, is_listening))
        })
    }

    /// What the plane of this replica said about a listener.
    pub fn local_fact(&self, listener: &Origin) -> Option<&ListenerFact> {
        self.local().facts.get(listener)
    }

    /// What each replica said about a listener.
    pub fn instances(&self, listener: &Origin) -> impl Iterator<Item = (&Replica, &ListenerFact)> {
        self.replicas
            .values()
            .filter_map(|replica| Some((replica, replica.facts.get(listener)?)))
    }
}

#[cfg(test)]
mod tests;
