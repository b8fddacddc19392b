//! Limits, defaults and rules of TLSRoute, TCPRoute and UDPRoute: routes of connections and datagrams as a whole.
//!
//! Their older versions allow more than v1: several rules, and TLSRoutes without hostnames, which match every name.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{
    Code,
    facts::Facts,
    formats::{HOSTNAME, SUBDOMAIN},
    http_route,
    report::Report,
    shape::Check,
};

/// Most rules of a route of the oldest version.
const MOST_RULES: usize = 16;

pub(super) fn facts(facts: &mut Facts) {
    http_route::parents(facts);
    facts.rule("", rules_fit_the_version);
    facts.at("spec.rules", &[Check::Items(1, MOST_RULES), Check::UniqueBy("name")]);
    facts.at("spec.rules[].name", &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)]);
    http_route::backends(facts);
    facts.require("spec.rules[]", "backendRefs");
    facts.at("spec.rules[].backendRefs", &[Check::Items(1, usize::MAX)]);
}

pub(super) fn tls_facts(facts: &mut Facts) {
    self::facts(facts);
    facts.rule("", hostnames_fit_the_version);
    facts.at("spec.hostnames", &[Check::Items(0, 1024)]);
    facts.at("spec.hostnames[]", &[Check::Length(1, 253), Check::Format(&HOSTNAME)]);
}

/// A TLSRoute of the oldest version needs no hostnames; the type wants the list.
pub(super) fn complete_tls(route: &mut Value) {
    if is_oldest(route)
        && let Some(spec) = route.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.entry("hostnames").or_insert_with(|| json!([]));
    }
}

fn is_oldest(route: &Value) -> bool {
    let version = route.get("apiVersion").and_then(Value::as_str);
    version.is_some_and(|version| version.ends_with("/v1alpha2"))
}

fn items<'v>(route: &'v Value, field: &str) -> Option<&'v Vec<Value>> {
    route.get("spec")?.get(field)?.as_array()
}

/// Nothing tells connections apart, so a second rule could never be chosen.
fn rules_fit_the_version(route: &Value, report: &mut Report<'_>) {
    let count = items(route, "rules").map_or(0, Vec::len);
    if !is_oldest(route) && (2..=MOST_RULES).contains(&count) {
        let place = ["spec".into(), "rules".into()];
        let message = format!("has {count} items, at most 1 is allowed");
        let hint = "put all backends into one rule, or split the route into several";
        report.error_at(&place, Code::WrongCount, message, hint);
    }
}

fn hostnames_fit_the_version(route: &Value, report: &mut Report<'_>) {
    if is_oldest(route) {
        return;
    }
    let Some(hostnames) = items(route, "hostnames") else {
        return;
    };
    if hostnames.is_empty() {
        let place = ["spec".into(), "hostnames".into()];
        report.error_at(&place, Code::WrongCount, "is an empty list", "give at least 1 item");
    }
    for (index, hostname) in hostnames.iter().enumerate() {
        // An address of version 6 is not even a hostname by its form.
        if let Some(address) = hostname.as_str().filter(|text| text.parse::<Ipv4Addr>().is_ok()) {
            let place = ["spec".into(), "hostnames".into(), index.into()];
            let message = format!("{address:?} is an IP address");
            let hint = "write a name: clients that connect to an address name no server";
            report.error_at(&place, Code::BadFormat, message, hint);
        }
    }
}
