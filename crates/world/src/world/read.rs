//! What the planner reads of the world. Secrets, Services and GatewayConfigs are not among it: they are reached only
//! through [`World::resolve`].

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use gatewright_ir::Text;

use super::{HeldConfig, Standing};
use crate::{
    Key, World,
    desired::OwnedName,
    object::{
        Config, EndpointSlice, EntryService, Gateway, GatewayClass, ListenerSet, Refusal, Route, RouteKey, RouteKind,
        Service, TlsPolicy, TrafficPolicy,
    },
    resolve::Granted,
};

/// Whether a GatewayConfig is in force as it is declared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConfigStanding<'a> {
    /// It is.
    InForce,
    /// It is declared no longer; the last good one stays in force while someone refers to it.
    Gone,
    /// It cannot be honoured as it is now; the last good one stays in force.
    Outdated(&'a Refusal),
    /// It cannot be honoured and never could: nothing of it is in force.
    Refused(&'a Refusal),
}

impl World {
    /// A GatewayClass.
    pub fn class(&self, name: &Text) -> Option<&Arc<GatewayClass>> {
        self.classes.get(name)
    }

    /// All GatewayClasses.
    pub fn classes(&self) -> impl Iterator<Item = (&Text, &Arc<GatewayClass>)> {
        self.classes.iter()
    }

    /// A Gateway.
    pub fn gateway(&self, key: &Key) -> Option<&Arc<Gateway>> {
        self.gateways.get(key)
    }

    /// All Gateways.
    pub fn gateways(&self) -> impl Iterator<Item = (&Key, &Arc<Gateway>)> {
        self.gateways.iter()
    }

    /// A route.
    pub fn route(&self, key: &RouteKey) -> Option<&Arc<Route>> {
        self.routes.get(key)
    }

    /// All routes.
    pub fn routes(&self) -> impl Iterator<Item = (&RouteKey, &Arc<Route>)> {
        self.routes.iter()
    }

    /// A ListenerSet.
    pub fn set(&self, key: &Key) -> Option<&Arc<ListenerSet>> {
        self.sets.get(key)
    }

    /// The ListenerSets that want to add to a Gateway, in the order in which their listeners count: the oldest first, then by
    /// name.
    pub fn sets_of_gateway(&self, gateway: &Key) -> Vec<(&Key, &Arc<ListenerSet>)> {
        let keys = self.index.gateway_sets.get(gateway);
        let mut sets: Vec<_> = keys.filter_map(|key| self.sets.get_key_value(key)).collect();
        sets.sort_by_key(|(key, set)| (set.meta.created, *key));
        sets
    }

    /// The ListenerSets in a namespace.
    pub fn sets_in(&self, namespace: &Text) -> impl Iterator<Item = (&Key, &Arc<ListenerSet>)> {
        let first = Key {
            namespace: namespace.clone(),
            name: "".into(),
        };
        let namespace = namespace.clone();
        let rest = self.sets.range((Bound::Included(first), Bound::Unbounded));
        rest.take_while(move |(key, _)| key.namespace == namespace)
    }

    /// The routes that name a ListenerSet as parent.
    pub fn routes_of_set(&self, set: &Key) -> impl Iterator<Item = &RouteKey> {
        self.index.set_routes.get(set)
    }

    /// A BackendTLSPolicy.
    pub fn tls_policy(&self, key: &Key) -> Option<&Arc<TlsPolicy>> {
        self.tls_policies.get(key)
    }

    /// The BackendTLSPolicies for a Service or one of its ports, the one that counts first: the oldest, then by name.
    /// Policies are in the namespace of their Services, so nothing needs to be granted.
    pub fn tls_policies_of_service(&self, service: &Key) -> Vec<(&Key, &Arc<TlsPolicy>)> {
        let keys = self.index.service_tls_policies.get(service);
        let mut policies: Vec<_> = keys.filter_map(|key| self.tls_policies.get_key_value(key)).collect();
        policies.sort_by_key(|(key, policy)| (policy.meta.created, *key));
        policies
    }

    /// An XBackendTrafficPolicy.
    pub fn policy(&self, key: &Key) -> Option<&Arc<TrafficPolicy>> {
        self.policies.get(key)
    }

    /// The XBackendTrafficPolicies for a Service, the one that counts first: the oldest, then by name. Policies are in the
    /// namespace of their Services, so nothing needs to be granted.
    pub fn policies_of_service(&self, service: &Key) -> Vec<(&Key, &Arc<TrafficPolicy>)> {
        let keys = self.index.service_policies.get(service);
        let mut policies: Vec<_> = keys.filter_map(|key| self.policies.get_key_value(key)).collect();
        policies.sort_by_key(|(key, policy)| (policy.meta.created, *key));
        policies
    }

    /// The labels of a Namespace; one that nobody declared exists without labels.
    pub fn namespace_labels(&self, namespace: &Text) -> Option<&BTreeMap<Text, Text>> {
        self.namespaces.get(namespace)
    }

    /// The Service of a Gateway that is reached through one. It belongs to the Gateway, so nothing needs to be granted.
    pub fn entry(&self, gateway: &Key) -> Option<&EntryService> {
        self.entries.get(gateway)
    }

    /// The Services of all Gateways, in no order.
    pub fn entries(&self) -> impl Iterator<Item = &EntryService> {
        self.entries.values()
    }

    /// What was found where an object of ours should be.
    pub fn conflict(&self, name: &OwnedName) -> Option<&Text> {
        self.conflicts.get(name)
    }

    /// The EndpointSlices of a Service.
    pub fn slices(&self, service: &Granted<Service>) -> impl Iterator<Item = &EndpointSlice> {
        self.index
            .service_slices
            .get(service.key())
            .filter_map(|key| self.slices.get(key))
    }

    /// Whether a GatewayConfig is in force as it is declared.
    pub fn config_standing(&self, config: &Granted<Config>) -> ConfigStanding<'_> {
        match self.configs.get(config.key()) {
            None => ConfigStanding::Gone,
            Some(HeldConfig { config, standing }) => match standing {
                Standing::InForce => ConfigStanding::InForce,
                Standing::Gone => ConfigStanding::Gone,
                Standing::Refused(refusal) if config.refusals.is_empty() => ConfigStanding::Outdated(refusal),
                Standing::Refused(refusal) => ConfigStanding::Refused(refusal),
            },
        }
    }

    /// The Gateways of a class.
    pub fn gateways_of_class(&self, class: &Text) -> impl Iterator<Item = &Key> {
        self.index.class_gateways.get(class)
    }

    /// The routes that name a Gateway as parent, or a ListenerSet that wants to add to it.
    pub fn routes_of_gateway(&self, gateway: &Key) -> impl Iterator<Item = &RouteKey> {
        let sets = self.index.gateway_sets.get(gateway);
        let through_sets = sets.flat_map(|set| self.index.set_routes.get(set));
        self.index.gateway_routes.get(gateway).chain(through_sets)
    }

    /// The Gateways that take routes which ask for default ones, whoever runs them.
    pub fn default_gateways(&self) -> impl Iterator<Item = &Key> {
        self.index.default_gateways.iter()
    }

    /// The routes that ask for default Gateways.
    pub fn defaulted_routes(&self) -> impl Iterator<Item = &RouteKey> {
        self.index.defaulted_routes.iter()
    }

    /// The routes that name a Service, be it as backend, as mirror or for authorisation.
    pub fn routes_of_service(&self, service: &Key) -> impl Iterator<Item = &RouteKey> {
        self.index.service_routes.get(service)
    }

    /// The routes in a namespace.
    pub fn routes_in(&self, namespace: &Text) -> impl Iterator<Item = &RouteKey> {
        let first = RouteKey {
            key: Key {
                namespace: namespace.clone(),
                name: "".into(),
            },
            kind: RouteKind::Http,
        };
        let rest = self
            .routes
            .range((Bound::Included(first), Bound::Unbounded))
            .map(|(key, _)| key);
        let namespace = namespace.clone();
        rest.take_while(move |route| route.key.namespace == namespace)
    }

    /// The Gateways that name a Secret, be it in a ListenerSet.
    pub fn gateways_of_secret(&self, secret: &Key) -> impl Iterator<Item = &Key> {
        let sets = self.index.secret_sets.get(secret);
        self.index
            .secret_gateways
            .get(secret)
            .chain(self.gateways_of_sets(sets))
    }

    fn gateways_of_sets<'a>(&'a self, sets: impl Iterator<Item = &'a Key>) -> impl Iterator<Item = &'a Key> {
        sets.filter_map(|set| self.sets.get(set)?.gateway.as_ref())
    }

    /// The classes that name a GatewayConfig.
    pub fn classes_of_config(&self, config: &Key) -> impl Iterator<Item = &Text> {
        self.index.config_classes.get(config)
    }

    /// The Gateways that name a GatewayConfig of their own.
    pub fn gateways_of_config(&self, config: &Key) -> impl Iterator<Item = &Key> {
        self.index.config_gateways.get(config)
    }

    /// The routes of other namespaces that refer into this one.
    pub fn foreign_routes(&self, namespace: &Text) -> impl Iterator<Item = &RouteKey> {
        self.index.foreign_routes.get(namespace)
    }

    /// The Gateways of other namespaces that refer into this one, be it in a ListenerSet.
    pub fn foreign_gateways(&self, namespace: &Text) -> impl Iterator<Item = &Key> {
        let sets = self.index.foreign_sets.get(namespace);
        self.index
            .foreign_gateways
            .get(namespace)
            .chain(self.gateways_of_sets(sets))
    }

    /// How many objects of each kind are declared, for the metric.
    pub fn counts(&self) -> Vec<(gatewright_api::Kind, usize)> {
        use gatewright_api::Kind;
        let mut routes = [0; RouteKind::ALL.len()];
        for route in self.routes.keys() {
            if let Some(count) = routes.get_mut(route.kind as usize) {
                *count += 1;
            }
        }
        let configs = self.configs.values();
        let configs = configs.filter(|held| held.standing != Standing::Gone).count();
        let mut counts = vec![
            (Kind::GatewayClass, self.classes.len()),
            (Kind::Gateway, self.gateways.len()),
            (Kind::ListenerSet, self.sets.len()),
            (Kind::BackendTlsPolicy, self.tls_policies.len()),
            (Kind::BackendTrafficPolicy, self.policies.len()),
            (Kind::ReferenceGrant, self.grants.len()),
            (Kind::Service, self.services.len()),
            (Kind::EndpointSlice, self.slices.len()),
            (Kind::Secret, self.secrets.len()),
            (Kind::ConfigMap, self.config_maps.len()),
            (Kind::Namespace, self.namespaces.len()),
            (Kind::GatewayConfig, configs),
        ];
        let kinds = RouteKind::ALL.iter().map(|kind| kind.kind());
        counts.extend(kinds.zip(routes));
        counts
    }
}
