//! A status as it stands in Kubernetes, with the times of its conditions.
//!
//! [`Stamps`] belongs to whoever shows a status and keeps, per condition, when it last changed its state.

use gatewright_api::{GATEWAY_GROUP, Kind};
use serde_json::{Value, json};

use super::{Address, Condition, ListenerStatus, Scope, Status};
use crate::object::ParentRef;

/// When each condition of one object last changed its state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stamps {
    times: Vec<Stamp>,
}

#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    scope: String,
    condition: Condition,
    time: String,
}

impl Stamps {
    /// Takes over a new status: conditions that kept their state keep their time, the others get `now` (RFC 3339).
    pub fn update(&mut self, status: &Status, now: &str) {
        let old = std::mem::take(&mut self.times);
        self.times = status
            .conditions()
            .into_iter()
            .map(|(scope, condition)| {
                let scope = scope_text(&scope);
                let kept = old.iter().find(|stamp| {
                    stamp.scope == scope
                        && stamp.condition.kind == condition.kind
                        && stamp.condition.state == condition.state
                });
                let time = kept.map_or_else(|| now.to_owned(), |stamp| stamp.time.clone());
                Stamp {
                    scope,
                    condition: condition.clone(),
                    time,
                }
            })
            .collect();
    }

    fn time(&self, scope: &Scope<'_>, condition: &Condition) -> &str {
        let scope = scope_text(scope);
        let stamp = self
            .times
            .iter()
            .find(|stamp| stamp.scope == scope && stamp.condition.kind == condition.kind);
        stamp.map_or("1970-01-01T00:00:00Z", |stamp| &stamp.time)
    }
}

fn scope_text(scope: &Scope<'_>) -> String {
    match scope {
        Scope::Object => String::new(),
        Scope::Listener(name) => format!("listener {name}"),
        Scope::Parent(parent) => format!("parent {parent:?}"),
        Scope::Ancestor(gateway) => format!("ancestor {gateway}"),
    }
}

/// The `status` of an object, exactly as it would stand in Kubernetes.
pub fn render(status: &Status, controller: &str, stamps: &Stamps) -> Value {
    let generation = status.generation();
    let conditions = |scope: &Scope<'_>, conditions: &[Condition]| -> Value {
        let rendered = conditions.iter().map(|condition| {
            json!({
                "type": condition.kind.as_str(),
                "status": condition.state.as_str(),
                "reason": condition.reason.as_str(),
                "message": condition.message,
                "observedGeneration": generation,
                "lastTransitionTime": stamps.time(scope, condition),
            })
        });
        rendered.collect()
    };
    let listeners = |listeners: &[ListenerStatus]| -> Value {
        let rendered = listeners.iter().map(|listener| {
            let kinds = listener.kinds.iter();
            let kinds = kinds.map(|kind| json!({"group": GATEWAY_GROUP, "kind": kind}));
            json!({
                "name": listener.name,
                "attachedRoutes": listener.attached,
                "supportedKinds": kinds.collect::<Value>(),
                "conditions": conditions(&Scope::Listener(&listener.name), &listener.conditions),
            })
        });
        rendered.collect()
    };
    match status {
        Status::GatewayClass(status) => json!({
            "conditions": conditions(&Scope::Object, &status.conditions),
            "supportedFeatures": status.features.iter().map(|name| json!({ "name": name })).collect::<Value>(),
        }),
        Status::Gateway(status) => {
            let addresses = status.addresses.iter().map(|address| match address {
                Address::Ip(address) => json!({"type": "IPAddress", "value": address}),
                Address::Hostname(name) => json!({"type": "Hostname", "value": name}),
            });
            json!({
                "addresses": addresses.collect::<Value>(),
                "attachedListenerSets": status.attached_sets,
                "conditions": conditions(&Scope::Object, &status.conditions),
                "listeners": listeners(&status.listeners),
            })
        }
        Status::ListenerSet(status) => json!({
            "conditions": conditions(&Scope::Object, &status.conditions),
            "listeners": listeners(&status.listeners),
        }),
        Status::Route(status) => {
            let parents = status.parents.iter().map(|parent| {
                json!({
                    "parentRef": parent_ref(&parent.parent),
                    "controllerName": controller,
                    "conditions": conditions(&Scope::Parent(&parent.parent), &parent.conditions),
                })
            });
            json!({ "parents": parents.collect::<Value>() })
        }
        Status::Policy(status) => {
            let ancestors = status.gateways.iter().map(|gateway| {
                json!({
                    "ancestorRef": {
                        "group": GATEWAY_GROUP,
                        "kind": Kind::Gateway.as_str(),
                        "namespace": gateway.namespace,
                        "name": gateway.name,
                    },
                    "controllerName": controller,
                    "conditions": conditions(&Scope::Ancestor(gateway), &status.conditions),
                })
            });
            json!({ "ancestors": ancestors.collect::<Value>() })
        }
    }
}

fn parent_ref(parent: &ParentRef) -> Value {
    let ParentRef {
        group,
        kind,
        namespace,
        name,
        section,
        port,
    } = parent;
    let mut rendered = json!({ "group": group, "kind": kind, "name": name });
    if let Some(fields) = rendered.as_object_mut() {
        if let Some(namespace) = namespace {
            fields.insert("namespace".to_owned(), json!(namespace));
        }
        if let Some(section) = section {
            fields.insert("sectionName".to_owned(), json!(section));
        }
        if let Some(port) = port {
            fields.insert("port".to_owned(), json!(port));
        }
    }
    rendered
}

#[cfg(test)]
mod tests;
