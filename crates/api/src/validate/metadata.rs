//! What every object has: `apiVersion`, `kind` and `metadata`, with the rules for names that differ by kind.
//!
//! Called beside the walk, because the rules depend on the kind and not on a place in the shape.

use serde_json::Value;

use super::{
    Code,
    facts::Facts,
    formats::{ANNOTATION_KEY, DNS_1035_LABEL, DNS_LABEL, Format, LABEL_KEY, LABEL_VALUE, NAMESPACE, SUBDOMAIN},
    report::Report,
    shape::Check,
};
use crate::Kind;

/// Most bytes of keys and values of all annotations together.
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

pub(super) fn facts(facts: &mut Facts) {
    facts.at("metadata.labels", &[Check::Keys(&LABEL_KEY)]);
    facts.at(
        "metadata.labels{}",
        &[Check::Length(0, 63), Check::Format(&LABEL_VALUE)],
    );
    facts.at("metadata.annotations", &[Check::Keys(&ANNOTATION_KEY)]);
    facts.rule("metadata.annotations", annotation_size);
}

/// A Namespace has nothing of its own to check; its name is checked with all names.
pub(super) fn namespace_facts(_: &mut Facts) {}

fn annotation_size(annotations: &Value, report: &mut Report<'_>) {
    let entries = annotations.as_object().into_iter().flatten();
    let bytes: usize = entries
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if bytes > MOST_ANNOTATION_BYTES {
        let message = format!("annotations have {bytes} bytes, at most {MOST_ANNOTATION_BYTES} are allowed");
        report.error(Code::WrongLength, message, "move large content to a ConfigMap");
    }
}

pub(super) fn check(kind: Kind, document: &Value, report: &mut Report<'_>) {
    type_check(kind, document, report);
    let Some(metadata) = document.get("metadata").filter(|metadata| metadata.is_object()) else {
        return;
    };
    name_check(kind, metadata, report);
    match metadata.get("namespace").and_then(Value::as_str) {
        Some(namespace) if !kind.is_namespaced() => {
            let message = format!("a {kind} belongs to no namespace, {namespace:?} is ignored");
            report.warn_at(&place("namespace"), Code::NoEffect, message, "remove the namespace");
        }
        Some(namespace) => named(&NAMESPACE, 63, "namespace", namespace, report),
        None => {}
    }
}

fn place(field: &str) -> [super::Step; 2] {
    ["metadata".into(), field.into()]
}

fn type_check(kind: Kind, document: &Value, report: &mut Report<'_>) {
    let read = |field| document.get(field).and_then(Value::as_str);
    for field in ["apiVersion", "kind"] {
        if read(field).is_none() {
            let hint = format!("add {field:?}");
            report.error_at(
                &[field.into()],
                Code::MissingField,
                format!("field {field:?} is missing"),
                hint,
            );
        }
    }
    if let (Some(api_version), Some(kind_text)) = (read("apiVersion"), read("kind"))
        && Kind::of(api_version, kind_text) != Some(kind)
    {
        let version = kind.versions().first().copied().unwrap_or_default();
        let expected = if kind.group().is_empty() {
            version.to_owned()
        } else {
            format!("{}/{version}", kind.group())
        };
        let message = format!("{api_version} {kind_text} is not a {kind} that is read");
        let hint = format!("write apiVersion {expected} and kind {kind}");
        report.error_at(&["apiVersion".into()], Code::NotAllowed, message, hint);
    }
}

fn name_check(kind: Kind, metadata: &Value, report: &mut Report<'_>) {
    let (format, most): (&Format, usize) = match kind {
        Kind::Service => (&DNS_1035_LABEL, 63),
        Kind::Namespace => (&DNS_LABEL, 63),
        _ => (&SUBDOMAIN, 253),
    };
    match metadata.get("name") {
        Some(Value::String(name)) => named(format, most, "name", name, report),
        // Another type has been reported by the walk.
        Some(_) => {}
        None if metadata.get("generateName").is_some() => {
            let hint = "write a full name: nothing generates one for an object declared here";
            report.error_at(&place("name"), Code::MissingField, "field \"name\" is missing", hint);
        }
        None => report.error_at(
            &place("name"),
            Code::MissingField,
            "field \"name\" is missing",
            "add \"name\"",
        ),
    }
}

fn named(format: &Format, most: usize, field: &str, name: &str, report: &mut Report<'_>) {
    if name.len() > most {
        let message = format!("{field} has {} characters, at most {most} are allowed", name.len());
        report.error_at(
            &place(field),
            Code::BadName,
            message,
            format!("shorten it by {}", name.len() - most),
        );
    } else if name.is_empty() || !(format.is_valid)(name) {
        report.error_at(
            &place(field),
            Code::BadName,
            format!("{name:?} is not {}", format.noun),
            format.hint,
        );
    }
}
