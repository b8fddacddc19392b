use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn reduce(spec: &Value) -> Config {
    let value = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": spec});
    match Object::from_value(Kind::GatewayConfig, value).unwrap() {
        Object::GatewayConfig(config) => Config::reduce(&config, false),
        other => panic!("{other:?} is no GatewayConfig"),
    }
}

fn settings(spec: &Value) -> ListenerSettings {
    let config = reduce(spec);
    assert!(config.refusals.is_empty(), "{:?}", config.refusals);
    let mut settings = ListenerSettings::default();
    config.settings(&mut settings, &mut Vec::new());
    settings
}

#[test]
fn a_config_that_says_nothing_changes_nothing() {
    assert_eq!(settings(&json!({})), ListenerSettings::default());
    assert_eq!(
        settings(&json!({"http": {}, "tcp": {}, "udp": {}, "proxyProtocol": {}, "upstream": {}})),
        ListenerSettings::default()
    );
    assert_eq!(reduce(&json!({})).addresses, None);
}

#[test]
fn every_setting_arrives() {
    let read = settings(&json!({
        "http": {
            "escapedSlashes": "Keep", "underscoresInHeaders": "Allow", "trustedProxies": ["10.0.0.0/8", "::1"],
            "maxHeaderBytes": 4096, "headerTimeout": "1s", "idleTimeout": "2s", "drainTimeout": "3s",
            "bodyTimeout": "4s", "maxConnections": 5, "maxStreams": 9, "maxHastyResets": 10,
        },
        "tcp": {"idleTimeout": "11s"},
        "udp": {"idleTimeout": "12s"},
        "proxyProtocol": {"acceptFrom": ["192.0.2.0/24"], "send": "V1"},
        "upstream": {"connectTimeout": "6s", "idleTimeout": "7s", "maxIdle": 8},
    }));
    let seconds = Duration::from_secs;
    let expected = ListenerSettings {
        keep_escaped_slashes: true,
        allow_underscores: true,
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
        max_header_bytes: 4096,
        header_timeout: seconds(1),
        idle_timeout: seconds(2),
        drain_timeout: seconds(3),
        body_timeout: seconds(4),
        max_connections: 5,
        max_streams: 9,
        max_hasty_resets: 10,
        upstream: gatewright_ir::UpstreamSettings {
            connect_timeout: seconds(6),
            idle_timeout: seconds(7),
            max_idle: 8,
        },
        stream_idle_timeout: seconds(11),
        datagram_idle_timeout: seconds(12),
        proxy_fronts: vec!["192.0.2.0/24".parse().unwrap()],
        proxy_header: Some(ProxyHeader::V1),
    };
    assert_eq!(read, expected);
}

#[test]
fn only_draining_may_take_no_time_at_all() {
    assert_eq!(
        settings(&json!({"http": {"drainTimeout": "0s"}})).drain_timeout,
        Duration::ZERO
    );
    let table = [
        ("http", "headerTimeout", "0s"),
        ("http", "idleTimeout", "0s"),
        ("http", "bodyTimeout", "never"),
        ("http", "drainTimeout", "-1s"),
        ("tcp", "idleTimeout", "0s"),
        ("udp", "idleTimeout", "0h0m"),
        ("upstream", "connectTimeout", "0ms"),
        ("upstream", "idleTimeout", ""),
    ];
    for (section, field, value) in table {
        let config = reduce(&json!({section: {field: value}}));
        let refused: Vec<&str> = config.refusals.iter().map(|refusal| &*refusal.field).collect();
        assert_eq!(refused, [format!("spec.{section}.{field}")], "{value:?}");
    }
}

#[test]
fn what_is_not_available_or_not_an_address_is_refused() {
    let table = [
        (json!({"dataPlane": "Envoy"}), "spec.dataPlane"),
        (json!({"dataPlane": "Agentgateway"}), "spec.dataPlane"),
        (json!({"entry": "LoadBalancer"}), "spec.entry"),
        (json!({"entry": "SSH"}), "spec.entry"),
        (json!({"entry": "Portal"}), "spec.entry"),
        (
            json!({"loadBalancer": {"annotations": {"example.com/fine": "", "no spaces": ""}}}),
            "spec.loadBalancer.annotations",
        ),
        (
            json!({"loadBalancer": {"loadBalancerClass": "not a class"}}),
            "spec.loadBalancer.loadBalancerClass",
        ),
        (
            json!({"host": {"addresses": ["127.0.0.1", "localhost"]}}),
            "spec.host.addresses[1]",
        ),
        (
            json!({"http": {"trustedProxies": ["10.0.0.0/99"]}}),
            "spec.http.trustedProxies[0]",
        ),
        (
            json!({"proxyProtocol": {"acceptFrom": ["10.0.0.0/8", "front"]}}),
            "spec.proxyProtocol.acceptFrom[1]",
        ),
    ];
    for (spec, expected) in table {
        let config = reduce(&spec);
        let refused: Vec<&str> = config.refusals.iter().map(|refusal| &*refusal.field).collect();
        assert_eq!(refused, [expected], "{spec}");
    }
    assert!(
        reduce(&json!({"dataPlane": "Builtin", "entry": "Host"}))
            .refusals
            .is_empty()
    );
}

#[test]
fn what_is_stated_later_replaces_what_was_stated_before() {
    let mut settings = ListenerSettings::default();
    for (spec, fronts, header) in [
        (
            json!({"acceptFrom": ["10.0.0.0/8"], "send": "V2"}),
            1,
            Some(ProxyHeader::V2),
        ),
        (json!({}), 1, Some(ProxyHeader::V2)),
        (json!({"send": "None"}), 1, None),
        (json!({"acceptFrom": [], "send": "V1"}), 0, Some(ProxyHeader::V1)),
    ] {
        reduce(&json!({"proxyProtocol": spec})).settings(&mut settings, &mut Vec::new());
        assert_eq!(
            (settings.proxy_fronts.len(), settings.proxy_header),
            (fronts, header),
            "{spec}"
        );
    }
}

#[test]
fn a_load_balancer_needs_a_cluster() {
    let value = json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"entry": "LoadBalancer"}});
    let Object::GatewayConfig(config) = Object::from_value(Kind::GatewayConfig, value).unwrap() else {
        panic!("it is a GatewayConfig");
    };
    assert!(Config::reduce(&config, true).refusals.is_empty());
    let refused = Config::reduce(&config, false).refusals;
    assert_eq!(refused[0].message, "entry LoadBalancer needs a cluster; use Host");
}

#[test]
fn annotation_keys_are_those_that_kubernetes_takes() {
    let good = ["a", "A_b.c-d", "example.com/x", "Example.com/x", "0/0", &"a".repeat(63)];
    let bad = [
        "",
        "/",
        "a/",
        "/a",
        "a b",
        "-a",
        "a.",
        "a/b/c",
        "a..b/c",
        "exa_mple.com/x",
        &"a".repeat(64),
    ];
    for key in good {
        assert!(is_qualified_name(key), "{key}");
    }
    for key in bad {
        assert!(!is_qualified_name(key), "{key}");
    }
}
