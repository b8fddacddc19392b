//! Limits, defaults and rules of GRPCRoute. What it shares with HTTPRoute is stated there.

use serde_json::Value;

use super::{
    Code,
    facts::{Facts, Reference},
    formats::{GRPC_METHOD, GRPC_SERVICE, HEADER_NAME, HOSTNAME, SUBDOMAIN},
    http_route, http_route_filters,
    report::Report,
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.at("spec.hostnames", &[Check::Items(0, 16)]);
    facts.at("spec.hostnames[]", &[Check::Length(1, 253), Check::Format(&HOSTNAME)]);
    http_route::parents(facts);
    facts.at("spec.rules", &[Check::Items(0, 16), Check::UniqueBy("name")]);
    facts.rule("spec.rules", http_route::matches_are_not_too_many);
    facts.at("spec.rules[].name", &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)]);
    matches(facts);
    http_route::backends(facts);
    filters(facts, "spec.rules[].filters");
    filters(facts, "spec.rules[].backendRefs[].filters");
    http_route::session(facts, "spec.rules[].sessionPersistence");
}

fn matches(facts: &mut Facts) {
    let place = |field: &str| format!("spec.rules[].matches[].{field}");
    facts.at("spec.rules[].matches", &[Check::Items(0, 64)]);
    facts.rule(&place("method"), method_is_named);
    facts.default(&place("method.type"), "Exact");
    facts.at(&place("method.service"), &[Check::Length(0, 1024)]);
    facts.at(&place("method.method"), &[Check::Length(0, 1024)]);
    facts.at(&place("headers"), &[Check::Items(0, 16), Check::UniqueBy("name")]);
    facts.at(
        &place("headers[].name"),
        &[Check::Length(1, 256), Check::Format(&HEADER_NAME)],
    );
    facts.at(&place("headers[].value"), &[Check::Length(1, 4096)]);
    facts.default(&place("headers[].type"), "Exact");
}

fn filters(facts: &mut Facts, list: &str) {
    facts.at(list, &[Check::Items(0, 16)]);
    facts.rule(list, http_route_filters::filters_go_together);
    facts.rule(&format!("{list}[]"), http_route_filters::settings_fit_the_type);
    facts.reference(&format!("{list}[].extensionRef"), Reference::default());
    http_route_filters::headers(facts, &format!("{list}[].requestHeaderModifier"));
    http_route_filters::headers(facts, &format!("{list}[].responseHeaderModifier"));
    http_route_filters::mirror(facts, &format!("{list}[].requestMirror"));
}

/// A service, a method, or both; exact ones by names that gRPC can have.
fn method_is_named(method: &Value, report: &mut Report<'_>) {
    let text = |field: &str| method.get(field).and_then(Value::as_str);
    if text("service").is_none() && text("method").is_none() {
        let message = "neither a service nor a method is named";
        let hint = "name one of them, or leave \"method\" out to match every call";
        report.error(Code::MissingField, message, hint);
    }
    if text("type") != Some("Exact") {
        return;
    }
    for (field, format) in [("service", &GRPC_SERVICE), ("method", &GRPC_METHOD)] {
        if let Some(value) = text(field).filter(|value| !(format.is_valid)(value)) {
            let message = format!("{value:?} is not {}", format.noun);
            report.error_at(&[field.into()], Code::BadFormat, message, format.hint);
        }
    }
}
