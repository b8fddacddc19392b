//! How the files of the kinds state what the derived schemas lack: limits, defaults and rules, by place.
//!
//! A place that does not exist in the schema is recorded, not fatal: a test demands that there is none.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

use super::shape::{Check, Field, Form, Rule, Shape};
use crate::meta::ObjectMeta;

/// The shape of one kind while it is being decorated.
pub(super) struct Facts {
    shape: Shape,
    unresolved: Vec<String>,
}

/// Makes the shape of a kind; also returns the places that do not exist.
pub(super) fn build<T: JsonSchema>(state: fn(&mut Facts)) -> (Shape, Vec<String>) {
    let mut shape = Shape::from_schema(&schema_of::<T>());
    if let Form::Record(fields) = &mut shape.form {
        // Types derived for custom resources leave these out of their schema; apiVersion and kind are checked with the
        // metadata, because they are known before a shape is chosen.
        let metadata = Shape::from_schema(&schema_of::<ObjectMeta>());
        fields.insert(
            "metadata".to_owned(),
            Field {
                shape: metadata,
                is_required: true,
            },
        );
        fields.insert(
            "apiVersion".to_owned(),
            Field {
                shape: Shape::new(Form::Anything),
                is_required: false,
            },
        );
        fields.insert(
            "kind".to_owned(),
            Field {
                shape: Shape::new(Form::Anything),
                is_required: false,
            },
        );
        // Status is written by controllers: files that were dumped from a cluster have it, and it means nothing here.
        fields.insert(
            "status".to_owned(),
            Field {
                shape: Shape::new(Form::Anything),
                is_required: false,
            },
        );
    }
    let mut facts = Facts {
        shape,
        unresolved: Vec::new(),
    };
    super::metadata::facts(&mut facts);
    state(&mut facts);
    (facts.shape, facts.unresolved)
}

pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

impl Facts {
    /// States limits at a place.
    pub(super) fn at(&mut self, place: &str, checks: &[Check]) {
        self.with(place, |shape| shape.checks.extend_from_slice(checks));
    }

    /// States a rule over the fields of a place.
    pub(super) fn rule(&mut self, place: &str, rule: Rule) {
        self.with(place, |shape| shape.rules.push(rule));
    }

    /// States the default of a place.
    pub(super) fn default(&mut self, place: &str, value: impl Into<Value>) {
        let value = value.into();
        self.with(place, |shape| shape.default = Some(value));
    }

    /// The types have a field that the API no longer has.
    pub(super) fn forget(&mut self, parent: &str, field: &str) {
        let mut forgotten = false;
        self.with(parent, |shape| {
            if let Form::Record(fields) = &mut shape.form {
                forgotten = fields.remove(field).is_some();
            }
        });
        if !forgotten {
            self.unresolved.push(format!("{parent}.{field}"));
        }
    }

    /// The types have as optional what the API requires.
    pub(super) fn require(&mut self, parent: &str, field: &str) {
        let mut required = false;
        self.with(parent, |shape| {
            if let Form::Record(fields) = &mut shape.form
                && let Some(field) = fields.get_mut(field)
            {
                field.is_required = true;
                required = true;
            }
        });
        if !required {
            self.unresolved.push(format!("{parent}.{field}"));
        }
    }

    fn with(&mut self, place: &str, change: impl FnOnce(&mut Shape)) {
        let found = if place.is_empty() {
            Some(&mut self.shape)
        } else {
            self.shape.find(place)
        };
        match found {
            Some(shape) => change(shape),
            None => self.unresolved.push(place.to_owned()),
        }
    }

    /// States the four or five parts of a reference to another object. Absent parts are passed as `None`.
    pub(super) fn reference(&mut self, place: &str, parts: Reference) {
        use super::formats::{GROUP, KIND, NAMESPACE};
        let Reference {
            group,
            kind,
            has_namespace,
            has_port,
        } = parts;
        self.at(
            &format!("{place}.group"),
            &[Check::Length(0, 253), Check::Format(&GROUP)],
        );
        self.at(&format!("{place}.kind"), &[Check::Length(1, 63), Check::Format(&KIND)]);
        self.at(&format!("{place}.name"), &[Check::Length(1, 253)]);
        if let Some(group) = group {
            self.default(&format!("{place}.group"), json!(group));
        }
        if let Some(kind) = kind {
            self.default(&format!("{place}.kind"), json!(kind));
        }
        if has_namespace {
            self.at(
                &format!("{place}.namespace"),
                &[Check::Length(1, 63), Check::Format(&NAMESPACE)],
            );
        }
        if has_port {
            self.at(&format!("{place}.port"), &[PORT]);
        }
    }
}

/// What a reference consists of, besides its group, kind and name.
#[derive(Clone, Copy, Default)]
pub(super) struct Reference {
    /// The default of `group`.
    pub(super) group: Option<&'static str>,
    /// The default of `kind`.
    pub(super) kind: Option<&'static str>,
    pub(super) has_namespace: bool,
    pub(super) has_port: bool,
}

/// A TCP or UDP port.
pub(super) const PORT: Check = Check::Range(1, 65535);
