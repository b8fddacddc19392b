use std::collections::BTreeMap;

use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn listener(fields: &Value) -> Listener {
    let mut listener = json!({"name": "l", "port": 80, "protocol": "HTTP"});
    for (field, value) in fields.as_object().into_iter().flatten() {
        listener[field] = value.clone();
    }
    let gateway = json!({
        "metadata": {"namespace": "a", "name": "g"},
        "spec": {"gatewayClassName": "c", "listeners": [listener]},
    });
    match Object::from_value(Kind::Gateway, gateway).unwrap() {
        Object::Gateway(gateway) => reduce(&gateway.spec.listeners[0], 0, &mut Interner::default()),
        other => panic!("{other:?} is no Gateway"),
    }
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
    assert_eq!(listener(&json!({})), expected);
}

#[test]
fn protocols_are_read_with_the_mode_of_tls_and_others_kept_by_name() {
    let own = |name: &str| ListenerProtocol::Other(name.into());
    // protocol, mode of TLS, what it is
    let table = [
        ("HTTP", Value::Null, ListenerProtocol::Http),
        ("HTTPS", Value::Null, ListenerProtocol::Https),
        ("HTTPS", json!("Terminate"), ListenerProtocol::Https),
        ("TLS", Value::Null, ListenerProtocol::Tls),
        ("TLS", json!("Terminate"), ListenerProtocol::Tls),
        ("TLS", json!("Passthrough"), ListenerProtocol::Passthrough),
        ("TCP", Value::Null, ListenerProtocol::Tcp),
        ("UDP", Value::Null, ListenerProtocol::Udp),
        ("http", Value::Null, own("http")),
        ("SCTP", Value::Null, own("SCTP")),
        ("example.com/own", Value::Null, own("example.com/own")),
    ];
    for (name, mode, expected) in table {
        let read = listener(&json!({"protocol": name, "tls": {"mode": mode}}));
        assert_eq!(read.protocol, expected, "{name} {mode}");
        assert_eq!(read.protocol.as_str(), name);
        assert!(read.refusals.is_empty(), "{name} {mode}");
    }
}

#[test]
fn a_port_belongs_to_the_transport_of_its_protocol() {
    let door = |protocol: &str, port: i32| listener(&json!({"protocol": protocol, "port": port})).door();
    for protocol in ["HTTP", "HTTPS", "TLS", "TCP"] {
        assert_eq!(door(protocol, 53), Some(Port::tcp(53)), "{protocol}");
    }
    assert_eq!(door("UDP", 53), Some(Port::udp(53)));
    assert_eq!(door("SCTP", 53), None, "nobody knows what carries it");
    assert_eq!(door("HTTP", 70_000), None);
}

#[test]
fn only_some_protocols_begin_with_tls_and_only_some_of_these_end_it_here() {
    let table = [
        (ListenerProtocol::Http, false, false),
        (ListenerProtocol::Https, true, true),
        (ListenerProtocol::Tls, true, true),
        (ListenerProtocol::Passthrough, true, false),
        (ListenerProtocol::Tcp, false, false),
        (ListenerProtocol::Udp, false, false),
        (ListenerProtocol::Other("TLSX".into()), false, false),
    ];
    for (protocol, begins, terminates) in table {
        assert_eq!(protocol.begins_with_tls(), begins, "{protocol:?}");
        assert_eq!(protocol.terminates_tls(), terminates, "{protocol:?}");
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
        (json!({"protocol": "HTTPS", "tls": {"mode": "Passthrough"}}), "tls.mode"),
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
