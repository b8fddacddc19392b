//! Limits, defaults and rules of HTTPRoute: parents, hostnames, rules, matches and backends.
//!
//! The filters, which stand both at rules and at backends, are in [`super::http_route_filters`].

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    Code,
    facts::{Facts, Reference},
    formats::{DURATION_TEXT, HEADER_NAME, HEADER_VALUE, HOSTNAME, PATH, SUBDOMAIN, duration},
    http_route_filters,
    report::Report,
    shape::Check,
};

/// Most matches of all rules of a route together.
const MOST_MATCHES: usize = 128;

pub(super) fn facts(facts: &mut Facts) {
    facts.at("spec.hostnames", &[Check::Items(0, 16)]);
    facts.at("spec.hostnames[]", &[Check::Length(1, 253), Check::Format(&HOSTNAME)]);
    parents(facts);
    facts.at("spec.rules", &[Check::Items(1, 16), Check::UniqueBy("name")]);
    facts.rule("spec.rules", matches_are_not_too_many);
    facts.default(
        "spec.rules",
        json!([{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]),
    );
    facts.rule("spec.rules[]", redirects_have_no_backends);
    facts.rule("spec.rules[]", replaced_prefix_is_matched);
    facts.at("spec.rules[].name", &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)]);
    matches(facts);
    backends(facts);
    http_route_filters::facts(facts, "spec.rules[].filters");
    http_route_filters::facts(facts, "spec.rules[].backendRefs[].filters");
    behaviour(facts);
}

pub(super) fn parents(facts: &mut Facts) {
    facts.at("spec.parentRefs", &[Check::Items(0, 32)]);
    facts.rule("spec.parentRefs", parents_are_distinct);
    let gateway = Reference {
        group: Some(crate::GATEWAY_GROUP),
        kind: Some("Gateway"),
        has_namespace: true,
        has_port: true,
    };
    facts.reference("spec.parentRefs[]", gateway);
    facts.at(
        "spec.parentRefs[].sectionName",
        &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)],
    );
}

fn matches(facts: &mut Facts) {
    let place = |field: &str| format!("spec.rules[].matches[].{field}");
    facts.at("spec.rules[].matches", &[Check::Items(0, 64)]);
    facts.default(
        "spec.rules[].matches",
        json!([{"path": {"type": "PathPrefix", "value": "/"}}]),
    );
    facts.default(&place("path"), json!({"type": "PathPrefix", "value": "/"}));
    facts.default(&place("path.type"), "PathPrefix");
    facts.default(&place("path.value"), "/");
    facts.at(&place("path.value"), &[Check::Length(0, 1024)]);
    facts.rule(&place("path"), path_is_plain);
    for list in ["headers", "queryParams"] {
        facts.at(&place(list), &[Check::Items(0, 16), Check::UniqueBy("name")]);
        facts.at(
            &place(&format!("{list}[].name")),
            &[Check::Length(1, 256), Check::Format(&HEADER_NAME)],
        );
        facts.default(&place(&format!("{list}[].type")), "Exact");
    }
    facts.at(
        &place("headers[].value"),
        &[Check::Length(1, 4096), Check::Format(&HEADER_VALUE)],
    );
    facts.at(&place("queryParams[].value"), &[Check::Length(1, 1024)]);
}

pub(super) fn backends(facts: &mut Facts) {
    facts.at("spec.rules[].backendRefs", &[Check::Items(0, 16)]);
    backend(facts, "spec.rules[].backendRefs[]");
    facts.at("spec.rules[].backendRefs[].weight", &[Check::Range(0, 1_000_000)]);
    facts.default("spec.rules[].backendRefs[].weight", 1);
}

/// A reference to something that serves requests, here or in a filter.
pub(super) fn backend(facts: &mut Facts, place: &str) {
    let service = Reference {
        group: Some(""),
        kind: Some("Service"),
        has_namespace: true,
        has_port: true,
    };
    facts.reference(place, service);
    facts.rule(place, service_has_a_port);
}

fn behaviour(facts: &mut Facts) {
    let place = |field: &str| format!("spec.rules[].{field}");
    facts.rule(&place("timeouts"), backend_request_fits_into_request);
    facts.at(
        &place("timeouts.request"),
        &[Check::Length(1, usize::MAX), Check::Format(&DURATION_TEXT)],
    );
    facts.at(
        &place("timeouts.backendRequest"),
        &[Check::Length(1, usize::MAX), Check::Format(&DURATION_TEXT)],
    );
    facts.at(&place("retry.attempts"), &[Check::Range(1, i64::MAX)]);
    facts.at(
        &place("retry.backoff"),
        &[Check::Length(1, usize::MAX), Check::Format(&DURATION_TEXT)],
    );
    facts.at(&place("retry.codes"), &[Check::Unique]);
    facts.at(&place("retry.codes[]"), &[Check::Range(400, 599)]);
    session(facts, &place("sessionPersistence"));
}

/// How a client keeps its backend, in routes of every kind.
pub(super) fn session(facts: &mut Facts, session: &str) {
    facts.rule(session, cookie_settings_fit);
    facts.at(
        &format!("{session}.absoluteTimeout"),
        &[Check::Length(1, usize::MAX), Check::Format(&DURATION_TEXT)],
    );
    facts.at(&format!("{session}.sessionName"), &[Check::Length(0, 128)]);
    facts.default(&format!("{session}.type"), "Cookie");
    facts.default(&format!("{session}.cookieConfig.lifetimeType"), "Session");
    // Removed in v1.6; the types still have it.
    facts.forget(session, "idleTimeout");
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

fn items<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Several references to one parent must each name another section or port, and all of them the same way.
fn parents_are_distinct(parents: &Value, report: &mut Report<'_>) {
    let mut shapes = HashMap::new();
    let mut seen = HashMap::new();
    for (index, parent) in parents.as_array().into_iter().flatten().enumerate() {
        let namespace = text(parent, "namespace").unwrap_or_default();
        let target = (
            text(parent, "group"),
            text(parent, "kind"),
            text(parent, "name"),
            namespace,
        );
        let section = text(parent, "sectionName").filter(|section| !section.is_empty());
        let port = parent.get("port").and_then(Value::as_i64).filter(|port| *port != 0);
        let name = target.2.unwrap_or_default();
        if let Some(first) = seen.insert((target, section, port), index) {
            let message = format!("refers to {name:?} in the same way as [{first}]");
            let hint = "remove one of the two, or give each another sectionName or port";
            report.error_at(&[index.into()], Code::Duplicate, message, hint);
        }
        let shape = (section.is_some(), port.is_some());
        if *shapes.entry(target).or_insert(shape) != shape {
            let message = format!("not all references to {name:?} name a sectionName or port");
            let hint = "give sectionName (or port) in every reference to this parent";
            report.error_at(&[index.into()], Code::RuleBroken, message, hint);
        }
    }
}

pub(super) fn matches_are_not_too_many(rules: &Value, report: &mut Report<'_>) {
    let count: usize = rules
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| items(rule, "matches").len())
        .sum();
    if count > MOST_MATCHES {
        let message = format!("the rules have {count} matches together, at most {MOST_MATCHES} are allowed");
        report.error(Code::WrongCount, message, "split the route into several");
    }
}

fn redirects_have_no_backends(rule: &Value, report: &mut Report<'_>) {
    let redirect = items(rule, "filters")
        .iter()
        .position(|filter| filter.get("requestRedirect").is_some());
    if let Some(index) = redirect
        && !items(rule, "backendRefs").is_empty()
    {
        let message = "a rule that redirects cannot have backendRefs";
        report.error_at(
            &["filters".into(), index.into()],
            Code::RuleBroken,
            message,
            "remove the one or the other",
        );
    }
}

/// A prefix can be replaced only when the rule matches by exactly one prefix.
fn replaced_prefix_is_matched(rule: &Value, report: &mut Report<'_>) {
    let matches = items(rule, "matches");
    let is_one_prefix = matches.len() == 1
        && matches
            .iter()
            .all(|one| one.get("path").and_then(|path| text(path, "type")) == Some("PathPrefix"));
    if is_one_prefix {
        return;
    }
    for filter in ["requestRedirect", "urlRewrite"] {
        let replaces = |candidate: &&Value| {
            let path = candidate.get(filter).and_then(|filter| filter.get("path"));
            path.is_some_and(|path| {
                text(path, "type") == Some("ReplacePrefixMatch") && path.get("replacePrefixMatch").is_some()
            })
        };
        let is_once_in = |filters: &[Value]| filters.iter().filter(replaces).count() == 1;
        // "Exactly one" on both levels, as the API server counts it.
        let in_backends = items(rule, "backendRefs")
            .iter()
            .filter(|backend| is_once_in(items(backend, "filters")))
            .count()
            == 1;
        if is_once_in(items(rule, "filters")) || in_backends {
            let message =
                format!("{filter} replaces the prefix of a rule that does not match by exactly one PathPrefix");
            let hint = "give the rule exactly one match with a path of type PathPrefix, or use ReplaceFullPath";
            report.error(Code::RuleBroken, message, hint);
        }
    }
}

fn path_is_plain(path: &Value, report: &mut Report<'_>) {
    let (Some(kind @ ("Exact" | "PathPrefix")), Some(value)) = (text(path, "type"), text(path, "value")) else {
        return;
    };
    let contained = ["//", "/./", "/../", "%2f", "%2F", "#"]
        .into_iter()
        .find(|part| value.contains(part));
    let ended = ["/..", "/."].into_iter().find(|part| value.ends_with(part));
    let (message, hint) = if !value.starts_with('/') {
        (
            format!("{value:?} does not begin with a slash"),
            format!("write \"/{value}\""),
        )
    } else if let Some(part) = contained.or(ended) {
        let message = format!("a path of type {kind} cannot have {part:?}: requests are normalised before they match");
        (message, "write the path as it is after normalisation".to_owned())
    } else if !(PATH.is_valid)(value) {
        (format!("{value:?} is not a path"), PATH.hint.to_owned())
    } else {
        return;
    };
    report.error_at(&["value".into()], Code::BadFormat, message, hint);
}

fn service_has_a_port(reference: &Value, report: &mut Report<'_>) {
    let is_service = text(reference, "group") == Some("") && text(reference, "kind") == Some("Service");
    if is_service && reference.get("port").is_none() {
        let hint = "add the port of the Service to which requests go";
        report.error_at(
            &["port".into()],
            Code::MissingField,
            "a reference to a Service needs a port",
            hint,
        );
    }
}

fn backend_request_fits_into_request(timeouts: &Value, report: &mut Report<'_>) {
    let read = |field| text(timeouts, field).and_then(duration);
    if let (Some(request), Some(backend_request)) = (read("request"), read("backendRequest"))
        && !request.is_zero()
        && backend_request > request
    {
        let message = "backendRequest is longer than request, of which it is a part";
        let hint = "shorten backendRequest or lengthen request";
        report.error_at(&["backendRequest".into()], Code::RuleBroken, message, hint);
    }
}

fn cookie_settings_fit(session: &Value, report: &mut Report<'_>) {
    let Some(cookie) = session.get("cookieConfig") else {
        return;
    };
    if text(session, "type") != Some("Cookie") {
        let hint = "remove cookieConfig, or set type to Cookie";
        report.error_at(
            &["cookieConfig".into()],
            Code::RuleBroken,
            "cookieConfig needs type Cookie",
            hint,
        );
    }
    if text(cookie, "lifetimeType") == Some("Permanent") && session.get("absoluteTimeout").is_none() {
        let message = "a permanent cookie needs absoluteTimeout";
        let hint = "add absoluteTimeout, or set lifetimeType to Session";
        let place = ["cookieConfig".into(), "lifetimeType".into()];
        report.error_at(&place, Code::RuleBroken, message, hint);
    }
}
