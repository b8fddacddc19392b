//! Whether an object is as we want it, whatever else is in it.

use serde_json::Value;

/// Whether everything in `wanted` stands in `found`. What else stands there, defaults and what others set, is theirs.
pub(super) fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| match found.get(key) {
            Some(found) if key == "ownerReferences" => contains_all(found, wanted),
            Some(found) => covers(found, wanted),
            // The API server leaves out what is empty.
            None => is_empty(wanted),
        }),
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted))
        }
        _ => found == wanted,
    }
}

/// Others may add owners of their own.
fn contains_all(found: &Value, wanted: &Value) -> bool {
    let found = found.as_array().map_or(&[][..], Vec::as_slice);
    let mut wanted = wanted.as_array().into_iter().flatten();
    wanted.all(|wanted| found.iter().any(|found| covers(found, wanted)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
