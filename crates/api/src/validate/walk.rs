//! Walks a document along the shape of its kind and reports what does not fit.
//!
//! Types, required and unknown fields first, then the limits and rules stated for the place. Called for every document
//! that a source reads, so it allocates only when something is found.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    Code,
    check::{check, not_allowed},
    report::{Report, Segment},
    shape::{Field, Form, Shape},
    suggest::{list, nearest},
};

/// The kinds of value, as named in messages.
fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

pub(super) fn walk<'a>(shape: &Shape, value: &'a Value, report: &mut Report<'a>) {
    let fits = match (&shape.form, value) {
        (Form::Anything, _)
        | (Form::Boolean, Value::Bool(_))
        | (Form::Number, Value::Number(_))
        | (Form::IntegerOrText, Value::String(_)) => true,
        (Form::Integer { least, most }, Value::Number(number)) => {
            integer(number, *least, *most, report);
            true
        }
        (Form::IntegerOrText, Value::Number(number)) => {
            integer(number, i32::MIN.into(), i32::MAX.into(), report);
            true
        }
        (Form::Text { one_of }, Value::String(text)) => {
            if !one_of.is_empty() && !one_of.contains(text) {
                not_allowed(text, one_of.iter().map(String::as_str), report);
            }
            true
        }
        (Form::Moment, Value::String(text)) => {
            if serde_json::from_value::<crate::meta::Time>(value.clone()).is_err() {
                let hint = "write date and time as 2026-01-31T12:00:00Z";
                report.error(Code::BadFormat, format!("{text:?} is not a moment in time"), hint);
            }
            true
        }
        (Form::Base64, Value::String(text)) => {
            base64(text, report);
            true
        }
        (Form::List(item_shape), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                report.enter(Segment::Index(index));
                walk(item_shape, item, report);
                report.leave();
            }
            true
        }
        (Form::Map(value_shape), Value::Object(entries)) => {
            for (key, entry) in entries {
                report.enter(Segment::Field(key));
                walk(value_shape, entry, report);
                report.leave();
            }
            true
        }
        (Form::Record(fields), Value::Object(entries)) => {
            record(fields, entries, report);
            true
        }
        _ => false,
    };
    if !fits {
        wrong_type(&shape.form, value, report);
        return;
    }
    for limit in &shape.checks {
        check(*limit, value, report);
    }
    for rule in &shape.rules {
        rule(value, report);
    }
}

fn record<'a>(fields: &BTreeMap<String, Field>, entries: &'a Map<String, Value>, report: &mut Report<'a>) {
    for (name, value) in entries {
        match fields.get(name) {
            // The API server drops nulls of optional fields; for required ones it is said below.
            Some(_) if value.is_null() => {}
            Some(field) => {
                report.enter(Segment::Field(name));
                walk(&field.shape, value, report);
                report.leave();
            }
            None => {
                let hint = match nearest(name, fields.keys().map(String::as_str)) {
                    Some(known) => format!("did you mean {known:?}?"),
                    None => format!("known fields here: {}", list(fields.keys().map(String::as_str))),
                };
                report.warn_at(
                    &[name.as_str().into()],
                    Code::UnknownField,
                    format!("unknown field {name:?}"),
                    hint,
                );
            }
        }
    }
    for (name, _) in fields.iter().filter(|(_, field)| field.is_required) {
        if entries.get(name).is_none_or(Value::is_null) {
            let place = [name.as_str().into()];
            report.error_at(
                &place,
                Code::MissingField,
                format!("field {name:?} is missing"),
                format!("add {name:?}"),
            );
        }
    }
}

fn wrong_type(form: &Form, value: &Value, report: &mut Report<'_>) {
    let expected = match form {
        Form::Anything => "anything",
        Form::Boolean => "true or false",
        Form::Integer { .. } => "a whole number",
        Form::Number => "a number",
        Form::Text { .. } | Form::Moment | Form::Base64 => "text",
        Form::IntegerOrText => "a whole number or text",
        Form::List(_) => "a list",
        Form::Map(_) | Form::Record(_) => "a mapping",
    };
    let hint = match (form, value) {
        (Form::Text { .. } | Form::Base64 | Form::Moment, Value::Number(_) | Value::Bool(_)) => {
            // The value may be secret: it is not shown.
            "put it in quotes".to_owned()
        }
        (Form::Integer { .. } | Form::Number, Value::String(text)) if text.parse::<i64>().is_ok() => {
            format!("write it without quotes: {text}")
        }
        (Form::Boolean, Value::String(text)) if text == "true" || text == "false" => {
            format!("write it without quotes: {text}")
        }
        (Form::List(_), _) => "begin each item with \"- \"".to_owned(),
        (Form::Map(_) | Form::Record(_), Value::Array(_)) => "write fields without \"- \"".to_owned(),
        _ => String::new(),
    };
    report.error(
        Code::WrongType,
        format!("is {}, must be {expected}", describe(value)),
        hint,
    );
}

fn integer(number: &serde_json::Number, least: i64, most: i64, report: &mut Report<'_>) {
    if number.is_f64() {
        report.error(
            Code::WrongType,
            format!("{number} is not a whole number"),
            "leave out the fraction",
        );
    } else if number.as_i64().is_none_or(|number| number < least || number > most) {
        let hint = format!("use a whole number from {least} to {most}");
        report.error(Code::OutOfRange, format!("{number} is out of range"), hint);
    }
}

fn base64(text: &str, report: &mut Report<'_>) {
    let content = text.trim_end_matches('=');
    let padding = text.len() - content.len();
    let is_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    if !text.len().is_multiple_of(4) || padding > 2 || !content.bytes().all(is_alphabet) {
        // The value may be secret: it is not shown.
        report.error(
            Code::BadFormat,
            "is not base64",
            "encode it with base64, or write it as it is in stringData (of a ConfigMap: in data)",
        );
    }
}
