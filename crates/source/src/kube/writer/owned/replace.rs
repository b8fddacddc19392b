//! The change that makes an object be as wanted where server-side apply cannot.
//!
//! Apply merges lists of named items: a port that somebody added to a Service stays, and one of the same name makes the whole
//! object invalid. What we want of a list is all of it, so then the list is replaced. Items that are as wanted are
//! taken over with what the server added to them, such as a node port.

use serde_json::{Map, Value};

use super::covers::covers;

/// A merge patch with every list of `wanted` that `found` has otherwise, and every single field that differs.
pub(super) fn replacement(found: &Value, wanted: &Value) -> Value {
    let Value::Object(wanted) = wanted else {
        return replaced(found, wanted);
    };
    let mut patch = Map::new();
    for (key, wanted) in wanted {
        let found = found.get(key).unwrap_or(&Value::Null);
        if covers(found, wanted) || key == "ownerReferences" {
            continue;
        }
        patch.insert(key.clone(), replacement(found, wanted));
    }
    Value::Object(patch)
}

fn replaced(found: &Value, wanted: &Value) -> Value {
    let (Value::Array(found), Value::Array(wanted)) = (found, wanted) else {
        return wanted.clone();
    };
    let items = wanted.iter().map(|wanted| {
        let same = found.iter().find(|found| covers(found, wanted));
        same.unwrap_or(wanted).clone()
    });
    items.collect()
}

#[cfg(test)]
mod tests;
