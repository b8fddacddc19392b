//! What an owned object carries beside what the plan wants of it, and whose an object is.

use ::kube::api::ApiResource;
use gatewright_api::{Kind, ObjectName};
use gatewright_world::desired::owned::{MANAGED_BY, MANAGER};
use serde_json::{Map, Value, json};

use super::{OwnedName, covers::covers, has_label};
use crate::kube::{raw::Raw, stable_hash};

/// Which controller made an object: two installations may share a cluster.
pub(crate) const CONTROLLER: &str = "gatewright.dev/controller";
/// A hash of what was applied, so that a field that is no longer wanted is noticed even after a restart.
pub(super) const APPLIED: &str = "gatewright.dev/applied";

/// An object as it is applied, with the hash that stands in it.
#[derive(Debug)]
pub(super) struct Full {
    pub(super) value: Value,
    pub(super) hash: u64,
}

/// Whose an object is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Ours,
    /// Not marked as ours, but it belongs to the object that ours would belong to.
    Adoptable,
    /// Somebody else's, with the reason to believe so.
    Foreign(String),
}

/// The object that an owned one belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub(super) name: &'a ObjectName,
    pub(super) resource: &'a ApiResource,
    pub(super) uid: &'a str,
}

/// The whole object.
pub(super) fn full(name: &OwnedName, wanted: &Value, owner: Owner<'_>, controller: &str) -> Full {
    let mut value = wanted.clone();
    if !value.is_object() {
        value = json!({});
    }
    let resource = name.kind.resource();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(resource.api_version));
        fields.insert("kind".to_owned(), json!(resource.kind));
        let metadata = child(fields, "metadata");
        metadata.insert("name".to_owned(), json!(name.name));
        metadata.insert("namespace".to_owned(), json!(name.namespace));
        child(metadata, "labels").insert(MANAGED_BY.to_owned(), json!(MANAGER));
        child(metadata, "annotations").insert(CONTROLLER.to_owned(), json!(controller));
        let reference = json!({
            "apiVersion": owner.resource.api_version,
            "kind": owner.resource.kind,
            "name": owner.name.name,
            "uid": owner.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        });
        metadata.insert("ownerReferences".to_owned(), json!([reference]));
    }
    // Maps are sorted, so equal objects are equal text.
    let hash = stable_hash(value.to_string().as_bytes());
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        child(metadata, "annotations").insert(APPLIED.to_owned(), json!(format!("{hash:016x}")));
    }
    Full { value, hash }
}

/// Whether an object is as it should be.
pub(super) fn is_as_wanted(found: &Value, full: &Full) -> bool {
    covers(found, &full.value)
}

fn child<'a>(fields: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = fields.entry(key).or_insert_with(|| json!({}));
    if !slot.is_object() {
        *slot = json!({});
    }
    match slot {
        Value::Object(child) => child,
        _ => unreachable!("it has just been made an object"),
    }
}

/// Whose an object is, seen from the owner that ours would have; none when it is no longer wanted.
pub(super) fn whose(raw: &Raw, owner: Option<(&ObjectName, &str)>, controller: &str) -> Whose {
    let metadata = &raw.metadata;
    let annotation = metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(CONTROLLER));
    let is_marked = has_label(raw) && annotation.map(String::as_str) == Some(controller);
    let references = metadata.owner_references.iter().flatten();
    let controlling = references
        .into_iter()
        .find(|reference| reference.controller == Some(true));
    let Some(controlling) = controlling else {
        return if is_marked {
            Whose::Ours
        } else {
            Whose::Foreign("it is not managed by this controller".to_owned())
        };
    };
    let by = || format!("it belongs to {} {}", controlling.kind, controlling.name);
    match owner {
        // By name: the owner may have been deleted and made again.
        Some((owner, uid)) => {
            let is_same = controlling.kind == owner.kind.as_str() && controlling.name == owner.name;
            match (is_same, is_marked) {
                (true, true) => Whose::Ours,
                (true, false) if controlling.uid == uid => Whose::Adoptable,
                _ => Whose::Foreign(by()),
            }
        }
        None if is_marked => {
            let group = controlling.api_version.split_once('/').map_or("", |(group, _)| group);
            match Kind::of_group(group, &controlling.kind) {
                Some(_) => Whose::Ours,
                None => Whose::Foreign(by()),
            }
        }
        None => Whose::Foreign(by()),
    }
}

#[cfg(test)]
mod tests;
