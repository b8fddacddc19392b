//! Objects that an API server has accepted and that our types cannot read.
//!
//! They are there, so their status must say what is wrong with them; what they declare is not known, so nothing of it is
//! done. What was salvaged is enough to find out whose they are.

use gatewright_api::{Kind, Object, ObjectName};

use super::World;
use crate::object::{Config, Gateway, GatewayClass, ListenerSet, Refusal, Route, TlsPolicy, TrafficPolicy};

/// So much of an error is shown; it may quote what it could not read.
const LONGEST_ERROR: usize = 1000;

impl World {
    /// Takes in an object that cannot be read. A GatewayClass, a Gateway and a route show the error; a GatewayConfig
    /// leaves its last good settings in force; other kinds count as absent. It is deleted like any other.
    pub fn apply_invalid(&mut self, name: &ObjectName, salvaged: Option<&Object>, error: &str) {
        let key = self.names.key(&name.namespace, &name.name);
        let shown: String = error.chars().take(LONGEST_ERROR).collect();
        let refusal = Refusal::invalid("object", format!("cannot be read: {shown}"));
        match (name.kind, salvaged) {
            (Kind::GatewayClass, Some(Object::GatewayClass(class))) => {
                let class = GatewayClass::reduce(class, &mut self.names);
                let refusal = Some(refusal);
                self.put_class(&key.name, Some(GatewayClass { refusal, ..class }));
            }
            (Kind::Gateway, Some(Object::Gateway(gateway))) => {
                let gateway = Gateway::reduce(gateway, &mut self.names);
                let refusals = Box::new([refusal]);
                self.put_gateway(&key, Some(Gateway { refusals, ..gateway }));
            }
            (kind, Some(object)) if kind.is_route() => {
                if let Some(route) = Route::reduce(object, &mut self.names) {
                    let refusals = Box::new([refusal]);
                    self.put_route(key, route.kind, Some(Route { refusals, ..route }));
                }
            }
            (Kind::ListenerSet, Some(Object::ListenerSet(set))) => {
                let set = ListenerSet::reduce(set, &mut self.names);
                let refusals = Box::new([refusal]);
                self.put_set(key, Some(ListenerSet { refusals, ..set }));
            }
            (Kind::BackendTlsPolicy, Some(Object::BackendTlsPolicy(policy))) => {
                let policy = TlsPolicy::reduce(policy, &mut self.names);
                let refusals = Box::new([refusal]);
                self.put_tls_policy(key, Some(TlsPolicy { refusals, ..policy }));
            }
            (Kind::BackendTrafficPolicy, Some(Object::BackendTrafficPolicy(policy))) => {
                let policy = TrafficPolicy::reduce(policy, &mut self.names);
                let refusals = Box::new([refusal]);
                self.put_policy(key, Some(TrafficPolicy { refusals, ..policy }));
            }
            (Kind::GatewayConfig, _) => {
                let refusals = Box::new([refusal]);
                self.put_config(
                    key,
                    Config {
                        refusals,
                        ..Config::default()
                    },
                );
            }
            // Nothing was salvaged: whatever was known of it holds no longer.
            _ => self.delete(name),
        }
    }
}

#[cfg(test)]
mod tests;
