//! Gateways and ListenerSets that are in each other's way: few ports, few hostnames, the same names of listeners.

use gatewright_api::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Edit, NAMESPACES, pick};

pub(super) fn base() -> Vec<Edit> {
    let red = json!({"from": "Selector", "selector": {"matchLabels": {"team": "red"}}});
    let mut edits = Vec::new();
    for namespace in NAMESPACES {
        edits.push(Edit::Apply(
            Kind::Gateway,
            json!({
                "metadata": {"namespace": namespace, "name": "front", "generation": 1},
                "spec": {"gatewayClassName": "one", "allowedListeners": {"namespaces": red}, "listeners": [
                    {"name": "l0", "protocol": "HTTP", "port": 80, "allowedRoutes": {"namespaces": red}},
                    {"name": "l1", "protocol": "HTTP", "port": 81, "hostname": "*.x.com"},
                ]},
            }),
        ));
        edits.push(Edit::Apply(
            Kind::ListenerSet,
            json!({
                "metadata": {"namespace": namespace, "name": "s0", "generation": 1},
                "spec": {"parentRef": {"name": "front", "namespace": "a"}, "listeners": [
                    {"name": "l0", "protocol": "TCP", "port": 82, "allowedRoutes": {"namespaces": red}},
                    {"name": "l1", "protocol": "UDP", "port": 82},
                    {"name": "l2", "protocol": "TLS", "port": 83, "hostname": "a.x.com", "tls": {"certificateRefs": [{"name": "good"}]}},
                ]},
            }),
        ));
    }
    edits
}

/// A parent of a route.
pub(super) fn parent() -> impl Strategy<Value = Value> {
    let object = pick(&[
        ("Gateway", "front"),
        ("Gateway", "front"),
        ("Gateway", "back"),
        ("Gateway", "gone"),
        ("ListenerSet", "s0"),
        ("ListenerSet", "s1"),
        ("Service", "front"),
    ]);
    let namespace = pick(&[None, Some("a"), Some("b")]);
    let section = pick(&[None, None, None, Some("l0"), Some("l2"), Some("l9")]);
    (object, namespace, section, pick(&[None, None, None, Some(80), Some(82)])).prop_map(
        |((kind, name), namespace, section, port)| {
            json!({"kind": kind, "name": name, "namespace": namespace, "sectionName": section, "port": port})
        },
    )
}

fn from() -> impl Strategy<Value = Value> {
    pick(&[
        json!(null),
        json!({"from": "All"}),
        json!({"from": "Same"}),
        json!({"from": "Selector", "selector": {"matchLabels": {"team": "red"}}}),
    ])
}

fn listener() -> impl Strategy<Value = Value> {
    let protocol = pick(&[
        ("HTTP", None),
        ("HTTP", None),
        ("HTTPS", Some("Terminate")),
        ("HTTPS", Some("Terminate")),
        ("TLS", Some("Terminate")),
        ("TLS", Some("Passthrough")),
        ("TCP", None),
        ("UDP", None),
        ("SCTP", None),
    ]);
    let hostname = pick(&[None, None, Some("*.x.com"), Some("a.x.com"), Some("y.com")]);
    let kinds = pick(&[
        json!(null),
        json!(null),
        json!(null),
        json!([{"kind": "HTTPRoute"}]),
        json!([{"kind": "GRPCRoute"}]),
        json!([{"kind": "TCPRoute"}, {"kind": "TLSRoute"}]),
    ]);
    let secret = pick(&["good", "good", "young", "old", "bad", "absent"]);
    let certificate = (secret, pick(&[None, None, Some("a"), Some("b")]));
    (
        protocol,
        pick(&[80, 80, 81, 82]),
        hostname,
        from(),
        kinds,
        certificate,
        0..12,
    )
        .prop_map(
            |((protocol, mode), port, hostname, namespaces, kinds, (secret, namespace), options)| {
                let mut tls = Value::Null;
                if let Some(mode) = mode {
                    tls = json!({"mode": mode});
                    if mode == "Terminate" {
                        tls["certificateRefs"] = json!([{"name": secret, "namespace": namespace}]);
                    }
                    // An option that nobody knows seals a listener.
                    if options == 0 {
                        tls["options"] = json!({"example.com/own": "x"});
                    }
                }
                json!({"protocol": protocol, "port": port, "hostname": hostname, "tls": tls,
                "allowedRoutes": {"namespaces": namespaces, "kinds": kinds}})
            },
        )
}

fn listeners() -> impl Strategy<Value = Vec<Value>> {
    proptest::collection::vec(listener(), 1..4).prop_map(|mut listeners| {
        for (index, listener) in listeners.iter_mut().enumerate() {
            listener["name"] = json!(format!("l{index}"));
        }
        listeners
    })
}

/// Which clients may connect, and the certificate for backends.
fn tls() -> impl Strategy<Value = Value> {
    let authority = (
        pick(&["ConfigMap", "ConfigMap", "ConfigMap", "Service"]),
        pick(&["ca", "ca", "ca", "none"]),
        pick(&[None, None, Some("a"), Some("b")]),
    );
    let authority = authority
        .prop_map(|(kind, name, namespace)| json!({"group": "", "kind": kind, "name": name, "namespace": namespace}));
    let mode = pick(&["AllowValidOnly", "AllowInsecureFallback"]);
    let validation = (proptest::collection::vec(authority, 1..3), mode)
        .prop_map(|(authorities, mode)| json!({"validation": {"caCertificateRefs": authorities, "mode": mode}}));
    let validation = prop_oneof![Just(json!({})), validation];
    let port = (pick(&[80, 81]), validation.clone()).prop_map(|(port, tls)| json!([{"port": port, "tls": tls}]));
    let frontend = (validation, prop_oneof![Just(Value::Null), port])
        .prop_map(|(default, ports)| json!({"default": default, "perPort": ports}));
    let identity = (pick(&["good", "old", "bad", "absent"]), pick(&[None, None, Some("a"), Some("b")]), pick(&["Secret", "Secret", "Service"]))
        .prop_map(|(name, namespace, kind)| json!({"clientCertificateRef": {"name": name, "namespace": namespace, "kind": kind}}));
    (
        prop_oneof![Just(Value::Null), frontend],
        prop_oneof![Just(Value::Null), identity],
    )
        .prop_map(|(frontend, backend)| json!({"frontend": frontend, "backend": backend}))
}

pub(super) fn gateway() -> impl Strategy<Value = Edit> {
    let parameters = pick(&[
        Value::Null,
        Value::Null,
        json!({"parametersRef": {"group": "gatewright.dev", "kind": "GatewayConfig", "name": "config"}}),
        json!({"labels": {"team": "red"}, "annotations": {"example.com/note": "x"}}),
    ]);
    let addresses = pick(&[
        Value::Null,
        Value::Null,
        json!([{"value": "127.0.0.2"}]),
        json!([{"value": "192.0.2.1"}]),
        json!([{"value": ""}]),
        json!([{"type": "Hostname", "value": "x"}]),
    ]);
    let scope = pick(&[json!(null), json!(null), json!("None"), json!("All")]);
    let allowed = prop_oneof![
        1 => Just(Value::Null),
        4 => from().prop_map(|from| json!({"namespaces": from})),
    ];
    let tls = prop_oneof![Just(Value::Null), tls()];
    (
        pick(&NAMESPACES),
        pick(&["front", "back"]),
        pick(&["one", "one", "two", "three"]),
        listeners(),
        1..4i64,
        parameters,
        (addresses, scope, allowed, tls),
    )
        .prop_map(
            |(namespace, name, class, listeners, generation, infrastructure, (addresses, scope, allowed, tls))| {
                let created = if name == "front" { "2026-01-01T00:00:00Z" } else { "2026-01-02T00:00:00Z" };
                Edit::Apply(
                    Kind::Gateway,
                    json!({
                        "metadata": {"namespace": namespace, "name": name, "generation": generation, "creationTimestamp": created},
                        "spec": {
                            "gatewayClassName": class, "listeners": listeners, "infrastructure": infrastructure,
                            "addresses": addresses, "defaultScope": scope, "allowedListeners": allowed, "tls": tls,
                        },
                    }),
                )
            },
        )
}

/// ListenerSets of different ages, which also move from one Gateway to another.
pub(super) fn set() -> impl Strategy<Value = Edit> {
    let parent = (
        pick(&["front", "front", "back", "gone"]),
        pick(&[None, Some("a"), Some("b")]),
        pick(&["Gateway", "Gateway", "Gateway", "Gateway", "Gateway", "Service"]),
    );
    let created = pick(&["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
    (pick(&NAMESPACES), pick(&["s0", "s1"]), parent, listeners(), 1..4i64, created).prop_map(
        |(namespace, name, (gateway, at, kind), listeners, generation, created)| {
            Edit::Apply(
                Kind::ListenerSet,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "generation": generation, "creationTimestamp": created},
                    "spec": {"parentRef": {"kind": kind, "name": gateway, "namespace": at}, "listeners": listeners},
                }),
            )
        },
    )
}
