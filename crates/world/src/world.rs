//! The world: all reduced objects, their reverse indexes, and what the planes observed.
//!
//! [`World::apply`], [`World::delete`] and [`World::observe`] are the only ways in. Each compares with what is there and
//! records a change only if planning would read something different, so that a source may repeat itself at no cost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ahash::{AHashMap, AHashSet};
use gatewright_api::{Kind, Object, ObjectName, ResourceExt};
use gatewright_ir::Text;

use crate::{
    ChangeSet, Grants, Interner, Key, Replica,
    desired::OwnedName,
    index::Index,
    object::{
        Config, EndpointSlice, EntryService, Gateway, GatewayClass, ParametersRef, ReferenceGrant, Refusal, Route,
        RouteKey, RouteKind, Secret, Service, TrafficPolicy,
    },
};

/// Every declared object and every observed fact.
#[derive(Debug, Default)]
pub struct World {
    names: Interner,
    has_cluster: bool,
    pub(crate) classes: BTreeMap<Text, Arc<GatewayClass>>,
    pub(crate) gateways: BTreeMap<Key, Arc<Gateway>>,
    pub(crate) routes: BTreeMap<RouteKey, Arc<Route>>,
    policies: BTreeMap<Key, Arc<TrafficPolicy>>,
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
    config_maps: AHashSet<Key>,
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
    secret_gateways: Index<Key, Key>,
    config_classes: Index<Key, Text>,
    config_gateways: Index<Key, Key>,
    /// Namespaces that are referred to from outside, with who does: those a ReferenceGrant may concern.
    foreign_routes: Index<Text, RouteKey>,
    foreign_gateways: Index<Text, Key>,
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
            Object::HttpRoute(route) => {
                let route = Route::of_http(route, &mut self.names);
                self.put_route(key, RouteKind::Http, Some(route));
            }
            Object::GrpcRoute(route) => {
                let route = Route::of_grpc(route, &mut self.names);
                self.put_route(key, RouteKind::Grpc, Some(route));
            }
            Object::TlsRoute(_)
            | Object::TcpRoute(_)
            | Object::UdpRoute(_)
            | Object::ListenerSet(_)
            | Object::BackendTlsPolicy(_) => {}
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
                if self.secrets.get(&key) != Some(&secret) {
                    self.secrets.insert(key.clone(), secret);
                    self.changes.secrets.insert(key);
                }
            }
            Object::ConfigMap(_) => {
                self.config_maps.insert(key);
            }
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
            Kind::HttpRoute => self.put_route(key, RouteKind::Http, None),
            Kind::GrpcRoute => self.put_route(key, RouteKind::Grpc, None),
            Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute | Kind::ListenerSet | Kind::BackendTlsPolicy => {}
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
            Kind::Secret => {
                if self.secrets.remove(&key).is_some() {
                    self.changes.secrets.insert(key);
                }
            }
            Kind::ConfigMap => {
                self.config_maps.remove(&key);
            }
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
            policies: self.policies.keys().cloned().collect(),
            secrets: self.secrets.keys().cloned().collect(),
            configs: self.configs.keys().cloned().collect(),
            ..ChangeSet::default()
        }
    }

    fn put_class(&mut self, name: &Text, class: Option<GatewayClass>) {
        let old = self.classes.get(name).cloned();
        if old.as_deref() == class.as_ref() {
            return;
        }
        let config = |class: &GatewayClass| class.parameters.as_ref().and_then(config_key);
        let old_config = old.as_deref().and_then(config);
        if let Some(key) = &old_config {
            self.index.config_classes.remove(key, name);
        }
        match class {
            Some(class) => {
                if let Some(key) = config(&class) {
                    self.index.config_classes.insert(key, name.clone());
                }
                self.classes.insert(name.clone(), Arc::new(class));
            }
            None => {
                self.classes.remove(name);
            }
        }
        if let Some(key) = old_config {
            self.drop_unused_config(&key);
        }
        self.changes.classes.insert(name.clone());
    }

    fn put_gateway(&mut self, key: &Key, gateway: Option<Gateway>) {
        let old = self.gateways.get(key).cloned();
        if old.as_deref() == gateway.as_ref() {
            return;
        }
        if let Some(old) = &old {
            self.index.class_gateways.remove(&old.class, key);
            self.index.default_gateways.remove(key);
            for secret in secrets_of(key, old) {
                self.index.secret_gateways.remove(&secret, key);
                if secret.namespace != key.namespace {
                    self.index.foreign_gateways.remove(&secret.namespace, key);
                }
            }
            if let Some(config) = own_config(key, old) {
                self.index.config_gateways.remove(&config, key);
            }
        }
        match gateway {
            Some(gateway) => {
                self.index.class_gateways.insert(gateway.class.clone(), key.clone());
                if gateway.is_default {
                    self.index.default_gateways.insert(key.clone());
                }
                for secret in secrets_of(key, &gateway) {
                    if secret.namespace != key.namespace {
                        self.index
                            .foreign_gateways
                            .insert(secret.namespace.clone(), key.clone());
                    }
                    self.index.secret_gateways.insert(secret, key.clone());
                }
                if let Some(config) = own_config(key, &gateway) {
                    self.index.config_gateways.insert(config, key.clone());
                }
                self.gateways.insert(key.clone(), Arc::new(gateway));
            }
            None => {
                self.gateways.remove(key);
            }
        }
        if let Some(config) = old.and_then(|old| own_config(key, &old)) {
            self.drop_unused_config(&config);
        }
        self.changes.gateways.insert(key.clone());
    }

    fn put_route(&mut self, key: Key, kind: RouteKind, route: Option<Route>) {
        let key = RouteKey { key, kind };
        let old = self.routes.get(&key).cloned();
        if old.as_deref() == route.as_ref() {
            return;
        }
        let own = &key.key.namespace;
        if let Some(old) = &old {
            self.index.defaulted_routes.remove(&key);
            for gateway in gateways_of(own, old) {
                self.index.gateway_routes.remove(&gateway, &key);
            }
            for service in old.services().map(|service| service.key(own)) {
                if service.namespace != *own {
                    self.index.foreign_routes.remove(&service.namespace, &key);
                }
                self.index.service_routes.remove(&service, &key);
            }
        }
        match route {
            Some(route) => {
                if route.uses_defaults {
                    self.index.defaulted_routes.insert(key.clone());
                }
                for gateway in gateways_of(own, &route) {
                    self.index.gateway_routes.insert(gateway, key.clone());
                }
                for service in route.services().map(|service| service.key(own)) {
                    if service.namespace != *own {
                        self.index.foreign_routes.insert(service.namespace.clone(), key.clone());
                    }
                    self.index.service_routes.insert(service, key.clone());
                }
                self.routes.insert(key.clone(), Arc::new(route));
            }
            None => {
                self.routes.remove(&key);
            }
        }
        self.changes.routes.insert(key);
    }

    fn put_policy(&mut self, key: Key, policy: Option<TrafficPolicy>) {
        let old = self.policies.get(&key).cloned();
        if old.as_deref() == policy.as_ref() {
            return;
        }
        let service = |name: &Text| Key {
            namespace: key.namespace.clone(),
            name: name.clone(),
        };
        for service in old.iter().flat_map(|old| old.services.iter()).map(service) {
            self.index.service_policies.remove(&service, &key);
            self.changes.endpoints.insert(service);
        }
        match policy {
            Some(policy) => {
                for service in policy.services.iter().map(service) {
                    self.index.service_policies.insert(service.clone(), key.clone());
                    self.changes.endpoints.insert(service);
                }
                self.policies.insert(key.clone(), Arc::new(policy));
            }
            None => {
                self.policies.remove(&key);
            }
        }
        self.changes.policies.insert(key);
    }

    fn put_slice(&mut self, key: &Key, slice: Option<EndpointSlice>) {
        if self.slices.get(key) == slice.as_ref() {
            return;
        }
        let old = self.slices.remove(key);
        if let Some(service) = old.and_then(|old| old.service) {
            self.index.service_slices.remove(&service, key);
            self.changes.endpoints.insert(service);
        }
        if let Some(slice) = slice {
            if let Some(service) = &slice.service {
                self.index.service_slices.insert(service.clone(), key.clone());
                self.changes.endpoints.insert(service.clone());
            }
            self.slices.insert(key.clone(), slice);
        }
    }

    fn put_entry(&mut self, service: &Key, entry: Option<EntryService>) {
        let old = self.entry_gateways.get(service).cloned();
        if old.as_ref().and_then(|gateway| self.entries.get(gateway)) == entry.as_ref() {
            return;
        }
        if let Some(gateway) = old {
            self.entry_gateways.remove(service);
            self.entries.remove(&gateway);
            self.changes.entries.insert(gateway);
        }
        if let Some(entry) = entry {
            self.changes.entries.insert(entry.gateway.clone());
            self.entry_gateways.insert(service.clone(), entry.gateway.clone());
            self.entries.insert(entry.gateway.clone(), entry);
        }
    }

    fn put_config(&mut self, key: Key, declared: Config) {
        let standing = declared.refusals.first().cloned();
        let standing = standing.map_or(Standing::InForce, Standing::Refused);
        let known = self.configs.remove(&key);
        let (is_known, config) = match known {
            // What cannot be honoured never replaces what could.
            Some(held) if standing != Standing::InForce && held.config.refusals.is_empty() => {
                (held.standing == standing, held.config)
            }
            known => {
                let is_known = known.is_some_and(|held| held.config == declared && held.standing == standing);
                (is_known, declared)
            }
        };
        self.configs.insert(key.clone(), HeldConfig { config, standing });
        if !is_known {
            self.changes.configs.insert(key);
        }
    }

    /// Lets go of a deleted GatewayConfig that nobody refers to, or that never was good.
    fn drop_unused_config(&mut self, key: &Key) {
        let is_used =
            self.index.config_classes.get(key).next().is_some() || self.index.config_gateways.get(key).next().is_some();
        let is_idle =
            |held: &HeldConfig| held.standing == Standing::Gone && !(is_used && held.config.refusals.is_empty());
        if self.configs.get(key).is_some_and(is_idle) {
            self.configs.remove(key);
        }
    }
}

mod facts;
mod invalid;
mod read;

pub use read::ConfigStanding;

/// The GatewayConfig that a class's reference names, if it names one.
fn config_key(reference: &ParametersRef) -> Option<Key> {
    let is_config =
        *reference.group == *Kind::GatewayConfig.group() && *reference.kind == *Kind::GatewayConfig.as_str();
    let namespace = reference.namespace.clone().filter(|_| is_config)?;
    Some(Key {
        namespace,
        name: reference.name.clone(),
    })
}

fn own_config(key: &Key, gateway: &Gateway) -> Option<Key> {
    let mut reference = gateway.parameters.clone()?;
    reference.namespace = Some(key.namespace.clone());
    config_key(&reference)
}

fn secrets_of(key: &Key, gateway: &Gateway) -> Vec<Key> {
    let references = gateway
        .listeners
        .iter()
        .flat_map(|listener| listener.certificates.iter());
    let secrets = references.map(|reference| Key {
        namespace: reference.namespace.clone().unwrap_or_else(|| key.namespace.clone()),
        name: reference.name.clone(),
    });
    secrets.collect()
}

fn gateways_of(own: &Text, route: &Route) -> Vec<Key> {
    let parents = route.parents.iter().filter(|parent| parent.is_gateway());
    let gateways = parents.map(|parent| Key {
        namespace: parent.namespace.as_ref().unwrap_or(own).clone(),
        name: parent.name.clone(),
    });
    gateways.collect()
}

#[cfg(test)]
mod tests;
