use std::collections::BTreeMap;

use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn reduce(spec: &Value) -> Gateway {
    let mut value = json!({"metadata": {"namespace": "a", "name": "g"}, "spec": spec});
    value["spec"]["gatewayClassName"] = json!("c");
    match Object::from_value(Kind::Gateway, value).unwrap() {
        Object::Gateway(gateway) => Gateway::reduce(&gateway, &mut Interner::default()),
        other => panic!("{other:?} is no Gateway"),
    }
}

fn listener(fields: &Value) -> Arc<Listener> {
    let mut listener = json!({"name": "l", "port": 80, "protocol": "HTTP"});
    for (field, value) in fields.as_object().into_iter().flatten() {
        listener[field] = value.clone();
    }
    reduce(&json!({ "listeners": [listener] })).listeners[0].clone()
}

fn refused(refusals: &[Refusal]) -> Vec<&str> {
    refusals.iter().map(|refusal| &*refusal.field).collect()
}

#[test]
fn a_plain_listener_answers_for_all_hosts_and_takes_routes_of_its_namespace() {
    let expected = Listener {
        name: "l".into(),
        port: 80,
        protocol: ListenerProtocol::Http,
        hostname: HostPattern::Any,
        namespaces: AllowedNamespaces::Same,
        kinds: [].into(),
        certificates: [].into(),
        refusals: [].into(),
    };
    assert_eq!(*listener(&json!({})), expected);
}

#[test]
fn protocols_that_are_not_http_are_kept_by_name() {
    let table = [
        ("HTTP", ListenerProtocol::Http),
        ("HTTPS", ListenerProtocol::Https),
        ("http", ListenerProtocol::Other("http".into())),
        ("TLS", ListenerProtocol::Other("TLS".into())),
        ("example.com/own", ListenerProtocol::Other("example.com/own".into())),
    ];
    for (name, expected) in table {
        assert_eq!(listener(&json!({ "protocol": name })).protocol, expected);
    }
}

#[test]
fn who_may_attach_is_read_and_a_forgotten_selector_lets_nobody_in() {
    let labels: BTreeMap<Text, Text> = [("team".into(), "red".into())].into();
    // namespaces, whether they select a namespace with that label
    let table = [
        (
            json!({"from": "Selector", "selector": {"matchLabels": {"team": "red"}}}),
            true,
        ),
        (
            json!({"from": "Selector", "selector": {"matchLabels": {"team": "blue"}}}),
            false,
        ),
        (
            json!({"from": "Selector", "selector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}),
            true,
        ),
        (json!({"from": "Selector", "selector": {}}), true),
        (json!({"from": "Selector"}), false),
    ];
    for (namespaces, expected) in table {
        let listener = listener(&json!({"allowedRoutes": {"namespaces": namespaces}}));
        let AllowedNamespaces::Selected(selector) = &listener.namespaces else {
            panic!("{namespaces} is no selector")
        };
        assert_eq!(selector.selects(&labels), expected, "{namespaces}");
    }
    let all = listener(&json!({"allowedRoutes": {"namespaces": {"from": "All"}}}));
    assert_eq!(all.namespaces, AllowedNamespaces::All);
}

#[test]
fn kinds_and_certificates_have_their_defaults() {
    let listener = listener(&json!({
        "protocol": "HTTPS",
        "allowedRoutes": {"kinds": [{"kind": "HTTPRoute"}, {"group": "example.com", "kind": "Own"}]},
        "tls": {"certificateRefs": [{"name": "a"}, {"group": "example.com", "kind": "Own", "namespace": "b", "name": "c"}]},
    }));
    let kinds: Vec<_> = listener.kinds.iter().map(|kind| (&*kind.group, &*kind.kind)).collect();
    assert_eq!(
        kinds,
        [("gateway.networking.k8s.io", "HTTPRoute"), ("example.com", "Own")]
    );
    let certificates: Vec<_> = listener
        .certificates
        .iter()
        .map(|certificate| {
            (
                &*certificate.group,
                &*certificate.kind,
                certificate.namespace.as_deref(),
            )
        })
        .collect();
    assert_eq!(certificates, [("", "Secret", None), ("example.com", "Own", Some("b"))]);
}

#[test]
fn what_a_listener_asks_for_and_does_not_get_is_refused() {
    let table = [
        (json!({"hostname": "10.0.0.1"}), "hostname"),
        (json!({"port": 70000}), "port"),
        (json!({"protocol": "TLS", "tls": {"mode": "Passthrough"}}), "tls.mode"),
        (
            json!({"protocol": "HTTPS", "tls": {"options": {"example.com/minimum": "1.3"}}}),
            "tls.options",
        ),
    ];
    for (fields, field) in table {
        let field = format!("spec.listeners[0].{field}");
        assert_eq!(refused(&listener(&fields).refusals), [field]);
    }
}

#[test]
fn client_certificates_close_the_listeners_they_are_asked_for_on() {
    let listeners = json!([
        {"name": "a", "port": 443, "protocol": "HTTPS"},
        {"name": "b", "port": 8443, "protocol": "HTTPS"},
        {"name": "c", "port": 80, "protocol": "HTTP"},
    ]);
    let validation = json!({"validation": {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}]}});
    // frontend, names of the listeners that stay closed
    let table = [
        (json!({ "default": validation }), vec!["a", "b"]),
        (
            json!({"default": validation, "perPort": [{"port": 8443, "tls": {}}]}),
            vec!["a"],
        ),
        (
            json!({"default": {}, "perPort": [{"port": 8443, "tls": validation}]}),
            vec!["b"],
        ),
        (json!({"default": {}}), vec![]),
    ];
    for (frontend, expected) in table {
        let gateway = reduce(&json!({"listeners": listeners, "tls": {"frontend": frontend}}));
        let closed = gateway
            .listeners
            .iter()
            .filter(|listener| !listener.refusals.is_empty());
        let closed: Vec<&str> = closed.map(|listener| &*listener.name).collect();
        assert_eq!(closed, expected, "{frontend}");
    }
}

#[test]
fn addresses_are_of_type_ip_unless_they_say_otherwise() {
    let gateway = reduce(&json!({"listeners": [], "addresses": [
        {"value": "10.0.0.1"}, {"type": "Hostname", "value": "a.com"}, {"type": "IPAddress", "value": ""},
    ]}));
    let addresses: Vec<_> = gateway
        .addresses
        .iter()
        .map(|address| (&*address.kind, address.value.as_deref()))
        .collect();
    let expected = [
        ("IPAddress", Some("10.0.0.1")),
        ("Hostname", Some("a.com")),
        ("IPAddress", None),
    ];
    assert_eq!(addresses, expected);
}

#[test]
fn what_a_gateway_asks_for_and_does_not_get_is_refused() {
    let backend = json!({"backend": {"clientCertificateRef": {"name": "c"}}});
    let table = [
        (json!({"listeners": [], "defaultScope": "All"}), vec![]),
        (json!({"listeners": [], "defaultScope": "None"}), vec![]),
        (json!({"listeners": [], "tls": backend}), vec!["spec.tls.backend"]),
    ];
    for (spec, expected) in table {
        assert_eq!(refused(&reduce(&spec).refusals), expected, "{spec}");
    }
}
