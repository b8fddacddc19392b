//! Limits, defaults and rules of the HTTPRoute filters, which stand at rules and at backends alike.

use serde_json::Value;

use super::{
    Code,
    facts::{Facts, PORT, Reference},
    formats::{HEADER_NAME, HEADER_VALUE, ORIGIN, PATH, PRECISE_HOSTNAME},
    http_route::backend,
    report::Report,
    shape::Check,
};

/// Each filter type and the field that carries its settings.
const FILTERS: [(&str, &str); 8] = [
    ("CORS", "cors"),
    ("ExtensionRef", "extensionRef"),
    ("ExternalAuth", "externalAuth"),
    ("RequestHeaderModifier", "requestHeaderModifier"),
    ("RequestMirror", "requestMirror"),
    ("RequestRedirect", "requestRedirect"),
    ("ResponseHeaderModifier", "responseHeaderModifier"),
    ("URLRewrite", "urlRewrite"),
];

/// The filter types of which a list has at most one.
const AT_MOST_ONCE: [&str; 5] = [
    "CORS",
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestRedirect",
    "URLRewrite",
];

const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "*",
];

/// States everything of the filters in the list at `list`.
pub(super) fn facts(facts: &mut Facts, list: &str) {
    facts.at(list, &[Check::Items(0, 16)]);
    facts.rule(list, filters_go_together);
    facts.rule(&format!("{list}[]"), settings_fit_the_type);
    facts.reference(&format!("{list}[].extensionRef"), Reference::default());
    headers(facts, &format!("{list}[].requestHeaderModifier"));
    headers(facts, &format!("{list}[].responseHeaderModifier"));
    mirror(facts, &format!("{list}[].requestMirror"));
    redirect(facts, &format!("{list}[].requestRedirect"));
    path(facts, &format!("{list}[].urlRewrite"));
    cors(facts, &format!("{list}[].cors"));
    external_auth(facts, &format!("{list}[].externalAuth"));
}

pub(super) fn headers(facts: &mut Facts, place: &str) {
    for list in ["set", "add"] {
        let list = format!("{place}.{list}");
        facts.at(&list, &[Check::Items(0, 16), Check::UniqueBy("name")]);
        facts.at(
            &format!("{list}[].name"),
            &[Check::Length(1, 256), Check::Format(&HEADER_NAME)],
        );
        facts.at(
            &format!("{list}[].value"),
            &[Check::Length(1, 4096), Check::Format(&HEADER_VALUE)],
        );
    }
    facts.at(&format!("{place}.remove"), &[Check::Items(0, 16), Check::Unique]);
}

pub(super) fn mirror(facts: &mut Facts, place: &str) {
    facts.rule(place, percent_or_fraction);
    backend(facts, &format!("{place}.backendRef"));
    facts.at(&format!("{place}.percent"), &[Check::Range(0, 100)]);
    let fraction = format!("{place}.fraction");
    facts.rule(&fraction, fraction_is_at_most_one);
    facts.at(&format!("{fraction}.numerator"), &[Check::Range(0, i64::MAX)]);
    facts.at(&format!("{fraction}.denominator"), &[Check::Range(1, i64::MAX)]);
    facts.default(&format!("{fraction}.denominator"), 100);
}

fn redirect(facts: &mut Facts, place: &str) {
    path(facts, place);
    facts.at(&format!("{place}.port"), &[PORT]);
    facts.at(
        &format!("{place}.statusCode"),
        &[Check::OneOfNumbers(&[301, 302, 303, 307, 308])],
    );
    facts.default(&format!("{place}.statusCode"), 302);
}

/// Host and path, which redirects and rewrites share.
fn path(facts: &mut Facts, place: &str) {
    facts.at(
        &format!("{place}.hostname"),
        &[Check::Length(1, 253), Check::Format(&PRECISE_HOSTNAME)],
    );
    facts.rule(&format!("{place}.path"), replacement_fits_the_type);
    facts.at(&format!("{place}.path.replaceFullPath"), &[Check::Length(0, 1024)]);
    facts.at(&format!("{place}.path.replacePrefixMatch"), &[Check::Length(0, 1024)]);
}

fn cors(facts: &mut Facts, place: &str) {
    for (list, most) in [
        ("allowOrigins", 64),
        ("allowMethods", 9),
        ("allowHeaders", 64),
        ("exposeHeaders", 64),
    ] {
        facts.at(&format!("{place}.{list}"), &[Check::Items(0, most), Check::Unique]);
    }
    for list in ["allowOrigins", "allowMethods", "allowHeaders"] {
        facts.rule(&format!("{place}.{list}"), star_stands_alone);
    }
    facts.at(
        &format!("{place}.allowOrigins[]"),
        &[Check::Length(1, 253), Check::Format(&ORIGIN)],
    );
    facts.at(&format!("{place}.allowMethods[]"), &[Check::OneOf(&METHODS)]);
    for list in ["allowHeaders", "exposeHeaders"] {
        facts.at(
            &format!("{place}.{list}[]"),
            &[Check::Length(1, 256), Check::Format(&HEADER_NAME)],
        );
    }
    facts.at(&format!("{place}.maxAge"), &[Check::Range(1, i64::MAX)]);
    facts.default(&format!("{place}.maxAge"), 5);
}

fn external_auth(facts: &mut Facts, place: &str) {
    facts.rule(place, settings_fit_the_protocol);
    backend(facts, &format!("{place}.backendRef"));
    facts.at(
        &format!("{place}.grpc.allowedHeaders"),
        &[Check::Items(0, 64), Check::Unique],
    );
    facts.at(
        &format!("{place}.http.allowedHeaders"),
        &[Check::Items(0, 64), Check::Unique],
    );
    facts.at(
        &format!("{place}.http.allowedResponseHeaders"),
        &[Check::Items(0, 64), Check::Unique],
    );
    facts.at(
        &format!("{place}.http.path"),
        &[Check::Length(1, 1024), Check::Format(&PATH)],
    );
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

pub(super) fn filters_go_together(filters: &Value, report: &mut Report<'_>) {
    let types = || {
        filters
            .as_array()
            .into_iter()
            .flatten()
            .map(|filter| text(filter, "type"))
    };
    for once in AT_MOST_ONCE {
        if let Some((index, _)) = types().enumerate().filter(|(_, kind)| *kind == Some(once)).nth(1) {
            let message = format!("filter {once} is in the list more than once");
            report.error_at(
                &[index.into()],
                Code::Duplicate,
                message,
                "put everything in one filter of this type",
            );
        }
    }
    let rewrite = types().position(|kind| kind == Some("URLRewrite"));
    if let Some(index) = rewrite
        && types().any(|kind| kind == Some("RequestRedirect"))
    {
        let message = "filters RequestRedirect and URLRewrite cannot stand together";
        report.error_at(&[index.into()], Code::RuleBroken, message, "remove one of the two");
    }
}

/// Exactly the field that belongs to the type is set.
pub(super) fn settings_fit_the_type(filter: &Value, report: &mut Report<'_>) {
    let Some(kind) = text(filter, "type") else { return };
    for (owner, field) in FILTERS {
        let is_set = filter.get(field).is_some();
        if owner == kind && !is_set {
            let message = format!("a filter of type {kind} needs {field:?}");
            report.error_at(&[field.into()], Code::MissingField, message, format!("add {field:?}"));
        } else if owner != kind && is_set {
            let message = format!("{field:?} cannot be set in a filter of type {kind}");
            let hint = format!("set type to {owner}, or remove {field:?}");
            report.error_at(&[field.into()], Code::RuleBroken, message, hint);
        }
    }
}

fn percent_or_fraction(mirror: &Value, report: &mut Report<'_>) {
    if mirror.get("percent").is_some() && mirror.get("fraction").is_some() {
        let message = "percent and fraction cannot both be set";
        report.error_at(&["fraction".into()], Code::RuleBroken, message, "remove one of the two");
    }
}

fn fraction_is_at_most_one(fraction: &Value, report: &mut Report<'_>) {
    let read = |field| fraction.get(field).and_then(Value::as_i64);
    if let (Some(numerator), Some(denominator)) = (read("numerator"), read("denominator"))
        && numerator > denominator
    {
        let message = format!("numerator {numerator} is greater than denominator {denominator}");
        report.error_at(
            &["numerator".into()],
            Code::RuleBroken,
            message,
            "use a fraction of at most one",
        );
    }
}

fn replacement_fits_the_type(path: &Value, report: &mut Report<'_>) {
    let Some(kind) = text(path, "type") else { return };
    for (owner, field) in [
        ("ReplaceFullPath", "replaceFullPath"),
        ("ReplacePrefixMatch", "replacePrefixMatch"),
    ] {
        let is_set = path.get(field).is_some();
        if owner == kind && !is_set {
            let message = format!("type {kind} needs {field:?}");
            report.error_at(&[field.into()], Code::MissingField, message, format!("add {field:?}"));
        } else if owner != kind && is_set {
            let message = format!("{field:?} cannot be set with type {kind}");
            report.error_at(
                &[field.into()],
                Code::RuleBroken,
                message,
                format!("set type to {owner}, or remove {field:?}"),
            );
        }
    }
}

fn star_stands_alone(list: &Value, report: &mut Report<'_>) {
    let Some(items) = list.as_array() else { return };
    if let Some(star) = items.iter().position(|item| item == "*")
        && items.len() > 1
    {
        let message = "\"*\" stands for everything and must be the only item";
        report.error_at(
            &[star.into()],
            Code::RuleBroken,
            message,
            "remove \"*\" or all other items",
        );
    }
}

fn settings_fit_the_protocol(auth: &Value, report: &mut Report<'_>) {
    let Some(protocol) = text(auth, "protocol") else { return };
    for (owner, field) in [("GRPC", "grpc"), ("HTTP", "http")] {
        let is_set = auth.get(field).is_some();
        if owner == protocol && !is_set {
            let hint = format!("add {field:?}; it may be empty: {{}}");
            let message = format!("protocol {protocol} needs {field:?}");
            report.error_at(&[field.into()], Code::MissingField, message, hint);
        } else if owner != protocol && is_set {
            let message = format!("{field:?} cannot be set with protocol {protocol}");
            report.error_at(&[field.into()], Code::RuleBroken, message, format!("remove {field:?}"));
        }
    }
}
