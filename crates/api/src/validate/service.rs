//! Limits, defaults and rules of Service.

use std::{collections::HashMap, net::IpAddr};

use serde_json::Value;

use super::{
    Code,
    facts::{Facts, PORT},
    formats::{APPLICATION_PROTOCOL, DNS_LABEL, IP_ADDRESS, LABEL_KEY, LABEL_VALUE, NETWORK, PORT_NAME, SUBDOMAIN},
    report::Report,
    shape::Check,
};

pub(super) const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];

pub(super) fn facts(facts: &mut Facts) {
    facts.require("", "spec");
    facts.rule("spec", ports_are_given);
    facts.rule("spec", external_name_fits_the_type);
    facts.at(
        "spec.type",
        &[Check::OneOf(&["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])],
    );
    facts.default("spec.type", "ClusterIP");
    facts.at("spec.sessionAffinity", &[Check::OneOf(&["None", "ClientIP"])]);
    facts.default("spec.sessionAffinity", "None");
    facts.at(
        "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        &[Check::Range(1, 86400)],
    );
    facts.rule("spec.clusterIP", cluster_ip);
    facts.rule("spec.clusterIPs[]", cluster_ip);
    facts.at("spec.externalIPs[]", &[Check::Format(&IP_ADDRESS)]);
    facts.at("spec.ipFamilies[]", &[Check::OneOf(&["IPv4", "IPv6"])]);
    facts.at("spec.ipFamilies", &[Check::Items(0, 2), Check::Unique]);
    facts.at(
        "spec.ipFamilyPolicy",
        &[Check::OneOf(&["SingleStack", "PreferDualStack", "RequireDualStack"])],
    );
    facts.at("spec.externalTrafficPolicy", &[Check::OneOf(&["Cluster", "Local"])]);
    facts.at("spec.internalTrafficPolicy", &[Check::OneOf(&["Cluster", "Local"])]);
    facts.at("spec.loadBalancerSourceRanges[]", &[Check::Format(&NETWORK)]);
    facts.at("spec.selector", &[Check::Keys(&LABEL_KEY)]);
    facts.at("spec.selector{}", &[Check::Length(0, 63), Check::Format(&LABEL_VALUE)]);
    facts.rule("spec.ports", ports_are_distinct);
    facts.at("spec.ports[].name", &[Check::Length(0, 63), Check::Format(&DNS_LABEL)]);
    facts.at("spec.ports[].port", &[PORT]);
    facts.at("spec.ports[].nodePort", &[Check::Range(0, 65535)]);
    facts.at("spec.ports[].protocol", &[Check::OneOf(&PROTOCOLS)]);
    facts.default("spec.ports[].protocol", "TCP");
    facts.at("spec.ports[].targetPort", &[PORT]);
    facts.rule("spec.ports[].targetPort", port_name);
    facts.at("spec.ports[].appProtocol", &[Check::Format(&APPLICATION_PROTOCOL)]);
}

/// A port without `targetPort` goes to the same port of the endpoints.
pub(super) fn complete(service: &mut Value) {
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let is_missing = match port.get("targetPort") {
            None => true,
            Some(target) => target == 0 || target == "",
        };
        if let Some(number) = port
            .get("port")
            .filter(|number| is_missing && number.is_number())
            .cloned()
        {
            port.insert("targetPort".to_owned(), number);
        }
    }
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

fn ports_are_given(spec: &Value, report: &mut Report<'_>) {
    let ports = spec
        .get("ports")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let is_headless = text(spec, "clusterIP") == Some("None");
    if ports.is_empty() && !is_headless && text(spec, "type") != Some("ExternalName") {
        report.error_at(
            &["ports".into()],
            Code::MissingField,
            "a Service needs ports",
            "add at least one port",
        );
    }
    if ports.len() > 1 {
        for (index, port) in ports.iter().enumerate() {
            if text(port, "name").is_none_or(str::is_empty) {
                let message = "every port needs a name when there are several";
                let place = ["ports".into(), index.into(), "name".into()];
                report.error_at(&place, Code::MissingField, message, "add \"name\" to this port");
            }
        }
    }
}

fn external_name_fits_the_type(spec: &Value, report: &mut Report<'_>) {
    if text(spec, "type") != Some("ExternalName") {
        return;
    }
    match text(spec, "externalName").filter(|name| !name.is_empty()) {
        None => {
            let message = "type ExternalName needs externalName";
            let hint = "add externalName with the DNS name to which requests go";
            report.error_at(&["externalName".into()], Code::MissingField, message, hint);
        }
        Some(name) if !(SUBDOMAIN.is_valid)(name.strip_suffix('.').unwrap_or(name)) || name.len() > 254 => {
            let message = format!("{name:?} is not a DNS name");
            report.error_at(&["externalName".into()], Code::BadFormat, message, SUBDOMAIN.hint);
        }
        Some(_) => {}
    }
    if text(spec, "clusterIP").is_some_and(|address| !address.is_empty()) {
        let message = "clusterIP cannot be set with type ExternalName";
        report.error_at(&["clusterIP".into()], Code::RuleBroken, message, "remove clusterIP");
    }
}

fn cluster_ip(address: &Value, report: &mut Report<'_>) {
    if let Some(text) = address.as_str()
        && !matches!(text, "" | "None")
        && text.parse::<IpAddr>().is_err()
    {
        report.error(
            Code::BadFormat,
            format!("{text:?} is not an IP address"),
            "write an IP address, None, or nothing",
        );
    }
}

fn ports_are_distinct(ports: &Value, report: &mut Report<'_>) {
    let mut names = HashMap::new();
    let mut numbers = HashMap::new();
    for (index, port) in ports.as_array().into_iter().flatten().enumerate() {
        if let Some(name) = text(port, "name").filter(|name| !name.is_empty())
            && let Some(first) = names.insert(name, index)
        {
            let message = format!("name {name:?} is in the list twice, first at [{first}]");
            report.error_at(
                &[index.into(), "name".into()],
                Code::Duplicate,
                message,
                "give each port another name",
            );
        }
        if let (Some(number), Some(protocol)) = (port.get("port"), text(port, "protocol"))
            && let Some(first) = numbers.insert((number, protocol), index)
        {
            let message = format!("port {number} with protocol {protocol} is in the list twice, first at [{first}]");
            report.error_at(
                &[index.into(), "port".into()],
                Code::Duplicate,
                message,
                "remove one of the two",
            );
        }
    }
}

/// A named target port: at most 15 characters, at least one of them a letter.
fn port_name(target: &Value, report: &mut Report<'_>) {
    if let Some(name) = target.as_str()
        && !((PORT_NAME.is_valid)(name) && name.len() <= 15 && name.bytes().any(|byte| byte.is_ascii_lowercase()))
    {
        let hint = "write a port number without quotes, or a port name of at most 15 characters with a letter";
        report.error(Code::BadFormat, format!("{name:?} is not a port name"), hint);
    }
}
