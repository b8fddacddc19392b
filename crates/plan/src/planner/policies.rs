//! What policies for backends show: one entry for each Gateway through which requests reach their Services.

use std::collections::BTreeSet;

use gatewright_api::Kind;
use gatewright_ir::Text;
use gatewright_world::{
    ChangeSet, Key, World,
    desired::{PolicyStatus, Status},
};

use super::{Planner, Work};
use crate::{StatusKey, cluster, policy};

impl Planner {
    /// Finds out anew what policies show that changed, or whose Services other Gateways use now.
    pub(super) fn update_policies(&mut self, world: &World, changes: &ChangeSet, work: &mut Work) {
        let mut traffic = changes.policies.clone();
        let mut tls = changes.tls_policies.clone();
        let services = work.services.iter().chain(&changes.endpoints).chain(&changes.services);
        for service in services {
            let policies = world.policies_of_service(service);
            traffic.extend(policies.into_iter().map(|(key, _)| key.clone()));
            let policies = world.tls_policies_of_service(service);
            tls.extend(policies.into_iter().map(|(key, _)| key.clone()));
        }
        for key in traffic {
            let status = world.policy(&key).and_then(|declared| {
                let gateways = self.gateways_of(&key, declared.services.iter())?;
                Some(policy::status(world, &key, declared, gateways))
            });
            self.show_policy(Kind::BackendTrafficPolicy, key, status, work);
        }
        for key in tls {
            let status = world.tls_policy(&key).and_then(|declared| {
                let gateways = self.gateways_of(&key, declared.targets.iter().map(|target| &target.service))?;
                Some(cluster::policy_status(world, &key, declared, gateways))
            });
            self.show_policy(Kind::BackendTlsPolicy, key, status, work);
        }
    }

    fn show_policy(&mut self, kind: Kind, key: Key, status: Option<PolicyStatus>, work: &mut Work) {
        let target = StatusKey { kind, key };
        if self.policies.get(&target) == status.as_ref() {
            return;
        }
        let shown = (target.clone(), status.clone().map(Status::Policy));
        work.delta.statuses.push(shown);
        match status {
            Some(status) => self.policies.insert(target, status),
            None => self.policies.remove(&target),
        };
    }

    /// The Gateways that send to Services of a policy's namespace; none if there are none.
    fn gateways_of<'a>(&self, policy: &Key, services: impl Iterator<Item = &'a Text>) -> Option<Vec<Key>> {
        let mut gateways = BTreeSet::new();
        for name in services {
            let service = Key {
                namespace: policy.namespace.clone(),
                name: name.clone(),
            };
            let clusters = self.service_clusters.get(&service);
            let clusters = clusters.filter_map(|id| self.clusters.get(id));
            gateways.extend(clusters.flat_map(|cluster| cluster.users.iter().map(|(user, _)| user.clone())));
        }
        (!gateways.is_empty()).then(|| gateways.into_iter().collect())
    }
}
