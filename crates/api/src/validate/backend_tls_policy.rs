//! Limits and rules of BackendTLSPolicy: whose certificates a backend may show, and by which names.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    Code,
    facts::{Facts, Reference},
    formats::{HOSTNAME, PRECISE_HOSTNAME, SUBDOMAIN, URI, WELL_KNOWN_AUTHORITIES},
    report::Report,
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.at("spec.targetRefs", &[Check::Items(1, 16)]);
    facts.rule("spec.targetRefs", targets_are_distinct);
    facts.reference("spec.targetRefs[]", Reference::default());
    facts.at(
        "spec.targetRefs[].sectionName",
        &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)],
    );
    facts.at("spec.options", &[Check::Entries(16)]);
    facts.at("spec.options{}", &[Check::Length(0, 4096)]);

    let place = |field: &str| format!("spec.validation.{field}");
    facts.rule("spec.validation", authorities_are_named_in_one_way);
    facts.at(
        &place("hostname"),
        &[Check::Length(1, 253), Check::Format(&PRECISE_HOSTNAME)],
    );
    facts.at(&place("caCertificateRefs"), &[Check::Items(0, 8)]);
    facts.reference(&place("caCertificateRefs[]"), Reference::default());
    facts.at(
        &place("wellKnownCACertificates"),
        &[Check::Length(1, 253), Check::Format(&WELL_KNOWN_AUTHORITIES)],
    );
    facts.at(&place("subjectAltNames"), &[Check::Items(0, 5)]);
    facts.rule(&place("subjectAltNames[]"), name_fits_its_type);
    facts.at(
        &place("subjectAltNames[].hostname"),
        &[Check::Length(1, 253), Check::Format(&HOSTNAME)],
    );
    facts.at(
        &place("subjectAltNames[].uri"),
        &[Check::Length(1, 253), Check::Format(&URI)],
    );
}

/// Several references to one target must each name another section.
fn targets_are_distinct(targets: &Value, report: &mut Report<'_>) {
    let mut has_section = HashMap::new();
    let mut seen = HashMap::new();
    for (index, target) in targets.as_array().into_iter().flatten().enumerate() {
        let part = |field: &str| target.get(field).and_then(Value::as_str).unwrap_or_default();
        let (whole, section) = ((part("group"), part("kind"), part("name")), part("sectionName"));
        if let Some(first) = seen.insert((whole, section), index) {
            let message = format!("is the same as [{first}]");
            let hint = "remove one of the two, or give each another sectionName";
            report.error_at(&[index.into()], Code::Duplicate, message, hint);
        }
        let is_section = !section.is_empty();
        if *has_section.entry(whole).or_insert(is_section) != is_section {
            let message = format!("not all references to {:?} name a sectionName", whole.2);
            let hint = "give sectionName in every reference to this target, or in none";
            report.error_at(&[index.into()], Code::RuleBroken, message, hint);
        }
    }
}

/// Without authorities nothing could be verified, and with both it would be unclear which count.
fn authorities_are_named_in_one_way(validation: &Value, report: &mut Report<'_>) {
    let references = validation.get("caCertificateRefs").and_then(Value::as_array);
    let has_references = references.is_some_and(|references| !references.is_empty());
    let well_known = validation.get("wellKnownCACertificates").and_then(Value::as_str);
    match (has_references, well_known.is_some_and(|name| !name.is_empty())) {
        (true, true) => {
            let message = "caCertificateRefs and wellKnownCACertificates cannot both be set";
            report.error(Code::RuleBroken, message, "remove the one or the other");
        }
        (false, false) => {
            let message = "neither caCertificateRefs nor wellKnownCACertificates is set";
            let hint = "name a ConfigMap with ca.crt in caCertificateRefs, or set wellKnownCACertificates to System";
            report.error(Code::RuleBroken, message, hint);
        }
        _ => {}
    }
}

fn name_fits_its_type(name: &Value, report: &mut Report<'_>) {
    let text = |field: &str| name.get(field).and_then(Value::as_str).unwrap_or_default();
    let chosen = text("type");
    if !["Hostname", "URI"].contains(&chosen) {
        return;
    }
    for (kind, field) in [("Hostname", "hostname"), ("URI", "uri")] {
        let is_set = !text(field).is_empty();
        if kind == chosen && !is_set {
            let message = format!("a name of type {kind} needs {field:?}");
            report.error_at(&[field.into()], Code::MissingField, message, format!("add {field:?}"));
        }
        if kind != chosen && is_set {
            let message = format!("{field:?} cannot be set in a name of type {chosen}");
            let hint = format!("set type to {kind}, or remove {field:?}");
            report.error_at(&[field.into()], Code::RuleBroken, message, hint);
        }
    }
}
