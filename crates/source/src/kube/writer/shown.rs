//! What of a shown status is ours, and how ours is put into it.
//!
//! Works on the JSON that the API server sends, because entries of other controllers and fields of newer versions must
//! come through untouched. On routes and policies ours are the entries with our controller name; on Gateways, ListenerSets and
//! GatewayClasses all but conditions of types that we do not know.

use std::hash::{Hash, Hasher};

use gatewright_api::Kind;
use gatewright_world::desired::ConditionKind;
use serde_json::{Map, Value, json};

/// The fingerprint of what is ours in a status, times left out. Holds within this process only.
pub(crate) fn fingerprint(kind: Kind, status: &Value, controller: &str) -> u64 {
    let mut hasher = ahash::AHasher::default();
    if let Some((list, _)) = kind.shared_status() {
        let ours = array(status, list).filter(|entry| is_ours(entry, controller));
        hash_set(ours, &mut hasher);
    } else {
        for (key, value) in status.as_object().into_iter().flatten() {
            if key == "conditions" {
                let ours = value.as_array().into_iter().flatten();
                let mut ours = ours.filter(|condition| is_our_type(condition)).peekable();
                if ours.peek().is_some() {
                    key.hash(&mut hasher);
                    hash_set(ours, &mut hasher);
                }
            } else {
                hash_field(key, value, &mut hasher);
            }
        }
    }
    hasher.finish()
}

/// Whether anything in a status is ours.
pub(crate) fn has_ours(kind: Kind, status: &Value, controller: &str) -> bool {
    match kind.shared_status() {
        Some((list, _)) => array(status, list).any(|entry| is_ours(entry, controller)),
        None => status.as_object().is_some_and(|fields| !fields.is_empty()),
    }
}

/// Whether a status says nothing.
pub(crate) fn is_blank(kind: Kind, status: &Value) -> bool {
    match kind.shared_status() {
        Some((list, _)) => array(status, list).next().is_none(),
        None => status.as_object().is_none_or(Map::is_empty),
    }
}

/// The status to write: ours as wanted, everything else as shown. A condition that keeps its state keeps its time.
pub(crate) fn merge(kind: Kind, shown: &Value, wanted: &Value, controller: &str, now: &str) -> Value {
    match kind.shared_status() {
        Some(names) => merge_entries(names, shown, wanted, controller, now),
        None => merge_whole(shown, wanted, now),
    }
}

/// The merge patch that makes `shown` into `status`: fields that are no longer there are removed.
pub(crate) fn patch(shown: &Value, mut status: Value) -> Value {
    if let (Some(shown), Some(fields)) = (shown.as_object(), status.as_object_mut()) {
        for key in shown.keys() {
            fields.entry(key.clone()).or_insert(Value::Null);
        }
    }
    status
}

fn merge_entries((list, about): (&str, &str), shown: &Value, wanted: &Value, controller: &str, now: &str) -> Value {
    let mut wanted: Vec<Option<Value>> = array(wanted, list).cloned().map(Some).collect();
    let mut merged = Vec::new();
    for entry in array(shown, list) {
        if !is_ours(entry, controller) {
            merged.push(entry.clone());
            continue;
        }
        let same = wanted.iter_mut().find(|candidate| {
            candidate
                .as_ref()
                .is_some_and(|wanted| is_about_same(about, entry, wanted))
        });
        if let Some(mut ours) = same.and_then(Option::take) {
            stamp(&mut ours, Some(entry), now);
            merged.push(ours);
        }
    }
    for mut ours in wanted.into_iter().flatten() {
        stamp(&mut ours, None, now);
        merged.push(ours);
    }
    json!({ list: merged })
}

fn merge_whole(shown: &Value, wanted: &Value, now: &str) -> Value {
    let mut merged = wanted.clone();
    stamp(&mut merged, Some(shown), now);
    let listeners = merged.get_mut("listeners").and_then(Value::as_array_mut);
    for listener in listeners.into_iter().flatten() {
        let same = array(shown, "listeners").find(|known| known.get("name") == listener.get("name"));
        stamp(listener, same, now);
    }
    let foreign: Vec<Value> = array(shown, "conditions")
        .filter(|condition| !is_our_type(condition))
        .cloned()
        .collect();
    if let Some(fields) = merged.as_object_mut()
        && !foreign.is_empty()
    {
        let conditions = fields.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.extend(foreign);
        }
    }
    merged
}

/// Gives the conditions of one object, listener or parent their times.
fn stamp(holder: &mut Value, shown: Option<&Value>, now: &str) {
    let conditions = holder.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let kept = shown.and_then(|shown| {
            array(shown, "conditions")
                .find(|known| known.get("type") == condition.get("type"))
                .filter(|known| known.get("status") == condition.get("status"))
                .and_then(|known| known.get("lastTransitionTime"))
                .filter(|time| time.is_string())
        });
        let time = kept.cloned().unwrap_or_else(|| json!(now));
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("lastTransitionTime".to_owned(), time);
        }
    }
}

fn array<'a>(holder: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    holder.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn is_ours(entry: &Value, controller: &str) -> bool {
    entry.get("controllerName").and_then(Value::as_str) == Some(controller)
}

fn is_our_type(condition: &Value) -> bool {
    let kind = condition.get("type").and_then(Value::as_str).unwrap_or_default();
    ConditionKind::ALL.iter().any(|known| known.as_str() == kind)
}

fn is_about_same(about: &str, one: &Value, other: &Value) -> bool {
    let fields = |entry: &Value| -> Option<Map<String, Value>> {
        let mut fields = entry.get(about)?.as_object()?.clone();
        fields
            .entry("group")
            .or_insert_with(|| json!(gatewright_api::GATEWAY_GROUP));
        fields.entry("kind").or_insert_with(|| json!(Kind::Gateway.as_str()));
        Some(fields)
    };
    fields(one) == fields(other)
}

/// Hashes a list whose order says nothing.
fn hash_set<'a>(items: impl Iterator<Item = &'a Value>, hasher: &mut impl Hasher) {
    let mut parts: Vec<u64> = items
        .map(|item| {
            let mut hasher = ahash::AHasher::default();
            hash_value(item, &mut hasher);
            hasher.finish()
        })
        .collect();
    parts.sort_unstable();
    parts.hash(hasher);
}

fn hash_field(key: &str, value: &Value, hasher: &mut impl Hasher) {
    let is_empty = match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    // Absent and empty mean the same, and a time is not a difference.
    if is_empty || key == "lastTransitionTime" {
        return;
    }
    key.hash(hasher);
    match value {
        Value::Array(items) if key == "conditions" => hash_set(items.iter(), hasher),
        _ => hash_value(value, hasher),
    }
}

fn hash_value(value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                hash_field(key, value, hasher);
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                hash_value(item, hasher);
            }
        }
        _ => value.hash(hasher),
    }
}

#[cfg(test)]
mod tests;
