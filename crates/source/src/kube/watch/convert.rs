//! Makes a declared object of what the API server sent.
//!
//! What cannot be read becomes an invalid object that keeps just enough to be answered in its status.

use gatewright_api::{AUTHORITIES_KEY, Kind, Object, ObjectName};
use serde_json::{Map, Value, json};

use crate::{Change, kube::raw::Raw};

pub(super) fn name(kind: Kind, raw: &Raw) -> ObjectName {
    ObjectName {
        kind,
        namespace: raw.namespace().to_owned(),
        name: raw.name().to_owned(),
    }
}

/// Drops what nobody reads, before it is compared with what was there or kept for a moment.
///
/// A cluster has many ConfigMaps, some large and some written every other second as locks. What is left of them is what a
/// reference means, so that the rest costs nothing and wakes nobody.
pub(super) fn reduce(kind: Kind, raw: &mut Raw) {
    if kind != Kind::ConfigMap {
        return;
    }
    let Some(fields) = raw.value.as_object_mut() else {
        return;
    };
    fields.retain(|key, _| ["apiVersion", "kind", "metadata", "data", "binaryData"].contains(&key.as_str()));
    for data in ["data", "binaryData"] {
        if let Some(data) = fields.get_mut(data).and_then(Value::as_object_mut) {
            // Nothing refers to any other.
            data.retain(|key, _| key == AUTHORITIES_KEY);
        }
    }
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
        metadata.remove("labels");
    }
}

/// The change that this object is.
pub(super) fn convert(kind: Kind, raw: Raw) -> Change {
    let name = name(kind, &raw);
    // Reading takes the value apart; what is needed should it fail is small.
    let remains = remains(kind, &raw.value);
    match Object::from_value(kind, raw.value) {
        Ok(object) => Change::Apply(Box::new(object)),
        Err(error) => {
            let salvaged = remains.and_then(|mut remains| {
                remains.insert("metadata".to_owned(), serde_json::to_value(&raw.metadata).ok()?);
                Object::from_value(kind, Value::Object(remains)).ok()
            });
            Change::Invalid {
                name,
                salvaged: salvaged.map(Box::new),
                error: error.to_string(),
            }
        }
    }
}

/// What the status of an object needs, read without trusting anything else in it.
fn remains(kind: Kind, value: &Value) -> Option<Map<String, Value>> {
    let spec = value.get("spec")?;
    let spec = match kind {
        Kind::GatewayClass => json!({ "controllerName": spec.get("controllerName")? }),
        Kind::Gateway => json!({ "gatewayClassName": spec.get("gatewayClassName")?, "listeners": [] }),
        Kind::HttpRoute | Kind::GrpcRoute => json!({ "parentRefs": parents(spec) }),
        Kind::TlsRoute | Kind::TcpRoute | Kind::UdpRoute => {
            json!({ "parentRefs": parents(spec), "hostnames": [], "rules": [] })
        }
        Kind::ListenerSet => {
            json!({ "parentRef": spec.get("parentRef").filter(|parent| is_readable(parent))?, "listeners": [] })
        }
        Kind::BackendTlsPolicy => json!({ "targetRefs": targets(spec), "validation": { "hostname": "" } }),
        Kind::BackendTrafficPolicy => json!({ "targetRefs": targets(spec) }),
        Kind::ReferenceGrant
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Secret
        | Kind::ConfigMap
        | Kind::Namespace
        | Kind::GatewayConfig => return None,
    };
    let mut remains = Map::new();
    remains.insert("spec".to_owned(), spec);
    Some(remains)
}

/// The parents of a route that can be read.
fn parents(spec: &Value) -> Vec<&Value> {
    let parents = spec.get("parentRefs").and_then(Value::as_array);
    parents
        .into_iter()
        .flatten()
        .filter(|parent| is_readable(parent))
        .collect()
}

/// The targets of a policy that can be read.
fn targets(spec: &Value) -> Vec<&Value> {
    let targets = spec.get("targetRefs").and_then(Value::as_array);
    let is_readable = |target: &&Value| {
        let is_text = |key| target.get(key).is_some_and(Value::is_string);
        ["group", "kind", "name"].into_iter().all(is_text) && target.get("sectionName").is_none_or(Value::is_string)
    };
    targets.into_iter().flatten().filter(is_readable).collect()
}

fn is_readable(parent: &Value) -> bool {
    let is_text = |key| parent.get(key).is_none_or(Value::is_string);
    parent.get("name").is_some_and(Value::is_string)
        && ["group", "kind", "namespace", "sectionName"].into_iter().all(is_text)
        && parent
            .get("port")
            .is_none_or(|port| port.as_i64().is_some_and(|port| i32::try_from(port).is_ok()))
}

#[cfg(test)]
mod tests;
