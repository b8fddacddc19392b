//! The last step of an update: IR, owned objects and status of every Gateway that was touched.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_api::Kind;
use gatewright_ir::Gateway;
use gatewright_world::{
    ChangeSet, Key, World,
    desired::{OwnedName, SetStatus, Status},
    origin,
};

use super::{GatewayPlan, Planner, Work};
use crate::{Delta, StatusKey, gateway};

impl Planner {
    /// Makes IR, owned objects and status of every touched Gateway.
    pub(super) fn finish(&mut self, world: &World, changes: &ChangeSet, mut work: Work) -> Delta {
        let mut sets = changes.sets.clone();
        for key in &work.moved {
            self.update_kept(world, key, &mut work.delta);
        }
        for (key, name) in work.abandoned {
            if self.kept.get(&key) != Some(&name) {
                self.owned.remove(&name);
                work.delta.owned.push((name, None));
            }
        }
        for key in work.touched {
            let own_sets = world.sets_of_gateway(&key);
            sets.extend(own_sets.iter().map(|(key, _)| (*key).clone()));
            if work.moved.contains(&key) {
                self.update_owned(world, &key, &mut work.delta);
            }
            let origin = origin::object(Kind::Gateway, &key);
            let target = StatusKey {
                kind: Kind::Gateway,
                key: key.clone(),
            };
            let Some(plan) = self.gateways.plans.get_mut(&key) else {
                work.delta.gateways_changed |= self.ir.remove(&origin).is_some();
                if work.reset.contains(&key) {
                    work.delta.statuses.push((target, None));
                }
                continue;
            };
            let GatewayPlan {
                frame,
                table,
                assignment,
                status,
                owned,
            } = plan;
            let previous = self.ir.get(&origin);
            let emitted = assignment
                .as_ref()
                .map(|assignment| gateway::emit(frame, table, assignment, previous));
            // Routes that attached anew leave nothing to tell by pointers, and have cost more than a comparison already.
            let is_reset = work.reset.contains(&key);
            let is_same = |previous: &Arc<Gateway>, made: &Gateway| {
                is_same_gateway(previous, made) || (is_reset && **previous == *made)
            };
            match emitted {
                Some(made) if previous.is_some_and(|previous| is_same(previous, &made)) => {}
                Some(made) => {
                    self.ir.insert(origin, Arc::new(made));
                    work.delta.gateways_changed = true;
                }
                None => work.delta.gateways_changed |= self.ir.remove(&origin).is_some(),
            }
            let mut attached_sets = 0;
            for (set_key, set) in &own_sets {
                // A plan is there because its Gateway is.
                let Some(declared) = world.gateway(&key) else { break };
                let (shown, is_attached) = gateway::set_status(
                    world,
                    (&key, declared),
                    (set_key, set),
                    frame,
                    table,
                    assignment.as_ref(),
                );
                attached_sets += u32::from(is_attached);
                sets.remove(*set_key);
                show_set(&mut self.sets, set_key, Some(shown), &mut work.delta);
            }
            let computed = gateway::status(world, &key, frame, table, assignment.as_ref(), owned, attached_sets);
            let computed = Status::Gateway(computed);
            if status.as_deref() != Some(&computed) {
                *status = Some(Arc::new(computed.clone()));
                work.delta.statuses.push((target, Some(computed)));
            }
        }
        // Those that are left are gone, or their Gateway is not ours.
        for key in sets {
            let gateway = world.set(&key).and_then(|set| set.gateway.as_ref());
            if gateway.is_none_or(|gateway| !self.gateways.plans.contains_key(gateway)) {
                show_set(&mut self.sets, &key, None, &mut work.delta);
            }
        }
        work.delta
    }

    /// Finds out whether a Gateway has no class and a Service, and notes what differs.
    fn update_kept(&mut self, world: &World, key: &Key, delta: &mut Delta) {
        let is_orphan = |gateway: &Arc<gatewright_world::object::Gateway>| world.class(&gateway.class).is_none();
        let kept = world
            .gateway(key)
            .filter(|gateway| is_orphan(gateway))
            .and_then(|_| gateway::kept(world, key));
        let Some(kept) = kept else {
            let Some(name) = self.kept.remove(key) else { return };
            if let Some(plan) = self.gateways.plans.get_mut(key) {
                // It is ours again, and whether it still needs a Service is decided with its other objects.
                plan.owned.push(name);
            } else {
                self.owned.remove(&name);
                delta.owned.push((name, None));
            }
            return;
        };
        self.kept.insert(key.clone(), kept.name.clone());
        if self.owned.get(&kept.name).is_none_or(|known| **known != kept) {
            let (name, kept) = (kept.name.clone(), Arc::new(kept));
            self.owned.insert(name.clone(), kept.clone());
            delta.owned.push((name, Some(kept)));
        }
    }

    /// Makes the objects of a Gateway again, and notes those that differ.
    fn update_owned(&mut self, world: &World, key: &Key, delta: &mut Delta) {
        let Some(plan) = self.gateways.plans.get_mut(key) else {
            return;
        };
        let made = gateway::owned(world, key, &plan.frame, plan.assignment.as_ref());
        let names: Vec<OwnedName> = made.iter().map(|owned| owned.name.clone()).collect();
        for name in plan.owned.iter().filter(|name| !names.contains(name)) {
            self.owned.remove(name);
            delta.owned.push((name.clone(), None));
        }
        for owned in made {
            if self.owned.get(&owned.name).is_none_or(|known| **known != owned) {
                let (name, owned) = (owned.name.clone(), Arc::new(owned));
                self.owned.insert(name.clone(), owned.clone());
                delta.owned.push((name, Some(owned)));
            }
        }
        plan.owned = names;
    }
}

/// Notes what a ListenerSet shows, if it is something else than before.
fn show_set(shown: &mut BTreeMap<Key, SetStatus>, key: &Key, status: Option<SetStatus>, delta: &mut Delta) {
    if shown.get(key) == status.as_ref() {
        return;
    }
    let target = StatusKey {
        kind: Kind::ListenerSet,
        key: key.clone(),
    };
    delta.statuses.push((target, status.clone().map(Status::ListenerSet)));
    match status {
        Some(status) => shown.insert(key.clone(), status),
        None => shown.remove(key),
    };
}

/// Whether two snapshots are the same, told by pointers: what did not change is shared.
fn is_same_gateway(left: &Gateway, right: &Gateway) -> bool {
    left.generation == right.generation
        && left.listeners.len() == right.listeners.len()
        && left
            .listeners
            .iter()
            .zip(&right.listeners)
            .all(|(left, right)| Arc::ptr_eq(left, right))
        && match (&left.identity, &right.identity) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        }
        && (left.clusters.ptr_eq(&right.clusters) || (left.clusters.is_empty() && right.clusters.is_empty()))
}
