use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn reduce(fields: &Value) -> EndpointSlice {
    let mut value = json!({
        "metadata": {"namespace": "a", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [],
    });
    for (field, part) in fields.as_object().into_iter().flatten() {
        value[field] = part.clone();
    }
    match Object::from_value(Kind::EndpointSlice, value).unwrap() {
        Object::EndpointSlice(slice) => EndpointSlice::reduce(&slice, &mut Interner::default()),
        other => panic!("{other:?} is no EndpointSlice"),
    }
}

#[test]
fn a_slice_belongs_to_the_service_its_label_names() {
    assert_eq!(reduce(&json!({})).service, Some(Key::new("a", "web")));
    let nobodys = json!({"metadata": {"namespace": "a", "name": "x"}});
    assert_eq!(reduce(&nobodys).service, None);
}

#[test]
fn an_endpoint_counts_that_is_ready_or_leaves_and_still_answers_and_unknown_means_ready() {
    let (ready, leaving) = (Some(false), Some(true));
    let table = [
        (json!(null), ready),
        (json!({}), ready),
        (json!({"ready": true}), ready),
        (json!({"ready": true, "terminating": true}), ready),
        (json!({"ready": false}), None),
        (json!({"ready": false, "serving": true}), None),
        (json!({"ready": false, "serving": false, "terminating": true}), None),
        (json!({"ready": false, "serving": true, "terminating": true}), leaving),
    ];
    for (conditions, expected) in table {
        let endpoint = json!({"addresses": ["10.0.0.1"], "conditions": conditions});
        let slice = reduce(&json!({ "endpoints": [endpoint] }));
        let leaves = slice.endpoints.first().map(|endpoint| endpoint.is_leaving);
        assert_eq!(leaves, expected, "{conditions}");
    }
}

#[test]
fn all_addresses_of_both_families_are_read_and_names_are_not() {
    let slice = reduce(&json!({"endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["fd00::1"]}]}));
    let expected: Vec<IpAddr> = ["10.0.0.1", "10.0.0.2", "fd00::1"]
        .iter()
        .map(|address| address.parse().unwrap())
        .collect();
    let addresses: Vec<IpAddr> = slice.endpoints.iter().map(|endpoint| endpoint.address).collect();
    assert_eq!(addresses, expected);
    let named = reduce(&json!({"addressType": "FQDN", "endpoints": [{"addresses": ["web.example.com"]}]}));
    assert!(named.endpoints.is_empty());
}

#[test]
fn ports_are_read_by_name_and_transport_as_far_as_it_is_spoken() {
    let slice = reduce(&json!({"ports": [
        {"name": "http", "port": 8080}, {"port": 9000, "protocol": "TCP"}, {"name": "any"}, {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "signals", "port": 54, "protocol": "SCTP"},
    ]}));
    let read = slice.ports.iter().map(|port| (&*port.name, port.port, port.transport));
    let ports: Vec<_> = read.collect();
    let (tcp, udp) = (Transport::Tcp, Transport::Udp);
    let expected = [
        ("http", Some(8080), tcp),
        ("", Some(9000), tcp),
        ("any", None, tcp),
        ("dns", Some(53), udp),
    ];
    assert_eq!(ports, expected);
}

#[test]
fn where_an_endpoint_is_and_for_whom_is_read() {
    let slice = reduce(&json!({"endpoints": [{
        "addresses": ["10.0.0.1"], "nodeName": "n1",
        "hints": {"forZones": [{"name": "z1"}], "forNodes": [{"name": "n1"}]},
    }]}));
    let endpoint = &slice.endpoints[0];
    assert_eq!(endpoint.node.as_deref(), Some("n1"));
    let hints = endpoint.hints.as_ref().unwrap();
    assert_eq!((&*hints.zones[0], &*hints.nodes[0]), ("z1", "n1"));
}
