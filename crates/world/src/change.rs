//! What changed in the world since the planner last looked.

use std::collections::BTreeSet;

use gatewright_ir::{Origin, Text};

use crate::{Key, desired::OwnedName, object::RouteKey};

/// The objects and facts that changed: added, altered or removed alike, for the planner reads the world itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// GatewayClasses.
    pub classes: BTreeSet<Text>,
    /// Gateways.
    pub gateways: BTreeSet<Key>,
    /// Routes of every kind.
    pub routes: BTreeSet<RouteKey>,
    /// Services whose ports or type changed, or how TLS is spoken to them.
    pub services: BTreeSet<Key>,
    /// ListenerSets. Their Gateways are among the changed ones.
    pub sets: BTreeSet<Key>,
    /// XBackendTrafficPolicies.
    pub policies: BTreeSet<Key>,
    /// BackendTLSPolicies, and those whose authorities changed. Their Services are among the changed ones.
    pub tls_policies: BTreeSet<Key>,
    /// Services whose endpoints changed, or a policy for them.
    pub endpoints: BTreeSet<Key>,
    /// Secrets.
    pub secrets: BTreeSet<Key>,
    /// Namespaces whose labels changed.
    pub namespaces: BTreeSet<Text>,
    /// Namespaces whose ReferenceGrants changed.
    pub grants: BTreeSet<Text>,
    /// GatewayConfigs.
    pub configs: BTreeSet<Key>,
    /// Listeners about which a plane reported something new.
    pub facts: BTreeSet<Origin>,
    /// Gateways whose own Service changed.
    pub entries: BTreeSet<Key>,
    /// Names of objects of ours that others have taken or let go.
    pub conflicts: BTreeSet<OwnedName>,
    /// Replicas that came, went, or changed their place.
    pub replicas: BTreeSet<Text>,
}

impl ChangeSet {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
