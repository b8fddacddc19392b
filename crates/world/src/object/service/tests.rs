use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn reduce(spec: &Value) -> Service {
    let value = json!({"metadata": {"namespace": "a", "name": "s"}, "spec": spec});
    match Object::from_value(Kind::Service, value).unwrap() {
        Object::Service(service) => Service::reduce(&service, &mut Interner::default()),
        other => panic!("{other:?} is no Service"),
    }
}

#[test]
fn a_port_speaks_what_its_protocols_say() {
    let unsupported = |name: &str| AppProtocol::Unsupported(name.into());
    let table = [
        (json!({}), AppProtocol::Http),
        (json!({"protocol": "TCP"}), AppProtocol::Http),
        (json!({"appProtocol": "http"}), AppProtocol::Http),
        (json!({"appProtocol": "kubernetes.io/ws"}), AppProtocol::WebSocket),
        (json!({"appProtocol": "example.com/own"}), AppProtocol::Http),
        (json!({"appProtocol": "kubernetes.io/h2c"}), AppProtocol::H2c),
        (json!({"appProtocol": "grpc"}), AppProtocol::H2c),
        (json!({"appProtocol": "https"}), unsupported("https")),
        (
            json!({"appProtocol": "kubernetes.io/wss"}),
            unsupported("kubernetes.io/wss"),
        ),
        (json!({"protocol": "UDP", "appProtocol": "http"}), unsupported("UDP")),
    ];
    for (mut port, expected) in table {
        port["port"] = json!(80);
        let service = reduce(&json!({ "ports": [port] }));
        assert_eq!(service.port(80).map(|port| &port.protocol), Some(&expected), "{port}");
    }
}

#[test]
fn a_number_that_tcp_and_udp_share_means_the_tcp_port() {
    let service = reduce(&json!({"ports": [
        {"name": "quic", "port": 443, "protocol": "UDP"}, {"name": "web", "port": 443}, {"name": "dns", "port": 53, "protocol": "UDP"},
    ]}));
    assert_eq!(service.port(443).map(|port| &*port.name), Some("web"));
    assert_eq!(service.port(53).map(|port| &*port.name), Some("dns"));
    assert_eq!(service.port(80), None);
}

#[test]
fn an_external_name_counts_only_for_the_type_that_has_one() {
    let name = |kind: &str| reduce(&json!({"type": kind, "externalName": "a.example.com"})).external_name;
    assert_eq!(name("ExternalName").as_deref(), Some("a.example.com"));
    assert_eq!(name("ClusterIP"), None);
}

#[test]
fn a_service_says_whether_clients_keep_their_endpoint_and_stay_on_their_node() {
    let plain = reduce(&json!({ "ports": [{ "port": 80 }] }));
    assert!(!plain.is_by_client && !plain.is_node_local);
    let kept = reduce(&json!({ "sessionAffinity": "ClientIP", "internalTrafficPolicy": "Local" }));
    assert!(kept.is_by_client && kept.is_node_local);
}
