//! Puts reduced objects into the world and keeps its indexes true: compares with what is there, and notes what changed.

use std::sync::Arc;

use gatewright_ir::Text;

use super::{
    World,
    put_config::{config_key, own_config},
};
use crate::{
    Key,
    object::{
        Authorities, EndpointSlice, EntryService, Gateway, GatewayClass, Listener, ListenerSet, Route, RouteKey,
        RouteKind, Secret, TlsPolicy, TrafficPolicy,
    },
};

impl World {
    pub(super) fn put_class(&mut self, name: &Text, class: Option<GatewayClass>) {
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

    pub(super) fn put_gateway(&mut self, key: &Key, gateway: Option<Gateway>) {
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
            for map in maps_of(key, old) {
                if map.namespace != key.namespace {
                    self.index.foreign_gateways.remove(&map.namespace, key);
                }
                self.index.map_gateways.remove(&map, key);
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
                for map in maps_of(key, &gateway) {
                    if map.namespace != key.namespace {
                        self.index.foreign_gateways.insert(map.namespace.clone(), key.clone());
                    }
                    self.index.map_gateways.insert(map, key.clone());
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

    pub(super) fn put_route(&mut self, key: Key, kind: RouteKind, route: Option<Route>) {
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
            for set in sets_of(own, old) {
                self.index.set_routes.remove(&set, &key);
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
                for set in sets_of(own, &route) {
                    self.index.set_routes.insert(set, key.clone());
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

    pub(super) fn put_policy(&mut self, key: Key, policy: Option<TrafficPolicy>) {
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

    pub(super) fn put_slice(&mut self, key: &Key, slice: Option<EndpointSlice>) {
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

    pub(super) fn put_entry(&mut self, service: &Key, entry: Option<EntryService>) {
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

    pub(super) fn put_secret(&mut self, key: Key, secret: Option<Secret>) {
        if self.secrets.get(&key) == secret.as_ref() {
            return;
        }
        let material = secret.as_ref().and_then(|secret| secret.tls.as_ref().ok());
        self.clock.follow(&key, material.map(|material| material.validity));
        match secret {
            Some(secret) => self.secrets.insert(key.clone(), secret),
            None => self.secrets.remove(&key),
        };
        self.changes.secrets.insert(key);
    }

    pub(super) fn put_map(&mut self, key: &Key, authorities: Option<Authorities>) {
        if self.config_maps.get(key) == authorities.as_ref() {
            return;
        }
        match authorities {
            Some(authorities) => self.config_maps.insert(key.clone(), authorities),
            None => self.config_maps.remove(key),
        };
        for gateway in self.index.map_gateways.get(key) {
            self.changes.gateways.insert(gateway.clone());
        }
        let policies = self.index.map_policies.get(key);
        for policy in policies {
            if let Some(declared) = self.tls_policies.get(policy) {
                self.changes.services.extend(targets_of(policy, declared));
            }
            self.changes.tls_policies.insert(policy.clone());
        }
    }

    pub(super) fn put_set(&mut self, key: Key, set: Option<ListenerSet>) {
        let old = self.sets.get(&key).cloned();
        if old.as_deref() == set.as_ref() {
            return;
        }
        if let Some(old) = &old {
            if let Some(gateway) = &old.gateway {
                self.index.gateway_sets.remove(gateway, &key);
                self.changes.gateways.insert(gateway.clone());
            }
            for secret in certificates_of(&key.namespace, &old.listeners) {
                self.index.secret_sets.remove(&secret, &key);
                if secret.namespace != key.namespace {
                    self.index.foreign_sets.remove(&secret.namespace, &key);
                }
            }
        }
        match set {
            Some(set) => {
                if let Some(gateway) = &set.gateway {
                    self.index.gateway_sets.insert(gateway.clone(), key.clone());
                    self.changes.gateways.insert(gateway.clone());
                }
                for secret in certificates_of(&key.namespace, &set.listeners) {
                    if secret.namespace != key.namespace {
                        self.index.foreign_sets.insert(secret.namespace.clone(), key.clone());
                    }
                    self.index.secret_sets.insert(secret, key.clone());
                }
                self.sets.insert(key.clone(), Arc::new(set));
            }
            None => {
                self.sets.remove(&key);
            }
        }
        self.changes.sets.insert(key);
    }

    pub(super) fn put_tls_policy(&mut self, key: Key, policy: Option<TlsPolicy>) {
        let old = self.tls_policies.get(&key).cloned();
        if old.as_deref() == policy.as_ref() {
            return;
        }
        if let Some(old) = &old {
            for service in targets_of(&key, old) {
                self.index.service_tls_policies.remove(&service, &key);
                self.changes.services.insert(service);
            }
            for map in old.authorities.iter().map(|map| map.key(&key.namespace)) {
                self.index.map_policies.remove(&map, &key);
            }
        }
        match policy {
            Some(policy) => {
                for service in targets_of(&key, &policy) {
                    self.index.service_tls_policies.insert(service.clone(), key.clone());
                    self.changes.services.insert(service);
                }
                for map in policy.authorities.iter().map(|map| map.key(&key.namespace)) {
                    self.index.map_policies.insert(map, key.clone());
                }
                self.tls_policies.insert(key.clone(), Arc::new(policy));
            }
            None => {
                self.tls_policies.remove(&key);
            }
        }
        self.changes.tls_policies.insert(key);
    }
}

/// The Secrets that a Gateway names: certificates of its listeners and its own.
fn secrets_of(key: &Key, gateway: &Gateway) -> Vec<Key> {
    let certificates = certificates_of(&key.namespace, &gateway.listeners);
    let own = gateway.identity.iter().map(|identity| identity.key(&key.namespace));
    certificates.chain(own).collect()
}

fn certificates_of(own: &Text, listeners: &[Arc<Listener>]) -> impl Iterator<Item = Key> {
    let references = listeners.iter().flat_map(|listener| listener.certificates.iter());
    references.map(move |reference| reference.key(own))
}

/// The ConfigMaps that a Gateway names.
fn maps_of(key: &Key, gateway: &Gateway) -> Vec<Key> {
    let references = gateway.frontend.authorities();
    references.map(|reference| reference.key(&key.namespace)).collect()
}

fn gateways_of(own: &Text, route: &Route) -> Vec<Key> {
    let parents = route.parents.iter().filter(|parent| parent.is_gateway());
    parents.map(|parent| parent.key(own)).collect()
}

fn sets_of(own: &Text, route: &Route) -> Vec<Key> {
    let parents = route.parents.iter().filter(|parent| parent.is_listener_set());
    parents.map(|parent| parent.key(own)).collect()
}

/// The Services that a policy is for, each once or more.
fn targets_of(key: &Key, policy: &TlsPolicy) -> Vec<Key> {
    let targets = policy.targets.iter().map(|target| Key {
        namespace: key.namespace.clone(),
        name: target.service.clone(),
    });
    targets.collect()
}

#[cfg(test)]
mod tests;
