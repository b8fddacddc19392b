//! XBackendTrafficPolicies: which one counts for a Service, and what each shows.
//!
//! A policy is shown for the Gateways through which requests reach its Services; the planner knows those from the clusters
//! in use.

use gatewright_ir::RetryBudget;
use gatewright_world::{
    Key, World,
    desired::{Condition, ConditionKind, PolicyStatus, Reason},
    object::TrafficPolicy,
};

/// Kubernetes shows no more of them.
pub(crate) const MOST_ANCESTORS: usize = 16;

/// How many retries a Service may get: what the oldest policy for it says, if that can be honoured.
pub(crate) fn budget(world: &World, service: &Key) -> Option<RetryBudget> {
    let policies = world.policies_of_service(service);
    let (_, first) = policies.first()?;
    first.budget.filter(|_| first.refusals.is_empty())
}

/// What a policy shows for these Gateways, which are in order and distinct.
pub(crate) fn status(world: &World, key: &Key, policy: &TrafficPolicy, mut gateways: Vec<Key>) -> PolicyStatus {
    gateways.truncate(MOST_ANCESTORS);
    let older = policy.services.iter().find_map(|name| {
        let service = Key {
            namespace: key.namespace.clone(),
            name: name.clone(),
        };
        let (first, _) = *world.policies_of_service(&service).first()?;
        (first != key).then(|| format!("XBackendTrafficPolicy {first} is older and for Service {service} as well"))
    });
    let kind = ConditionKind::Accepted;
    let condition = match (policy.refusals.first(), older) {
        (Some(refusal), _) => {
            let message = format!("{}: {}", refusal.field, refusal.message);
            Condition::fails(kind, Reason::Invalid, message)
        }
        (None, Some(message)) => Condition::fails(kind, Reason::Conflicted, message),
        (None, None) => Condition::holds(kind, Reason::Accepted, "The policy is in force"),
    };
    PolicyStatus {
        generation: policy.meta.generation,
        gateways: gateways.into(),
        conditions: Box::new([condition]),
    }
}
