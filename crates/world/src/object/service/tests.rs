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
        (json!({"appProtocol": "https"}), AppProtocol::Https),
        (json!({"appProtocol": "HTTPS"}), AppProtocol::Https),
        (json!({"appProtocol": "kubernetes.io/wss"}), AppProtocol::Https),
        (json!({"appProtocol": "tls"}), unsupported("tls")),
    ];
    for (mut port, expected) in table {
        port["port"] = json!(80);
        let service = reduce(&json!({ "ports": [port] }));
        assert_eq!(
            service.port(Port::tcp(80)).map(|port| &port.protocol),
            Some(&expected),
            "{port}"
        );
    }
}

#[test]
fn one_number_is_two_ports_one_of_tcp_and_one_of_udp() {
    let service = reduce(&json!({"ports": [
        {"name": "quic", "port": 443, "protocol": "UDP"}, {"name": "web", "port": 443}, {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "sctp", "port": 9, "protocol": "SCTP"},
    ]}));
    let name = |port| service.port(port).map(|port| &*port.name);
    assert_eq!(name(Port::tcp(443)), Some("web"));
    assert_eq!(name(Port::udp(443)), Some("quic"));
    assert_eq!(name(Port::udp(53)), Some("dns"));
    assert_eq!(name(Port::tcp(53)), None);
    assert_eq!(name(Port::tcp(9)), None, "nothing here speaks SCTP");
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
