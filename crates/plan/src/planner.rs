//! The planner: keeps what it computed, finds what a change affects, and computes that again.
//!
//! Per Gateway it keeps the frame (the Gateway without routes) and the table (what routes contributed); per route, its
//! entries, where they went, and its status; per cluster, who uses it. An update runs in the order of dependency: classes,
//! frames, addresses, routes, clusters, then IR, owned objects and status of every Gateway that was touched.

mod finish;
mod policies;
mod read;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::AHashMap;
use gatewright_api::Kind;
use gatewright_ir::{ClusterId, Gateway, Origin, Text};
use gatewright_world::{
    ChangeSet, Index, Key, World,
    desired::{Owned, OwnedName, PolicyStatus, SetStatus, Status},
    object::RouteKey,
    origin,
};
use imbl::OrdMap;

use crate::{
    Delta, PlanSettings, StatusKey,
    class::{self, ClassPlan},
    gateway::{self, Assignment, Frame, Table},
    route::{Frames, RoutePlan},
};
use routes::ClusterPlan;

/// Plans a world, change by change.
#[derive(Debug)]
pub struct Planner {
    settings: PlanSettings,
    classes: BTreeMap<Text, ClassPlan>,
    gateways: Gateways,
    routes: AHashMap<RouteKey, RoutePlan>,
    /// What ListenerSets show whose Gateways are ours.
    sets: BTreeMap<Key, SetStatus>,
    /// What policies show, by kind; those that have nothing to do with our Gateways are not here.
    policies: BTreeMap<StatusKey, PolicyStatus>,
    clusters: AHashMap<ClusterId, ClusterPlan>,
    service_clusters: Index<Key, ClusterId>,
    ir: OrdMap<Origin, Arc<Gateway>>,
    owned: BTreeMap<OwnedName, Arc<Owned>>,
    /// The Services of Gateways whose class is not there. Whoever has lost sight of a class for a moment must not delete
    /// what cannot be had again: the address that clients know.
    kept: BTreeMap<Key, OwnedName>,
    classes_in_use: BTreeSet<Text>,
}

#[derive(Debug, Default)]
struct Gateways {
    plans: BTreeMap<Key, GatewayPlan>,
}

#[derive(Debug)]
struct GatewayPlan {
    frame: Frame,
    table: Table,
    assignment: Option<Assignment>,
    status: Option<Arc<Status>>,
    /// The objects that are made for it.
    owned: Vec<OwnedName>,
}

impl Frames for Gateways {
    fn frame(&self, gateway: &Key) -> Option<&Frame> {
        self.plans.get(gateway).map(|plan| &plan.frame)
    }
}

/// What an update has to compute again, and what it found different.
#[derive(Default)]
struct Work {
    /// Gateways whose routes must all attach anew, because its listeners differ or it came or went.
    reset: BTreeSet<Key>,
    /// Gateways whose IR or status may differ.
    touched: BTreeSet<Key>,
    /// Those of them whose owned objects may differ: routes make no difference to these.
    moved: BTreeSet<Key>,
    /// Whether a default Gateway is among them, or one that was.
    reset_defaults: bool,
    /// Services that a Gateway came to use or no longer uses.
    services: BTreeSet<Key>,
    /// Objects of Gateways that are gone or no longer ours.
    abandoned: Vec<(Key, OwnedName)>,
    delta: Delta,
}

impl Work {
    /// Notes that all of a Gateway but its routes may differ.
    fn touch(&mut self, gateway: &Key) {
        self.touched.insert(gateway.clone());
        self.moved.insert(gateway.clone());
    }
}

impl Planner {
    /// A planner that has planned nothing yet.
    pub fn new(settings: PlanSettings) -> Self {
        Self {
            settings,
            classes: BTreeMap::new(),
            gateways: Gateways::default(),
            routes: AHashMap::new(),
            sets: BTreeMap::new(),
            policies: BTreeMap::new(),
            clusters: AHashMap::new(),
            service_clusters: Index::default(),
            ir: OrdMap::new(),
            owned: BTreeMap::new(),
            kept: BTreeMap::new(),
            classes_in_use: BTreeSet::new(),
        }
    }

    /// Computes again what depends on the changes.
    pub fn update(&mut self, world: &World, changes: &ChangeSet) -> Delta {
        let mut work = Work::default();
        let gateways = self.update_classes(world, changes, &mut work);
        let frames_changed = self.update_frames(world, gateways, &mut work);
        self.update_classes_in_use(world, changes, &mut work);
        let places_changed = !(changes.facts.is_empty() && changes.entries.is_empty() && changes.replicas.is_empty());
        if frames_changed || places_changed {
            self.update_addresses(world, &mut work);
        }
        for route in self.affected_routes(world, changes, &work) {
            self.update_route(world, &route, &mut work);
        }
        self.update_clusters(world, changes, &mut work);
        self.update_policies(world, changes, &mut work);
        self.touch_observed(world, changes, &mut work);
        self.finish(world, changes, work)
    }

    /// Touches the Gateways about which something new was observed.
    fn touch_observed(&self, world: &World, changes: &ChangeSet, work: &mut Work) {
        for fact in &changes.facts {
            let Some((name, _)) = origin::parse(fact) else {
                continue;
            };
            let key = Key::new(name.namespace, name.name);
            match name.kind {
                // One that is gone has nothing to show.
                Kind::ListenerSet => {
                    if let Some(gateway) = world.set(&key).and_then(|set| set.gateway.as_ref()) {
                        work.touch(gateway);
                    }
                }
                _ => work.touch(&key),
            }
        }
        for gateway in &changes.entries {
            work.touch(gateway);
        }
        // Every Gateway is on every replica.
        if !changes.replicas.is_empty() {
            for gateway in self.gateways.plans.keys() {
                work.touch(gateway);
            }
        }
        for name in &changes.conflicts {
            if let Some(owned) = self.owned.get(name) {
                let gateway = &owned.owner;
                work.touch(&Key::new(gateway.namespace.as_str(), gateway.name.as_str()));
            }
        }
    }

    /// Finds out which classes of ours have Gateways.
    fn update_classes_in_use(&mut self, world: &World, changes: &ChangeSet, work: &mut Work) {
        if changes.classes.is_empty() && changes.gateways.is_empty() {
            return;
        }
        let has_gateways = |class: &&Text| world.gateways_of_class(class).next().is_some();
        let used: BTreeSet<Text> = self.classes.keys().filter(has_gateways).cloned().collect();
        let gone = self
            .classes_in_use
            .difference(&used)
            .map(|class| (class.clone(), false));
        let new = used.difference(&self.classes_in_use).map(|class| (class.clone(), true));
        work.delta.classes_in_use.extend(gone.chain(new));
        self.classes_in_use = used;
    }

    /// Plans classes again; gives the Gateways whose frames this and the other changes affect.
    fn update_classes(&mut self, world: &World, changes: &ChangeSet, work: &mut Work) -> BTreeSet<Key> {
        let mut gateways = changes.gateways.clone();
        let mut classes = changes.classes.clone();
        for config in &changes.configs {
            classes.extend(world.classes_of_config(config).cloned());
            gateways.extend(world.gateways_of_config(config).cloned());
        }
        for name in classes {
            let plan = world
                .class(&name)
                .and_then(|class| class::plan(world, &self.settings, class));
            let old = self.classes.get(&name);
            let status = plan.as_ref().map(|plan| plan.status.clone());
            if old.map(|old| &old.status) != status.as_ref() {
                let key = StatusKey {
                    kind: Kind::GatewayClass,
                    key: Key {
                        namespace: "".into(),
                        name: name.clone(),
                    },
                };
                work.delta.statuses.push((key, status.map(Status::GatewayClass)));
            }
            gateways.extend(world.gateways_of_class(&name).cloned());
            match plan {
                Some(plan) => self.classes.insert(name, plan),
                None => self.classes.remove(&name),
            };
        }
        for secret in &changes.secrets {
            gateways.extend(world.gateways_of_secret(secret).cloned());
        }
        for namespace in &changes.grants {
            gateways.extend(world.foreign_gateways(namespace).cloned());
        }
        // Whether a Gateway takes a ListenerSet may depend on the labels of its namespace.
        for namespace in &changes.namespaces {
            let sets = world.sets_in(namespace);
            gateways.extend(sets.filter_map(|(_, set)| set.gateway.clone()));
        }
        gateways
    }

    /// Builds frames again; tells whether there is anything to do for addresses.
    fn update_frames(&mut self, world: &World, gateways: BTreeSet<Key>, work: &mut Work) -> bool {
        let is_any = !gateways.is_empty();
        for key in gateways {
            let old = self.gateways.plans.remove(&key);
            let declared = world
                .gateway(&key)
                .and_then(|gateway| Some((gateway, self.classes.get(&gateway.class)?)));
            let Some((declared, class)) = declared else {
                if let Some(old) = old {
                    work.reset.insert(key.clone());
                    work.reset_defaults |= old.frame.is_default;
                    work.abandoned
                        .extend(old.owned.into_iter().map(|name| (key.clone(), name)));
                }
                work.touch(&key);
                continue;
            };
            let previous = old.as_ref().map(|plan| &plan.frame);
            let frame = gateway::build(world, &self.settings, &key, declared, class, previous);
            let plan = match old {
                Some(old) if old.frame.attaches_like(&frame) => GatewayPlan { frame, ..old },
                old => {
                    work.reset.insert(key.clone());
                    work.reset_defaults |= frame.is_default || old.as_ref().is_some_and(|old| old.frame.is_default);
                    let table = Table::new(frame.listeners.len());
                    let (status, owned) = old.map(|old| (old.status, old.owned)).unwrap_or_default();
                    GatewayPlan {
                        frame,
                        table,
                        assignment: None,
                        status,
                        owned,
                    }
                }
            };
            work.touch(&key);
            self.gateways.plans.insert(key, plan);
        }
        is_any
    }

    fn update_addresses(&mut self, world: &World, work: &mut Work) {
        let frames = self.gateways.plans.iter().map(|(key, plan)| (key, &plan.frame));
        let mut assignments = gateway::assign(world, frames);
        for (key, plan) in &mut self.gateways.plans {
            let assignment = assignments.remove(key);
            if plan.assignment != assignment {
                plan.assignment = assignment;
                work.touch(key);
            }
        }
    }
}
