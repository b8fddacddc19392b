//! Limits, defaults and rules of Gateway: listeners, their TLS settings, addresses and infrastructure.

use std::{collections::HashMap, net::IpAddr};

use serde_json::{Value, json};

use super::{
    Code, Step,
    facts::{Facts, PORT, Reference},
    formats::{ADDRESS_TYPE, GROUP, HOSTNAME, KIND, LABEL_KEY, LABEL_VALUE, PROTOCOL, SUBDOMAIN},
    report::Report,
    shape::Check,
};

const SECRET: Reference = Reference {
    group: Some(""),
    kind: Some("Secret"),
    has_namespace: true,
    has_port: false,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.at("spec.gatewayClassName", &[Check::Length(1, 253)]);
    addresses(facts);
    listeners(facts);
    tls(facts);
    infrastructure(facts);
    facts.default("spec.allowedListeners.namespaces", json!({"from": "None"}));
    facts.default("spec.allowedListeners.namespaces.from", "None");
}

fn addresses(facts: &mut Facts) {
    facts.at("spec.addresses", &[Check::Items(0, 16)]);
    facts.rule("spec.addresses", addresses_are_unique);
    facts.rule("spec.addresses[]", address_fits_its_type);
    facts.at(
        "spec.addresses[].type",
        &[Check::Length(1, 253), Check::Format(&ADDRESS_TYPE)],
    );
    facts.default("spec.addresses[].type", "IPAddress");
    facts.at("spec.addresses[].value", &[Check::Length(0, 253)]);
}

/// Listeners, which ListenerSets have as well.
pub(super) fn listeners(facts: &mut Facts) {
    let place = |field: &str| format!("spec.listeners[].{field}");
    facts.at("spec.listeners", &[Check::Items(1, 64), Check::UniqueBy("name")]);
    facts.rule("spec.listeners", listeners_are_distinct);
    facts.rule("spec.listeners[]", tls_fits_the_protocol);
    facts.rule("spec.listeners[]", hostname_fits_the_protocol);
    facts.at(&place("name"), &[Check::Length(1, 253), Check::Format(&SUBDOMAIN)]);
    facts.at(&place("hostname"), &[Check::Length(1, 253), Check::Format(&HOSTNAME)]);
    facts.at(&place("port"), &[PORT]);
    facts.at(&place("protocol"), &[Check::Length(1, 255), Check::Format(&PROTOCOL)]);

    facts.default(&place("allowedRoutes"), json!({"namespaces": {"from": "Same"}}));
    facts.default(&place("allowedRoutes.namespaces"), json!({"from": "Same"}));
    facts.default(&place("allowedRoutes.namespaces.from"), "Same");
    facts.at(&place("allowedRoutes.kinds"), &[Check::Items(0, 8)]);
    facts.at(
        &place("allowedRoutes.kinds[].group"),
        &[Check::Length(0, 253), Check::Format(&GROUP)],
    );
    facts.default(&place("allowedRoutes.kinds[].group"), crate::GATEWAY_GROUP);
    facts.at(
        &place("allowedRoutes.kinds[].kind"),
        &[Check::Length(1, 63), Check::Format(&KIND)],
    );

    facts.default(&place("tls.mode"), "Terminate");
    facts.rule(&place("tls"), termination_has_a_certificate);
    facts.at(&place("tls.certificateRefs"), &[Check::Items(0, 64)]);
    facts.reference(&place("tls.certificateRefs[]"), SECRET);
    facts.at(&place("tls.options"), &[Check::Entries(16)]);
    facts.at(&place("tls.options{}"), &[Check::Length(0, 4096)]);
}

fn tls(facts: &mut Facts) {
    facts.reference("spec.tls.backend.clientCertificateRef", SECRET);
    facts.at(
        "spec.tls.frontend.perPort",
        &[Check::Items(0, 64), Check::UniqueBy("port")],
    );
    facts.at("spec.tls.frontend.perPort[].port", &[PORT]);
    for place in [
        "spec.tls.frontend.default.validation",
        "spec.tls.frontend.perPort[].tls.validation",
    ] {
        facts.at(&format!("{place}.caCertificateRefs"), &[Check::Items(1, 16)]);
        let authority = Reference {
            has_namespace: true,
            ..Reference::default()
        };
        facts.reference(&format!("{place}.caCertificateRefs[]"), authority);
        facts.default(&format!("{place}.mode"), "AllowValidOnly");
    }
}

fn infrastructure(facts: &mut Facts) {
    facts.at(
        "spec.infrastructure.annotations",
        &[Check::Entries(16), Check::Keys(&LABEL_KEY)],
    );
    facts.at("spec.infrastructure.annotations{}", &[Check::Length(0, 4096)]);
    facts.at(
        "spec.infrastructure.labels",
        &[Check::Entries(8), Check::Keys(&LABEL_KEY)],
    );
    facts.at(
        "spec.infrastructure.labels{}",
        &[Check::Length(0, 63), Check::Format(&LABEL_VALUE)],
    );
    for map in ["spec.infrastructure.annotations", "spec.infrastructure.labels"] {
        facts.rule(map, key_prefixes_are_short);
    }
    facts.reference("spec.infrastructure.parametersRef", Reference::default());
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

fn addresses_are_unique(addresses: &Value, report: &mut Report<'_>) {
    let mut seen = HashMap::new();
    for (index, address) in addresses.as_array().into_iter().flatten().enumerate() {
        let (Some(kind @ ("IPAddress" | "Hostname")), Some(value)) = (text(address, "type"), text(address, "value"))
        else {
            continue;
        };
        if let Some(first) = seen.insert((kind, value), index) {
            let message = format!("{kind} {value:?} is in the list twice, first at [{first}]");
            report.error_at(
                &[index.into(), "value".into()],
                Code::Duplicate,
                message,
                "remove one of the two",
            );
        }
    }
}

fn address_fits_its_type(address: &Value, report: &mut Report<'_>) {
    let Some(value) = text(address, "value") else { return };
    let (is_valid, message, hint) = match text(address, "type") {
        Some("IPAddress") => (
            value.parse::<IpAddr>().is_ok(),
            format!("{value:?} is not an IP address"),
            "write an IPv4 or IPv6 address, or set type to Hostname",
        ),
        Some("Hostname") => (
            (HOSTNAME.is_valid)(value),
            format!("{value:?} is not a hostname"),
            HOSTNAME.hint,
        ),
        _ => return,
    };
    if !is_valid {
        report.error_at(&["value".into()], Code::BadFormat, message, hint);
    }
}

/// Two listeners with the same port, protocol and hostname could not tell their requests apart.
fn listeners_are_distinct(listeners: &Value, report: &mut Report<'_>) {
    let mut seen = HashMap::new();
    for (index, listener) in listeners.as_array().into_iter().flatten().enumerate() {
        let (Some(port), Some(protocol)) = (listener.get("port"), text(listener, "protocol")) else {
            continue;
        };
        let hostname = text(listener, "hostname");
        if let Some(first) = seen.insert((port, protocol, hostname), index) {
            let hostname = hostname.map_or("no hostname".to_owned(), |name| format!("hostname {name:?}"));
            let message = format!("has the same port {port}, protocol {protocol} and {hostname} as listener [{first}]");
            report.error_at(
                &[index.into()],
                Code::Duplicate,
                message,
                "change the port or the hostname of one of them",
            );
        }
    }
}

fn tls_fits_the_protocol(listener: &Value, report: &mut Report<'_>) {
    let tls = listener.get("tls");
    let mode = tls.and_then(|tls| text(tls, "mode"));
    let place: [Step; 1] = ["tls".into()];
    match (text(listener, "protocol"), tls) {
        (Some(protocol @ ("HTTP" | "TCP" | "UDP")), Some(_)) => {
            let message = format!("tls cannot be set with protocol {protocol}");
            report.error_at(
                &place,
                Code::RuleBroken,
                message,
                "remove tls, or use protocol HTTPS or TLS",
            );
        }
        (Some("HTTPS"), Some(_)) if mode.is_some_and(|mode| mode != "Terminate") => {
            let hint = "use mode Terminate, or protocol TLS to pass connections through";
            let place = ["tls".into(), "mode".into()];
            report.error_at(&place, Code::RuleBroken, "protocol HTTPS needs mode Terminate", hint);
        }
        (Some("TLS"), _) if mode.is_none() => {
            let hint = "add tls with mode Passthrough, or with mode Terminate and certificateRefs";
            report.error_at(&place, Code::RuleBroken, "protocol TLS needs tls with a mode", hint);
        }
        _ => {}
    }
}

fn hostname_fits_the_protocol(listener: &Value, report: &mut Report<'_>) {
    if let Some(protocol @ ("TCP" | "UDP")) = text(listener, "protocol")
        && listener.get("hostname").is_some()
    {
        let message = format!("hostname cannot be set with protocol {protocol}, which has no hostnames");
        report.error_at(&["hostname".into()], Code::RuleBroken, message, "remove hostname");
    }
}

fn termination_has_a_certificate(tls: &Value, report: &mut Report<'_>) {
    let has_references = tls
        .get("certificateRefs")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());
    let has_options = tls
        .get("options")
        .and_then(Value::as_object)
        .is_some_and(|options| !options.is_empty());
    if text(tls, "mode") == Some("Terminate") && !has_references && !has_options {
        let hint = "name a Secret of type kubernetes.io/tls in certificateRefs";
        report.error(Code::RuleBroken, "mode Terminate needs certificateRefs", hint);
    }
}

fn key_prefixes_are_short(map: &Value, report: &mut Report<'_>) {
    for key in map.as_object().into_iter().flat_map(|entries| entries.keys()) {
        if key.split('/').next().is_some_and(|prefix| prefix.len() >= 253) {
            let message = "the part of a key before the slash has 253 characters or more";
            report.error_at(&[key.as_str().into()], Code::WrongLength, message, "shorten it");
        }
    }
}
