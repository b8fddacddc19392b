use std::collections::{BTreeMap, BTreeSet};

use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;
use crate::Key;

fn reduce(spec: &Value) -> Gateway {
    let mut value = json!({"metadata": {"namespace": "a", "name": "g"}, "spec": spec});
    value["spec"]["gatewayClassName"] = json!("c");
    match Object::from_value(Kind::Gateway, value).unwrap() {
        Object::Gateway(gateway) => Gateway::reduce(&gateway, &mut Interner::default()),
        other => panic!("{other:?} is no Gateway"),
    }
}

fn validation(name: &str) -> Value {
    json!({"validation": {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": name}]}})
}

/// The first ConfigMap that is asked for on a port.
fn asked_on(gateway: &Gateway, port: u16) -> Option<&str> {
    let authorities = &gateway.frontend.on(port)?.authorities;
    authorities.first().map(|authority| &*authority.name)
}

#[test]
fn client_certificates_are_asked_for_by_port_and_elsewhere_as_by_default() {
    let own = |validation: Value| json!([{"port": 8443, "tls": validation}]);
    // frontend, what is asked for on 443, what on 8443
    let table = [
        (json!({ "default": validation("ca") }), Some("ca"), Some("ca")),
        (
            json!({"default": validation("ca"), "perPort": own(json!({}))}),
            Some("ca"),
            None,
        ),
        (
            json!({"default": validation("ca"), "perPort": own(validation("own"))}),
            Some("ca"),
            Some("own"),
        ),
        (
            json!({"default": {}, "perPort": own(validation("own"))}),
            None,
            Some("own"),
        ),
        (json!({"default": {}}), None, None),
    ];
    for (frontend, default, own) in table {
        let gateway = reduce(&json!({"listeners": [], "tls": {"frontend": frontend}}));
        assert_eq!(
            (asked_on(&gateway, 443), asked_on(&gateway, 8443)),
            (default, own),
            "{frontend}"
        );
        let named: BTreeSet<&str> = gateway.frontend.authorities().map(|one| &*one.name).collect();
        assert_eq!(named, default.into_iter().chain(own).collect(), "{frontend}");
        assert!(!gateway.frontend.has_fallback());
        assert!(gateway.refusals.is_empty());
    }
}

#[test]
fn a_gateway_without_tls_settings_asks_nobody_for_a_certificate() {
    let gateway = reduce(&json!({"listeners": []}));
    assert_eq!(asked_on(&gateway, 443), None);
    assert_eq!(gateway.frontend.authorities().count(), 0);
    assert_eq!(gateway.identity, None);
}

#[test]
fn one_port_that_lets_everybody_in_is_enough_to_say_so() {
    let mut optional = validation("ca");
    optional["validation"]["mode"] = json!("AllowInsecureFallback");
    let mut strict = validation("ca");
    strict["validation"]["mode"] = json!("AllowValidOnly");
    let frontends = [
        (json!({ "default": optional }), true),
        (
            json!({"default": strict, "perPort": [{"port": 8443, "tls": optional}]}),
            true,
        ),
        (
            json!({"default": strict, "perPort": [{"port": 8443, "tls": strict}]}),
            false,
        ),
    ];
    for (frontend, expected) in frontends {
        let gateway = reduce(&json!({"listeners": [], "tls": {"frontend": frontend}}));
        assert_eq!(gateway.frontend.has_fallback(), expected, "{frontend}");
        assert_eq!(
            gateway.frontend.on(443).unwrap().is_optional,
            frontend["default"] == optional
        );
    }
}

#[test]
fn the_certificate_for_backends_is_a_secret_unless_it_says_otherwise() {
    let identity = |reference: Value| {
        let tls = json!({"backend": {"clientCertificateRef": reference}});
        reduce(&json!({"listeners": [], "tls": tls})).identity.unwrap()
    };
    let own = Text::from("a");
    let plain = identity(json!({"name": "c"}));
    assert_eq!((&*plain.group, &*plain.kind), ("", "Secret"));
    assert_eq!(plain.key(&own), Key::new("a", "c"));
    let other = identity(json!({"group": "x.com", "kind": "Y", "namespace": "b", "name": "c"}));
    assert_eq!((&*other.group, &*other.kind), ("x.com", "Y"));
    assert_eq!(other.key(&own), Key::new("b", "c"));
}

#[test]
fn a_gateway_takes_listener_sets_only_from_where_it_says() {
    let allowed = |listeners: Value| {
        let mut spec = json!({"listeners": []});
        spec["allowedListeners"] = listeners;
        reduce(&spec).allowed_sets
    };
    let from = |from: &str| allowed(json!({"namespaces": {"from": from}}));
    assert_eq!(allowed(Value::Null), AllowedNamespaces::None);
    assert_eq!(allowed(json!({})), AllowedNamespaces::None);
    assert_eq!(allowed(json!({"namespaces": {}})), AllowedNamespaces::None);
    assert_eq!(from("None"), AllowedNamespaces::None);
    assert_eq!(from("Same"), AllowedNamespaces::Same);
    assert_eq!(from("All"), AllowedNamespaces::All);
    let labels: BTreeMap<Text, Text> = [("team".into(), "red".into())].into();
    let table = [
        (json!({"matchLabels": {"team": "red"}}), true),
        (json!({"matchLabels": {"team": "blue"}}), false),
        (
            json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]}),
            false,
        ),
        (json!({}), true),
        (Value::Null, false),
    ];
    for (selector, expected) in table {
        let allowed = allowed(json!({"namespaces": {"from": "Selector", "selector": selector}}));
        let AllowedNamespaces::Selected(read) = allowed else {
            panic!("{selector} is no selector")
        };
        assert_eq!(read.selects(&labels), expected, "{selector}");
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
fn a_gateway_says_whether_routes_that_ask_for_defaults_mean_it() {
    for (scope, expected) in [(json!("All"), true), (json!("None"), false), (Value::Null, false)] {
        let gateway = reduce(&json!({"listeners": [], "defaultScope": scope}));
        assert_eq!(gateway.is_default, expected, "{scope}");
        assert!(gateway.refusals.is_empty());
    }
}
