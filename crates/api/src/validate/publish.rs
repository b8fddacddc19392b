//! Puts what is known of a kind into the schema of its custom resource definition.
//!
//! The limits are stated once, in the file of the kind: files are checked against them here, and the API server checks the
//! same when it has the schema. Rules over several fields are functions here; in the definition they are CEL, stated at the
//! type. Warnings have no place in a definition.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{
    facts::schema_of,
    shape::{Check, Form, Shape},
    shape_of,
};
use crate::Kind;

/// Decorates the structural schema of a kind, as it was derived from its type.
pub(crate) fn publish<T: JsonSchema>(kind: Kind, schema: &mut Value) {
    describe(&schema_of::<T>(), schema);
    number(schema);
    decorate(shape_of(kind), schema);
}

/// What a field is for says more than what its type is; on the way to a structural schema only the latter is kept.
fn describe(derived: &Value, schema: &mut Value) {
    let Some(entries) = schema.as_object_mut() else {
        return;
    };
    if let Some(description @ Value::String(_)) = derived.get("description") {
        entries.insert("description".to_owned(), description.clone());
    }
    let properties = entries.get_mut("properties").and_then(Value::as_object_mut);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(derived) = derived.get("properties").and_then(|properties| properties.get(name)) {
            describe(derived, property);
        }
    }
    if let (Some(derived), Some(items)) = (derived.get("items"), entries.get_mut("items")) {
        describe(derived, items);
    }
}

/// API servers know signed formats only and warn of others; a greatest value says the same.
fn number(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            let most = match entries.get("format").and_then(Value::as_str) {
                Some("uint8") => Some(u64::from(u8::MAX)),
                Some("uint16") => Some(u64::from(u16::MAX)),
                Some("uint32") => Some(u64::from(u32::MAX)),
                _ => None,
            };
            if let Some(most) = most {
                entries.insert("format".to_owned(), json!("int64"));
                entries.insert("minimum".to_owned(), json!(0));
                entries.insert("maximum".to_owned(), json!(most));
            }
            entries.values_mut().for_each(number);
        }
        Value::Array(items) => items.iter_mut().for_each(number),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn decorate(shape: &Shape, schema: &mut Value) {
    let Some(entries) = schema.as_object_mut() else {
        return;
    };
    for check in &shape.checks {
        limit(*check, entries);
    }
    match &shape.form {
        Form::Record(fields) => {
            let Some(properties) = entries.get_mut("properties").and_then(Value::as_object_mut) else {
                return;
            };
            for (name, property) in properties {
                if let Some(field) = fields.get(name) {
                    decorate(&field.shape, property);
                }
            }
        }
        Form::List(item) => {
            if let Some(items) = entries.get_mut("items") {
                decorate(item, items);
            }
        }
        Form::Map(item) => {
            if let Some(values) = entries.get_mut("additionalProperties") {
                decorate(item, values);
            }
        }
        Form::Anything
        | Form::Boolean
        | Form::Integer { .. }
        | Form::Number
        | Form::Text { .. }
        | Form::IntegerOrText
        | Form::Moment
        | Form::Base64 => {}
    }
}

fn limit(check: Check, schema: &mut Map<String, Value>) {
    let mut say = |key: &str, value: Value| {
        schema.insert(key.to_owned(), value);
    };
    match check {
        Check::Length(least, most) => {
            if least > 0 {
                say("minLength", json!(least));
            }
            say("maxLength", json!(most));
        }
        Check::Items(least, most) => {
            if least > 0 {
                say("minItems", json!(least));
            }
            say("maxItems", json!(most));
        }
        Check::Range(least, most) => {
            say("minimum", json!(least));
            // What the type cannot exceed needs no limit.
            if most < i64::MAX {
                say("maximum", json!(most));
            }
        }
        Check::OneOf(texts) => say("enum", json!(texts)),
        Check::OneOfNumbers(numbers) => say("enum", json!(numbers)),
        Check::Entries(most) => say("maxProperties", json!(most)),
        Check::Unique => say("x-kubernetes-list-type", json!("set")),
        Check::UniqueBy(field) => {
            say("x-kubernetes-list-type", json!("map"));
            say("x-kubernetes-list-map-keys", json!([field]));
        }
        Check::Format(format) => {
            if let Some(pattern) = format.pattern {
                say("pattern", json!(pattern));
            }
            if let Some(rule) = format.rule {
                add_rule(schema, rule, &format!("must be {}", format.noun));
            }
        }
        // A schema says nothing about keys, and as a rule it would cost more than an API server grants: keys have no greatest
        // length. What is wrong with them shows when they are used.
        Check::Keys(_) => {}
    }
}

fn add_rule(schema: &mut Map<String, Value>, rule: &str, message: &str) {
    let rules = schema.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
    if let Some(rules) = rules.as_array_mut() {
        rules.push(json!({ "rule": rule, "message": message }));
    }
}
