//! BackendTLSPolicies: which one counts for a Service port, what it comes to, and what each shows.
//!
//! What a policy asks for and what cannot be had is refused, never left out: nothing is sent to a Service whose policy
//! cannot be honoured.

use std::sync::Arc;

use gatewright_api::Kind;
use gatewright_ir::{Authority, Security, Trust, UpstreamTls};
use gatewright_world::{
    Key, World,
    desired::{Condition, ConditionKind, PolicyStatus, Reason},
    object::{ServicePort, TlsPolicy, TlsTarget},
};

use crate::{
    authorities::{self, Asking},
    gateway::Trouble,
    policy::MOST_ANCESTORS,
};

/// The policy that counts for a port of a Service: one for the very port before one for all; of several, the oldest.
pub(super) fn policy<'a>(
    world: &'a World,
    service: &Key,
    port: Option<&ServicePort>,
) -> Option<(&'a Key, &'a TlsPolicy)> {
    let policies = world.tls_policies_of_service(service);
    let name = port.map(|port| &port.name);
    let is_for = |policy: &TlsPolicy, wanted: Option<&gatewright_ir::Text>| {
        let mut targets = policy.targets.iter();
        targets.any(|target| target.service == service.name && target.port.as_ref() == wanted)
    };
    let find = |wanted| policies.iter().find(move |(_, policy)| is_for(policy, wanted));
    let exact = name.and_then(|name| find(Some(name)));
    let (key, policy) = exact.or_else(|| find(None))?;
    Some((key, policy))
}

/// How a port of a Service is protected.
pub(super) fn of(world: &World, service: &Key, port: Option<&ServicePort>) -> Security {
    let Some((key, policy)) = policy(world, service, port) else {
        return Security::Clear;
    };
    let resolved = Resolved::of(world, key, policy);
    let trust = match resolved.trust {
        Some(trust) if policy.refusals.is_empty() => trust,
        _ => return Security::Refused,
    };
    Security::Tls(Arc::new(UpstreamTls {
        hostname: policy.hostname.clone(),
        trust,
        names: policy.names.to_vec(),
    }))
}

/// What the references of a policy come to.
struct Resolved {
    /// None when nobody is left to believe.
    trust: Option<Trust>,
    trouble: Option<Trouble>,
}

impl Resolved {
    fn of(world: &World, key: &Key, policy: &TlsPolicy) -> Self {
        if policy.trusts_system {
            return Self {
                trust: Some(Trust::System),
                trouble: None,
            };
        }
        let asking = Asking {
            world,
            kind: Kind::BackendTlsPolicy,
            namespace: &key.namespace,
            wrong_kind: Reason::InvalidKind,
        };
        let (found, trouble) = authorities::resolve(&asking, &policy.authorities);
        let found: Vec<Arc<Authority>> = found;
        Self {
            trust: (!found.is_empty()).then_some(Trust::Given(found)),
            trouble,
        }
    }
}

/// What a policy shows for these Gateways, which are in order and distinct.
pub(crate) fn policy_status(world: &World, key: &Key, policy: &TlsPolicy, mut gateways: Vec<Key>) -> PolicyStatus {
    gateways.truncate(MOST_ANCESTORS);
    let resolved = Resolved::of(world, key, policy);
    let accepted = ConditionKind::Accepted;
    let accepted = if let Some(refusal) = policy.refusals.first() {
        let message = format!("{}: {}", refusal.field, refusal.message);
        Condition::fails(accepted, Reason::Invalid, message)
    } else if resolved.trust.is_none() {
        let message = "no authority is left that could say who the backend is; nothing is sent to it";
        Condition::fails(accepted, Reason::NoValidCACertificate, message)
    } else if let Some((target, older)) = policy.targets.iter().find_map(|target| older(world, key, target)) {
        let message = format!("BackendTLSPolicy {older} is older and for {target} as well");
        Condition::fails(accepted, Reason::Conflicted, message)
    } else {
        Condition::holds(accepted, Reason::Accepted, "The policy is in force")
    };
    let kind = ConditionKind::ResolvedRefs;
    let resolved = match resolved.trouble {
        Some(trouble) => Condition::fails(kind, trouble.reason, trouble.message),
        None => Condition::holds(kind, Reason::ResolvedRefs, "All references are resolved"),
    };
    PolicyStatus {
        generation: policy.meta.generation,
        gateways: gateways.into(),
        conditions: Box::new([accepted, resolved]),
    }
}

/// The older policy for exactly the same, if there is one.
fn older<'a>(world: &'a World, key: &Key, target: &TlsTarget) -> Option<(String, &'a Key)> {
    let service = Key {
        namespace: key.namespace.clone(),
        name: target.service.clone(),
    };
    let policies = world.tls_policies_of_service(&service);
    let (first, _) = policies
        .into_iter()
        .find(|(_, policy)| policy.targets.contains(target))?;
    let shown = match &target.port {
        Some(port) => format!("port {port} of Service {service}"),
        None => format!("Service {service}"),
    };
    (first != key).then_some((shown, first))
}
