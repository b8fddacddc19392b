//! The world: all reduced objects, their reverse indexes, and what the planes observed.
//!
//! [`World::apply`], [`World::delete`] and [`World::observe`] are the only ways in. Each compares with what is there and
//! records a change only if planning would read something different, so that a source may repeat itself at no cost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::AHashMap;
use gatewright_api::{Kind, Object, ObjectName, ResourceExt};
use gatewright_ir::Text;

use crate::{
    ChangeSet, Grants, Interner, Key, Replica,
    desired::OwnedName,
    index::Index,
    object::{
        Authorities, Config, EndpointSlice, EntryService, Gateway, GatewayClass, ListenerSet, ReferenceGrant, Refusal,
        Route, RouteKey, RouteKind, Secret, Service, TlsPolicy, TrafficPolicy,
    },
};
use expiry::Clock;

/// Every declared object and every observed fact.
#[derive(Debug, Default)]
pub struct World {
    names: Interner,
    has_cluster: bool,
    pub(crate) classes: BTreeMap<Text, Arc<GatewayClass>>,
    pub(crate) gateways: BTreeMap<Key, Arc<Gateway>>,
    pub(crate) routes: BTreeMap<RouteKey, Arc<Route>>,
    sets: BTreeMap<Key, Arc<ListenerSet>>,
    policies: BTreeMap<Key, Arc<TrafficPolicy>>,
    tls_policies: BTreeMap<Key, Arc<TlsPolicy>>,
    pub(crate) services: AHashMap<Key, Service>,
    slices: AHashMap<Key, EndpointSlice>,
    /// The Services of Gateways, by Gateway.
    entries: AHashMap<Key, EntryService>,
    /// The Gateways of those Services, by Service.
    entry_gateways: AHashMap<Key, Key>,
    pub(crate) secrets: AHashMap<Key, Secret>,
    namespaces: AHashMap<Text, BTreeMap<Text, Text>>,
    pub(crate) grants: Grants,
    pub(crate) configs: AHashMap<Key, HeldConfig>,
    pub(crate) config_maps: AHashMap<Key, Authorities>,
    clock: Clock,
    /// See [`World::set_definitions`].
    definitions: Option<BTreeMap<String, Option<String>>>,
    /// Names of objects of ours that others have taken, with what was found there.
    conflicts: BTreeMap<OwnedName, Text>,
    /// By name, this one included: see [`World::set_local`].
    replicas: BTreeMap<Text, Replica>,
    /// The name of this replica.
    local: Text,
    index: Indexes,
    changes: ChangeSet,
}

/// A GatewayConfig. The last good one is held also after a change that cannot be honoured, and after its deletion while
/// someone still refers to it: so the planner can keep it in force and stays a function of the world.
#[derive(Debug)]
pub(crate) struct HeldConfig {
    /// The last good one; the declared one where none ever was good.
    pub(crate) config: Config,
    standing: Standing,
}

#[derive(Debug, PartialEq)]
enum Standing {
    InForce,
    Gone,
    /// The declared one cannot be honoured.
    Refused(Refusal),
}

#[derive(Debug, Default)]
struct Indexes {
    class_gateways: Index<Text, Key>,
    gateway_routes: Index<Key, RouteKey>,
    service_routes: Index<Key, RouteKey>,
    service_slices: Index<Key, Key>,
    service_policies: Index<Key, Key>,
    service_tls_policies: Index<Key, Key>,
    gateway_sets: Index<Key, Key>,
    set_routes: Index<Key, RouteKey>,
    secret_gateways: Index<Key, Key>,
    secret_sets: Index<Key, Key>,
    /// ConfigMaps, with the Gateways and the policies that name them.
    map_gateways: Index<Key, Key>,
    map_policies: Index<Key, Key>,
    config_classes: Index<Key, Text>,
    config_gateways: Index<Key, Key>,
    /// Namespaces that are referred to from outside, with who does: those a ReferenceGrant may concern.
    foreign_routes: Index<Text, RouteKey>,
    foreign_gateways: Index<Text, Key>,
    foreign_sets: Index<Text, Key>,
    /// Gateways that take routes which name none, and such routes.
    default_gateways: BTreeSet<Key>,
    defaulted_routes: BTreeSet<RouteKey>,
}

impl World {
    /// A world whose objects come from a cluster: Gateways can be reached through Services there.
    pub fn in_cluster() -> Self {
        Self {
            has_cluster: true,
            ..Self::default()
        }
    }

    /// Takes in a declared object, new or changed.
    pub fn apply(&mut self, object: &Object) {
        let metadata = object.metadata();
        let key = self
            .names
            .key(metadata.namespace.as_deref().unwrap_or_default(), &object.name().name);
        match object {
            Object::GatewayClass(class) => {
                let class = GatewayClass::reduce(class, &mut self.names);
                self.put_class(&key.name, Some(class));
            }
            Object::Gateway(gateway) => {
                let gateway = Gateway::reduce(gateway, &mut self.names);
                self.put_gateway(&key, Some(gateway));
            }
            Object::HttpRoute(_)
            | Object::GrpcRoute(_)
            | Object::TlsRoute(_)
            | Object::TcpRoute(_)
            | Object::UdpRoute(_) => {
                if let Some(route) = Route::reduce(object, &mut self.names) {
                    self.put_route(key, route.kind, Some(route));
                }
            }
            Object::ListenerSet(set) => {
                let set = ListenerSet::reduce(set, &mut self.names);
                self.put_set(key, Some(set));
            }
            Object::BackendTlsPolicy(policy) => {
                let policy = TlsPolicy::reduce(policy, &mut self.names);
                self.put_tls_policy(key, Some(policy));
            }
            Object::BackendTrafficPolicy(policy) => {
                let policy = TrafficPolicy::reduce(policy, &mut self.names);
                self.put_policy(key, Some(policy));
            }
            Object::ReferenceGrant(grant) => {
                let grant = ReferenceGrant::reduce(grant, &mut self.names);
                if self.grants.insert(&key, grant) {
                    self.changes.grants.insert(key.namespace);
                }
            }
            Object::Service(service) => {
                let entry = EntryService::reduce(service, &mut self.names);
                self.put_entry(&key, entry);
                let service = Service::reduce(service, &mut self.names);
                if self.services.get(&key) != Some(&service) {
                    self.services.insert(key.clone(), service);
                    self.changes.services.insert(key);
                }
            }
            Object::EndpointSlice(slice) => {
                let slice = EndpointSlice::reduce(slice, &mut self.names);
                self.put_slice(&key, Some(slice));
            }
            Object::Secret(secret) => {
                let secret = Secret::reduce(secret);
                self.put_secret(key, Some(secret));
            }
            Object::ConfigMap(map) => self.put_map(&key, Some(Authorities::reduce(map))),
            Object::Namespace(namespace) => {
                let names = &mut self.names;
                let mut labels: BTreeMap<Text, Text> = namespace
                    .labels()
                    .iter()
                    .map(|(key, value)| (names.text(key), names.text(value)))
                    .collect();
                // The API server gives every Namespace this label; selectors rely on it.
                labels.insert(names.text("kubernetes.io/metadata.name"), key.name.clone());
                if self.namespaces.get(&key.name) != Some(&labels) {
                    self.namespaces.insert(key.name.clone(), labels);
                    self.changes.namespaces.insert(key.name);
                }
            }
            Object::GatewayConfig(config) => {
                let config = Config::reduce(config, self.has_cluster);
                self.put_config(key, config);
            }
        }
    }

    /// Forgets a declared object.
    pub fn delete(&mut self, name: &ObjectName) {
        let key = self.names.key(&name.namespace, &name.name);
        match name.kind {
            Kind::GatewayClass => self.put_class(&key.name, None),
            Kind::Gateway => self.put_gateway(&key, None),
            Kind::HttpRoute | Kind::GrpcRoute | Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => {
                if let Some(kind) = RouteKind::of(name.kind) {
                    self.put_route(key, kind, None);
                }
            }
            Kind::ListenerSet => self.put_set(key, None),
            Kind::BackendTlsPolicy => self.put_tls_policy(key, None),
            Kind::BackendTrafficPolicy => self.put_policy(key, None),
            Kind::ReferenceGrant => {
                if self.grants.remove(&key) {
                    self.changes.grants.insert(key.namespace);
                }
            }
            Kind::Service => {
                self.put_entry(&key, None);
                if self.services.remove(&key).is_some() {
                    self.changes.services.insert(key);
                }
            }
            Kind::EndpointSlice => self.put_slice(&key, None),
            Kind::Secret => self.put_secret(key, None),
            Kind::ConfigMap => self.put_map(&key, None),
            Kind::Namespace => {
                if self.namespaces.remove(&key.name).is_some() {
                    self.changes.namespaces.insert(key.name);
                }
            }
            Kind::GatewayConfig => {
                if let Some(held) = self.configs.get_mut(&key)
                    && held.standing != Standing::Gone
                {
                    held.standing = Standing::Gone;
                    self.drop_unused_config(&key);
                    self.changes.configs.insert(key);
                }
            }
        }
    }

    /// Takes in that an object which we would make is there and not ours, or not any more.
    pub fn set_conflict(&mut self, name: &OwnedName, message: Option<&str>) {
        let message = message.map(Text::from);
        if self.conflicts.get(name) == message.as_ref() {
            return;
        }
        match message {
            Some(message) => self.conflicts.insert(name.clone(), message),
            None => self.conflicts.remove(name),
        };
        self.changes.conflicts.insert(name.clone());
    }

    /// What changed since this was last asked.
    pub fn take_changes(&mut self) -> ChangeSet {
        std::mem::take(&mut self.changes)
    }

    /// Everything that is there, as if it had all just appeared: for planning from scratch.
    pub fn everything(&self) -> ChangeSet {
        ChangeSet {
            classes: self.classes.keys().cloned().collect(),
            gateways: self.gateways.keys().cloned().collect(),
            routes: self.routes.keys().cloned().collect(),
            services: self.services.keys().cloned().collect(),
            sets: self.sets.keys().cloned().collect(),
            policies: self.policies.keys().cloned().collect(),
            tls_policies: self.tls_policies.keys().cloned().collect(),
            secrets: self.secrets.keys().cloned().collect(),
            configs: self.configs.keys().cloned().collect(),
            ..ChangeSet::default()
        }
    }
}

mod definitions;
mod expiry;
mod facts;
mod invalid;
mod put;
mod put_config;
mod read;

pub use expiry::Validity;
pub use read::ConfigStanding;

#[cfg(test)]
mod tests;
