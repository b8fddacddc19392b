//! Limits and rules of our own GatewayConfig, as its documentation states them.
//!
//! The values are in [`crate::config`]; what is left out there keeps its default and is not filled in here, because
//! a class's config and a Gateway's own are merged field by field.

use serde_json::Value;

use super::{
    Code,
    facts::Facts,
    formats::{ANNOTATION_KEY, DURATION_TEXT, IP_ADDRESS, LABEL_KEY, NETWORK, POSITIVE_DURATION},
    report::Report,
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.rule("spec", tunnels_need_the_builtin_plane);
    facts.rule("spec", settings_need_their_entry);
    facts.rule("spec.loadBalancer", service_settings_need_their_type);
    facts.at(
        "spec.loadBalancer.annotations",
        &[Check::Entries(64), Check::Keys(&ANNOTATION_KEY)],
    );
    facts.at("spec.loadBalancer.annotations{}", &[Check::Length(0, 4096)]);
    facts.at(
        "spec.loadBalancer.loadBalancerClass",
        &[Check::Length(1, 317), Check::Format(&LABEL_KEY)],
    );
    facts.at("spec.allowedOverrides", &[Check::Unique]);
    facts.at("spec.host.addresses", &[Check::Items(1, 256), Check::Unique]);
    facts.at(
        "spec.host.addresses[]",
        &[Check::Length(1, 64), Check::Format(&IP_ADDRESS)],
    );
    for networks in ["spec.http.trustedProxies", "spec.proxyProtocol.acceptFrom"] {
        // The API server evaluates a rule for each, and wants to know of how many.
        facts.at(networks, &[Check::Items(0, 1024), Check::Unique]);
        facts.at(
            &format!("{networks}[]"),
            &[Check::Length(1, 64), Check::Format(&NETWORK)],
        );
    }
    facts.at("spec.http.maxHeaderBytes", &[Check::Range(1024, 1_048_576)]);
    facts.at("spec.http.maxConnections", &[Check::Range(1, i64::MAX)]);
    facts.at("spec.http.maxStreams", &[Check::Range(1, 10_000)]);
    facts.at("spec.http.maxHastyResets", &[Check::Range(1, 1_000_000)]);
    // Not to wait at all is a way to drain; the other times would end everything before it began.
    facts.at(
        "spec.http.drainTimeout",
        &[Check::Length(1, 24), Check::Format(&DURATION_TEXT)],
    );
    for timeout in [
        "http.headerTimeout",
        "http.idleTimeout",
        "http.bodyTimeout",
        "tcp.idleTimeout",
        "udp.idleTimeout",
        "upstream.connectTimeout",
        "upstream.idleTimeout",
    ] {
        facts.at(
            &format!("spec.{timeout}"),
            &[Check::Length(1, 24), Check::Format(&POSITIVE_DURATION)],
        );
    }
}

fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field).and_then(Value::as_str)
}

/// A tunnel hands connections to the proxy inside this process; other data planes cannot take them.
fn tunnels_need_the_builtin_plane(spec: &Value, report: &mut Report<'_>) {
    if let (Some(entry @ ("SSH" | "Portal")), Some(plane)) = (text(spec, "entry"), text(spec, "dataPlane"))
        && plane != "Builtin"
    {
        let message = format!("entry {entry} needs dataPlane Builtin, not {plane}");
        report.error_at(
            &["entry".into()],
            Code::RuleBroken,
            message,
            "set dataPlane to Builtin, or choose another entry",
        );
    }
}

/// Each way in has a section of its own, which means nothing to the others.
fn settings_need_their_entry(spec: &Value, report: &mut Report<'_>) {
    let Some(entry @ ("Host" | "LoadBalancer" | "SSH" | "Portal")) = text(spec, "entry") else {
        return;
    };
    for (section, needed) in [("host", "Host"), ("loadBalancer", "LoadBalancer")] {
        if entry != needed && spec.get(section).is_some() {
            report.warn_at(
                &[section.into()],
                Code::NoEffect,
                format!("{section} has no effect with entry {entry}"),
                format!("remove {section}, or set entry to {needed}"),
            );
        }
    }
}

/// Kubernetes takes some fields only from Services of certain types; on the others they are left out.
fn service_settings_need_their_type(settings: &Value, report: &mut Report<'_>) {
    let service_type = text(settings, "serviceType").unwrap_or("LoadBalancer");
    let needs: [(&str, &[&str]); 2] = [
        ("loadBalancerClass", &["LoadBalancer"]),
        ("externalTrafficPolicy", &["LoadBalancer", "NodePort"]),
    ];
    for (field, types) in needs {
        if settings.get(field).is_some() && !types.contains(&service_type) {
            report.warn_at(
                &[field.into()],
                Code::NoEffect,
                format!("{field} has no effect on a Service of type {service_type}"),
                format!("remove {field}, or set serviceType to {}", types.join(" or ")),
            );
        }
    }
}
