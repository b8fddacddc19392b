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
fn only_ready_endpoints_count_and_unknown_means_ready() {
    let table = [
        (json!(null), true),
        (json!({}), true),
        (json!({"ready": true}), true),
        (json!({"ready": false}), false),
        (json!({"ready": false, "serving": true, "terminating": true}), false),
    ];
    for (conditions, is_ready) in table {
        let endpoint = json!({"addresses": ["10.0.0.1"], "conditions": conditions});
        let slice = reduce(&json!({ "endpoints": [endpoint] }));
        assert_eq!(!slice.addresses.is_empty(), is_ready, "{conditions}");
    }
}

#[test]
fn all_addresses_of_both_families_are_read_and_names_are_not() {
    let slice = reduce(&json!({"endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["fd00::1"]}]}));
    let expected: Vec<IpAddr> = ["10.0.0.1", "10.0.0.2", "fd00::1"]
        .iter()
        .map(|address| address.parse().unwrap())
        .collect();
    assert_eq!(*slice.addresses, *expected);
    let named = reduce(&json!({"addressType": "FQDN", "endpoints": [{"addresses": ["web.example.com"]}]}));
    assert!(named.addresses.is_empty());
}

#[test]
fn ports_are_read_by_name_and_only_those_of_tcp() {
    let slice = reduce(&json!({"ports": [
        {"name": "http", "port": 8080}, {"port": 9000, "protocol": "TCP"}, {"name": "any"}, {"name": "dns", "port": 53, "protocol": "UDP"},
    ]}));
    let ports: Vec<_> = slice.ports.iter().map(|port| (&*port.name, port.port)).collect();
    assert_eq!(ports, [("http", Some(8080)), ("", Some(9000)), ("any", None)]);
}
