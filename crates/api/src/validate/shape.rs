//! What a document of one kind may look like: a tree of fields, types, limits, defaults and rules.
//!
//! The tree is made once per kind from the JSON schema that the types derive, and then decorated by
//! [`super::facts`]. [`super::walk`] and [`super::complete`] are its only readers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{formats::Format, report::Report};

/// One place in a document.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) form: Form,
    pub(super) checks: Vec<Check>,
    pub(super) rules: Vec<Rule>,
    pub(super) default: Option<Value>,
}

/// A rule over several fields, called with the value at the place it is declared for.
pub(super) type Rule = fn(&Value, &mut Report<'_>);

#[derive(Debug)]
pub(super) enum Form {
    /// Free-form: not looked into.
    Anything,
    Boolean,
    Integer {
        least: i64,
        most: i64,
    },
    Number,
    /// Text; if the list is not empty, one of it.
    Text {
        one_of: Vec<String>,
    },
    IntegerOrText,
    Moment,
    Base64,
    List(Box<Shape>),
    Map(Box<Shape>),
    Record(BTreeMap<String, Field>),
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) shape: Shape,
    pub(super) is_required: bool,
}

/// A limit on one value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Check {
    /// Length of a text in characters.
    Length(usize, usize),
    Format(&'static Format),
    Range(i64, i64),
    OneOf(&'static [&'static str]),
    OneOfNumbers(&'static [i64]),
    /// Number of items of a list.
    Items(usize, usize),
    /// Most entries of a map.
    Entries(usize),
    /// Format of every key of a map.
    Keys(&'static Format),
    /// No item of a list twice.
    Unique,
    /// No two items of a list with the same value in this field.
    UniqueBy(&'static str),
}

impl Shape {
    pub(super) fn new(form: Form) -> Shape {
        Shape {
            form,
            checks: Vec::new(),
            rules: Vec::new(),
            default: None,
        }
    }

    /// Reads a JSON schema with everything inlined. What it does not understand is free-form.
    pub(super) fn from_schema(schema: &Value) -> Shape {
        Shape::new(form_of(schema))
    }

    /// The shape at a pattern such as `spec.rules[].matches[].path`; `{}` stands for the values of a map.
    pub(super) fn find(&mut self, pattern: &str) -> Option<&mut Shape> {
        let mut here = self;
        for part in pattern.split('.') {
            let name_length = part.find(['[', '{']).unwrap_or(part.len());
            let (name, mut inside) = part.split_at(name_length);
            let Form::Record(fields) = &mut here.form else {
                return None;
            };
            here = &mut fields.get_mut(name)?.shape;
            while !inside.is_empty() {
                let ((Some(rest), _, Form::List(item)) | (_, Some(rest), Form::Map(item))) =
                    (inside.strip_prefix("[]"), inside.strip_prefix("{}"), &mut here.form)
                else {
                    return None;
                };
                here = item;
                inside = rest;
            }
        }
        Some(here)
    }
}

fn form_of(schema: &Value) -> Form {
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return Form::IntegerOrText;
    }
    for alternatives in ["anyOf", "oneOf", "allOf"] {
        if let Some(alternatives) = schema.get(alternatives).and_then(Value::as_array) {
            return form_of_alternatives(alternatives);
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => Form::Boolean,
        Some("number") => Form::Number,
        Some("integer") => integer(schema),
        Some("string") => match schema.get("format").and_then(Value::as_str) {
            Some("date-time") => Form::Moment,
            Some("byte") => Form::Base64,
            _ => Form::Text {
                one_of: texts(schema.get("enum")),
            },
        },
        Some("array") => match schema.get("items") {
            Some(items) => Form::List(Box::new(Shape::from_schema(items))),
            None => Form::Anything,
        },
        Some("object") => object(schema),
        _ => Form::Anything,
    }
}

/// Alternatives are an optional something (one of them is null) or an enum written as one schema per value.
fn form_of_alternatives(alternatives: &[Value]) -> Form {
    let is_null = |schema: &&Value| {
        schema
            .get("enum")
            .is_some_and(|values| *values == serde_json::json!([null]))
    };
    let mut forms: Vec<Form> = alternatives
        .iter()
        .filter(|schema| !is_null(schema))
        .map(form_of)
        .collect();
    if forms.len() == 1 {
        return forms.pop().unwrap_or(Form::Anything);
    }
    let mut union = Vec::new();
    for form in forms {
        match form {
            Form::Text { one_of } if !one_of.is_empty() => union.extend(one_of),
            _ => return Form::Anything,
        }
    }
    Form::Text { one_of: union }
}

fn integer(schema: &Value) -> Form {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    };
    Form::Integer { least, most }
}

fn object(schema: &Value) -> Form {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let required = texts(schema.get("required"));
        let field = |(name, schema): (&String, &Value)| {
            (
                name.clone(),
                Field {
                    shape: Shape::from_schema(schema),
                    is_required: required.contains(name),
                },
            )
        };
        return Form::Record(properties.iter().map(field).collect());
    }
    match schema.get("additionalProperties") {
        Some(values @ Value::Object(_)) => Form::Map(Box::new(Shape::from_schema(values))),
        _ => Form::Anything,
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    items
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
