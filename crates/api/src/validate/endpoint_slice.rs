//! Limits, defaults and rules of EndpointSlice.
//!
//! Loopback and link-local addresses, which the API server refuses, pass here: with files they are how one reaches a
//! backend on the same host. Whether they may be used is for the planner to say.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use super::{
    Code,
    facts::{Facts, PORT},
    formats::{APPLICATION_PROTOCOL, DNS_LABEL, SUBDOMAIN},
    report::Report,
    service::PROTOCOLS,
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.rule("", addresses_fit_the_type);
    facts.at("addressType", &[Check::OneOf(&["IPv4", "IPv6", "FQDN"])]);
    facts.at("endpoints", &[Check::Items(0, 1000)]);
    facts.at("endpoints[].addresses", &[Check::Items(1, 100)]);
    facts.at(
        "endpoints[].hostname",
        &[Check::Length(1, 63), Check::Format(&DNS_LABEL)],
    );
    facts.at(
        "endpoints[].nodeName",
        &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)],
    );
    facts.at(
        "endpoints[].hints.forZones",
        &[Check::Items(0, 8), Check::UniqueBy("name")],
    );
    facts.at("ports", &[Check::Items(0, 20_000), Check::UniqueBy("name")]);
    facts.at("ports[].name", &[Check::Length(0, 63), Check::Format(&DNS_LABEL)]);
    facts.default("ports[].name", "");
    facts.at("ports[].port", &[PORT]);
    facts.at("ports[].protocol", &[Check::OneOf(&PROTOCOLS)]);
    facts.default("ports[].protocol", "TCP");
    facts.at("ports[].appProtocol", &[Check::Format(&APPLICATION_PROTOCOL)]);
}

fn addresses_fit_the_type(slice: &Value, report: &mut Report<'_>) {
    let Some(kind) = slice.get("addressType").and_then(Value::as_str) else {
        return;
    };
    let (is_valid, hint): (fn(&str) -> bool, &str) = match kind {
        "IPv4" => (
            |text| text.parse::<Ipv4Addr>().is_ok(),
            "write an IPv4 address such as 192.0.2.10, without port",
        ),
        "IPv6" => (
            |text| text.parse::<Ipv6Addr>().is_ok(),
            "write an IPv6 address such as 2001:db8::10, without port",
        ),
        "FQDN" => (|text| text.len() <= 253 && (SUBDOMAIN.is_valid)(text), SUBDOMAIN.hint),
        _ => return,
    };
    for (index, endpoint) in items(slice, "endpoints").enumerate() {
        for (position, address) in items(endpoint, "addresses").enumerate() {
            if let Some(text) = address.as_str()
                && !is_valid(text)
            {
                let place = ["endpoints".into(), index.into(), "addresses".into(), position.into()];
                report.error_at(
                    &place,
                    Code::BadFormat,
                    format!("{text:?} is not an address of type {kind}"),
                    hint,
                );
            }
        }
    }
}

fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}
