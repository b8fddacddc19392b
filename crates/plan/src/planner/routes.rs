//! Routes and the clusters they send requests to: who needs which, and where it goes.

use std::{collections::BTreeSet, sync::Arc};

use gatewright_ir::{Cluster, ClusterId, UpstreamProtocol};
use gatewright_world::{
    ChangeSet, Key, World,
    desired::Status,
    object::{RouteKey, Service},
    resolve::Granted,
};

use super::{Planner, Work};
use crate::{
    StatusKey, cluster,
    route::{self, RoutePlan},
};

/// A cluster and who uses it.
#[derive(Debug)]
pub(super) struct ClusterPlan {
    cluster: Arc<Cluster>,
    service: Granted<Service>,
    port: u16,
    protocol: UpstreamProtocol,
    /// The Gateways it serves, each with the number of routes that need it there.
    pub(super) users: Vec<(Key, u32)>,
}

impl Planner {
    pub(super) fn affected_routes(&self, world: &World, changes: &ChangeSet, work: &Work) -> BTreeSet<RouteKey> {
        let mut routes = changes.routes.clone();
        for gateway in &work.reset {
            routes.extend(world.routes_of_gateway(gateway).cloned());
        }
        if work.reset_defaults {
            routes.extend(world.defaulted_routes().cloned());
        }
        // A Gateway that appears or disappears without being ours still decides whether a parent is dangling.
        for gateway in &changes.gateways {
            if !self.gateways.plans.contains_key(gateway) {
                routes.extend(world.routes_of_gateway(gateway).cloned());
            }
        }
        for set in &changes.sets {
            routes.extend(world.routes_of_set(set).cloned());
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

    pub(super) fn update_route(&mut self, world: &World, key: &RouteKey, work: &mut Work) {
        let old = self.routes.remove(key);
        let new = world
            .route(key)
            .map(|route| route::plan(world, &self.settings, &self.gateways, key, route, old.as_ref()));
        // A route that attaches nowhere and names no parent that is missing is none of our business.
        let new = new.filter(|plan| !plan.status.parents.is_empty() || !plan.status.dangling.is_empty());
        let status = |plan: &RoutePlan| Some(Status::Route(plan.status.clone()));
        if old.as_ref().map(|plan| &plan.status) != new.as_ref().map(|plan| &plan.status) {
            let target = StatusKey {
                kind: key.kind.kind(),
                key: key.key.clone(),
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
        self.release_clusters(plan, work);
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
                    let Some(built) =
                        cluster::build(world, &self.settings, &backend.service, backend.port, backend.protocol)
                    else {
                        continue;
                    };
                    self.service_clusters.insert(backend.service.key().clone(), id.clone());
                    let (cluster, service) = (Arc::new(built), backend.service.clone());
                    let made = ClusterPlan {
                        cluster,
                        service,
                        port: backend.port,
                        protocol: backend.protocol,
                        users: Vec::new(),
                    };
                    self.clusters.insert(id.clone(), made);
                }
                let Some(cluster) = self.clusters.get_mut(id) else {
                    continue;
                };
                if let Some((_, count)) = cluster.users.iter_mut().find(|(user, _)| user == gateway) {
                    *count += 1;
                } else {
                    cluster.users.push((gateway.clone(), 1));
                    work.services.insert(cluster.service.key().clone());
                }
                if !gateway_plan.table.clusters.contains_key(id) {
                    gateway_plan.table.clusters.insert(id.clone(), cluster.cluster.clone());
                    work.touched.insert(gateway.clone());
                }
            }
        }
    }

    fn release_clusters(&mut self, plan: &RoutePlan, work: &mut Work) {
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
                work.services.insert(cluster.service.key().clone());
                if cluster.users.is_empty() {
                    self.service_clusters.remove(cluster.service.key(), id);
                    self.clusters.remove(id);
                }
                if !work.reset.contains(gateway)
                    && let Some(gateway) = self.gateways.plans.get_mut(gateway)
                {
                    gateway.table.clusters.remove(id);
                }
            }
        }
    }

    /// Builds the clusters of changed Services and EndpointSlices again, and puts them where they are used. All of them,
    /// when this replica has come to another node: which endpoints are near depends on it.
    pub(super) fn update_clusters(&mut self, world: &World, changes: &ChangeSet, work: &mut Work) {
        let ids: Vec<ClusterId> = if world.local_has_moved(changes) {
            self.clusters.keys().cloned().collect()
        } else {
            let services = changes.services.union(&changes.endpoints);
            services
                .flat_map(|service| self.service_clusters.get(service).cloned())
                .collect()
        };
        for id in &ids {
            let Some(plan) = self.clusters.get_mut(id) else {
                continue;
            };
            // A port that has gone takes its routes with it, and they the cluster.
            let Some(mut built) = cluster::build(world, &self.settings, &plan.service, plan.port, plan.protocol) else {
                continue;
            };
            // The same terms stay the same object: data planes then compile nothing when only endpoints come and go.
            if built.security == plan.cluster.security {
                built.security = plan.cluster.security.clone();
            }
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
