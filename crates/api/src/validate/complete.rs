//! Applies the defaults of a shape to a document, as the API server does before it validates.
//!
//! Top down: a missing field gets its default, and what is inside a present or defaulted value is completed in turn.
//! Nulls of fields are dropped first. Values of the wrong type are left alone.

use serde_json::Value;

use super::shape::{Form, Shape};

pub(super) fn complete(shape: &Shape, value: &mut Value) {
    match (&shape.form, value) {
        (Form::List(item_shape), Value::Array(items)) => {
            for item in items {
                complete(item_shape, item);
            }
        }
        (Form::Map(value_shape), Value::Object(entries)) => {
            for entry in entries.values_mut() {
                complete(value_shape, entry);
            }
        }
        (Form::Record(fields), Value::Object(entries)) => {
            entries.retain(|name, value| !value.is_null() || !fields.contains_key(name));
            for (name, field) in fields {
                if let Some(value) = entries.get_mut(name) {
                    complete(&field.shape, value);
                } else if let Some(default) = &field.shape.default {
                    let mut value = default.clone();
                    complete(&field.shape, &mut value);
                    entries.insert(name.clone(), value);
                }
            }
        }
        _ => {}
    }
}
