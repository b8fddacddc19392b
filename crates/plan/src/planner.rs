//! The planner: keeps what it computed, finds what a change affects, and computes that again.
//!
//! Per Gateway it keeps the frame (the Gateway without routes) and the table (what routes contributed); per route, its
//! entries, where they went, and its status; per cluster, who uses it. An update runs in the order of dependency: classes,
//! frames, addresses, routes, clusters, then IR and status of every Gateway that was touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::AHashMap;
use gatewright_api::Kind;
use gatewright_ir::{Cluster, ClusterId, Gateway, Origin, Text};
use gatewright_world::{ChangeSet, Index, Key, World, desired::Status, object::Service, origin, resolve::Granted};
use imbl::OrdMap;

use crate::{
    Delta, PlanSettings, StatusKey,
    class::{self, ClassPlan},
    cluster,
    gateway::{self, Assignment, Frame, Table},
    route::{self, Frames, RoutePlan},
};

/// Plans a world, change by change.
#[derive(Debug)]
pub struct Planner {
    settings: PlanSettings,
    classes: BTreeMap<Text, ClassPlan>,
    gateways: Gateways,
    routes: AHashMap<Key, RoutePlan>,
    clusters: AHashMap<ClusterId, ClusterPlan>,
    service_clusters: Index<Key, ClusterId>,
    ir: OrdMap<Origin, Arc<Gateway>>,
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
}

#[derive(Debug)]
struct ClusterPlan {
    cluster: Arc<Cluster>,
    service: Granted<Service>,
    port: u16,
    /// The Gateways it serves, each with the number of routes that need it there.
    users: Vec<(Key, u32)>,
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
    delta: Delta,
}

impl Planner {
    /// A planner that has planned nothing yet.
    pub fn new(settings: PlanSettings) -> Self {
        Self {
            settings,
            classes: BTreeMap::new(),
            gateways: Gateways::default(),
            routes: AHashMap::new(),
            clusters: AHashMap::new(),
            service_clusters: Index::default(),
            ir: OrdMap::new(),
        }
    }

    /// What every data plane must do now.
    pub fn gateways(&self) -> &OrdMap<Origin, Arc<Gateway>> {
        &self.ir
    }

    /// The status of an object; none if it is not ours.
    pub fn status(&self, target: &StatusKey) -> Option<Status> {
        let StatusKey { kind, key } = target;
        match kind {
            Kind::GatewayClass => self
                .classes
                .get(&key.name)
                .map(|plan| Status::GatewayClass(plan.status.clone())),
            Kind::Gateway => self.gateways.plans.get(key)?.status.as_deref().cloned(),
            Kind::HttpRoute => self.routes.get(key).map(|plan| Status::HttpRoute(plan.status.clone())),
            _ => None,
        }
    }

    /// The statuses of all objects that are ours.
    pub fn statuses(&self) -> Vec<(StatusKey, Status)> {
        let classes = self.classes.keys().map(|name| {
            (
                Kind::GatewayClass,
                Key {
                    namespace: "".into(),
                    name: name.clone(),
                },
            )
        });
        let gateways = self.gateways.plans.keys().map(|key| (Kind::Gateway, key.clone()));
        let mut routes: Vec<_> = self.routes.keys().map(|key| (Kind::HttpRoute, key.clone())).collect();
        routes.sort();
        let keys = classes
            .chain(gateways)
            .chain(routes)
            .map(|(kind, key)| StatusKey { kind, key });
        keys.filter_map(|key| self.status(&key).map(|status| (key, status)))
            .collect()
    }

    /// Computes again what depends on the changes.
    pub fn update(&mut self, world: &World, changes: &ChangeSet) -> Delta {
        let mut work = Work::default();
        let gateways = self.update_classes(world, changes, &mut work);
        let frames_changed = self.update_frames(world, gateways, &mut work);
        if frames_changed || !changes.facts.is_empty() {
            self.update_addresses(world, &mut work);
        }
        for route in self.affected_routes(world, changes, &work) {
            self.update_route(world, &route, &mut work);
        }
        self.update_clusters(world, changes, &mut work);
        for fact in &changes.facts {
            if let Some((name, _)) = origin::parse(fact) {
                work.touched.insert(Key::new(name.namespace, name.name));
            }
        }
        self.finish(world, work)
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
                if old.is_some() {
                    work.reset.insert(key.clone());
                    work.touched.insert(key);
                }
                continue;
            };
            let previous = old.as_ref().map(|plan| &plan.frame);
            let frame = gateway::build(world, &self.settings, &key, declared, class, previous);
            let plan = match old {
                Some(old) if old.frame.attaches_like(&frame) => GatewayPlan { frame, ..old },
                old => {
                    work.reset.insert(key.clone());
                    let table = Table::new(frame.listeners.len());
                    GatewayPlan {
                        frame,
                        table,
                        assignment: None,
                        status: old.and_then(|old| old.status),
                    }
                }
            };
            self.gateways.plans.insert(key.clone(), plan);
            work.touched.insert(key);
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
                work.touched.insert(key.clone());
            }
        }
    }

    fn affected_routes(&self, world: &World, changes: &ChangeSet, work: &Work) -> BTreeSet<Key> {
        let mut routes = changes.routes.clone();
        for gateway in &work.reset {
            routes.extend(world.routes_of_gateway(gateway).cloned());
        }
        // A Gateway that appears or disappears without being ours still decides whether a parent is dangling.
        for gateway in &changes.gateways {
            if !self.gateways.plans.contains_key(gateway) {
                routes.extend(world.routes_of_gateway(gateway).cloned());
            }
        }
        for service in &changes.services {
            routes.extend(world.routes_of_service(service).cloned());
        }
        for namespace in &changes.grants {
            routes.extend(world.foreign_routes(namespace).cloned());
        }
        for namespace in &changes.namespaces {
            routes.extend(world.routes_in(namespace).cloned());
        }
        routes
    }

    fn update_route(&mut self, world: &World, key: &Key, work: &mut Work) {
        let old = self.routes.remove(key);
        let new = world
            .route(key)
            .map(|route| route::plan(world, &self.gateways, key, route, old.as_ref()));
        // A route that attaches nowhere and names no parent that is missing is none of our business.
        let new = new.filter(|plan| !plan.status.parents.is_empty() || !plan.status.dangling.is_empty());
        let status = |plan: &RoutePlan| Some(Status::HttpRoute(plan.status.clone()));
        if old.as_ref().map(|plan| &plan.status) != new.as_ref().map(|plan| &plan.status) {
            let target = StatusKey {
                kind: Kind::HttpRoute,
                key: key.clone(),
            };
            work.delta.statuses.push((target, new.as_ref().and_then(status)));
        }
        if let (Some(old), Some(new)) = (&old, &new)
            && is_same_contribution(old, new)
            && !old
                .attachments
                .iter()
                .any(|attachment| work.reset.contains(&attachment.gateway))
        {
            self.routes.extend([(key.clone(), new.clone())]);
            return;
        }
        // In before out: a cluster that both need is neither dropped nor built again.
        if let Some(new) = &new {
            self.use_clusters(world, new, work);
        }
        if let Some(old) = &old {
            self.detach(old, work);
        }
        if let Some(new) = new {
            self.attach(&new, work);
            self.routes.insert(key.clone(), new);
        }
    }

    fn attach(&mut self, plan: &RoutePlan, work: &mut Work) {
        for attachment in &plan.attachments {
            if let Some(gateway) = self.gateways.plans.get_mut(&attachment.gateway) {
                gateway
                    .table
                    .attach(attachment.listener, &attachment.hosts, &plan.entries, attachment.counts);
                work.touched.insert(attachment.gateway.clone());
            }
        }
    }

    fn detach(&mut self, plan: &RoutePlan, work: &mut Work) {
        for attachment in &plan.attachments {
            // The table of a reset Gateway is new and holds nothing of this route.
            if !work.reset.contains(&attachment.gateway)
                && let Some(gateway) = self.gateways.plans.get_mut(&attachment.gateway)
            {
                gateway
                    .table
                    .detach(attachment.listener, &attachment.hosts, &plan.entries, attachment.counts);
                work.touched.insert(attachment.gateway.clone());
            }
        }
        self.release_clusters(plan, &work.reset);
    }

    /// Puts the clusters of a route into the tables of the Gateways it attaches to.
    fn use_clusters(&mut self, world: &World, plan: &RoutePlan, work: &mut Work) {
        for gateway in distinct_gateways(plan) {
            let Some(gateway_plan) = self.gateways.plans.get_mut(gateway) else {
                continue;
            };
            for backend in &plan.backends {
                let id = &backend.cluster;
                if !self.clusters.contains_key(id) {
                    let Ok(built) = cluster::build(world, &self.settings, &backend.service, backend.port) else {
                        continue;
                    };
                    self.service_clusters.insert(backend.service.key().clone(), id.clone());
                    let (cluster, service) = (Arc::new(built), backend.service.clone());
                    let made = ClusterPlan {
                        cluster,
                        service,
                        port: backend.port,
                        users: Vec::new(),
                    };
                    self.clusters.insert(id.clone(), made);
                }
                let Some(cluster) = self.clusters.get_mut(id) else {
                    continue;
                };
                match cluster.users.iter_mut().find(|(user, _)| user == gateway) {
                    Some((_, count)) => *count += 1,
                    None => cluster.users.push((gateway.clone(), 1)),
                }
                if !gateway_plan.table.clusters.contains_key(id) {
                    gateway_plan.table.clusters.insert(id.clone(), cluster.cluster.clone());
                    work.touched.insert(gateway.clone());
                }
            }
        }
    }

    fn release_clusters(&mut self, plan: &RoutePlan, reset: &BTreeSet<Key>) {
        for gateway in distinct_gateways(plan) {
            for backend in &plan.backends {
                let id = &backend.cluster;
                let Some(cluster) = self.clusters.get_mut(id) else {
                    continue;
                };
                let Some(position) = cluster.users.iter().position(|(user, _)| user == gateway) else {
                    continue;
                };
                let Some((_, count)) = cluster.users.get_mut(position) else {
                    continue;
                };
                *count -= 1;
                if *count > 0 {
                    continue;
                }
                cluster.users.swap_remove(position);
                if cluster.users.is_empty() {
                    self.service_clusters.remove(cluster.service.key(), id);
                    self.clusters.remove(id);
                }
                if !reset.contains(gateway)
                    && let Some(gateway) = self.gateways.plans.get_mut(gateway)
                {
                    gateway.table.clusters.remove(id);
                }
            }
        }
    }

    /// Builds the clusters of changed Services and EndpointSlices again, and puts them where they are used.
    fn update_clusters(&mut self, world: &World, changes: &ChangeSet, work: &mut Work) {
        for service in changes.services.union(&changes.endpoints) {
            for id in self.service_clusters.get(service) {
                let Some(plan) = self.clusters.get_mut(id) else {
                    continue;
                };
                // A port that has gone takes its routes with it, and they the cluster.
                let Ok(built) = cluster::build(world, &self.settings, &plan.service, plan.port) else {
                    continue;
                };
                if built == *plan.cluster {
                    continue;
                }
                plan.cluster = Arc::new(built);
                for (user, _) in &plan.users {
                    if let Some(gateway) = self.gateways.plans.get_mut(user) {
                        gateway.table.clusters.insert(id.clone(), plan.cluster.clone());
                        work.touched.insert(user.clone());
                    }
                }
            }
        }
    }

    /// Makes IR and status of every touched Gateway.
    fn finish(&mut self, world: &World, mut work: Work) -> Delta {
        for key in work.touched {
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
            let computed = Status::Gateway(gateway::status(world, frame, table, assignment.as_ref()));
            if status.as_deref() != Some(&computed) {
                *status = Some(Arc::new(computed.clone()));
                work.delta.statuses.push((target, Some(computed)));
            }
        }
        work.delta
    }
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
        && (left.clusters.ptr_eq(&right.clusters) || (left.clusters.is_empty() && right.clusters.is_empty()))
}

fn is_same_contribution(old: &RoutePlan, new: &RoutePlan) -> bool {
    old.attachments == new.attachments
        && old.entries.len() == new.entries.len()
        && old
            .entries
            .iter()
            .zip(&new.entries)
            .all(|(old, new)| Arc::ptr_eq(old, new))
}

fn distinct_gateways(plan: &RoutePlan) -> BTreeSet<&Key> {
    plan.attachments.iter().map(|attachment| &attachment.gateway).collect()
}
