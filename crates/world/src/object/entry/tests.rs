use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;

fn service() -> Value {
    json!({
        "metadata": {
            "namespace": "a",
            "name": "gatewright-front",
            "labels": {"app.kubernetes.io/managed-by": "gatewright"},
            "ownerReferences": [{
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "front", "uid": "1", "controller": true,
            }],
        },
        "spec": {
            "type": "LoadBalancer",
            "clusterIPs": ["10.96.0.1"],
            "ports": [
                {"name": "tcp-443", "port": 443, "targetPort": 20001},
                {"name": "tcp-80", "port": 80, "targetPort": 20000},
                {"name": "odd", "port": 81, "targetPort": "http"},
                {"name": "udp-53", "port": 53, "targetPort": 20002, "protocol": "UDP"},
                {"name": "tcp-53", "port": 53, "targetPort": 20002, "protocol": "TCP"},
                {"name": "other", "port": 54, "targetPort": 20003, "protocol": "SCTP"},
            ],
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]}},
    })
}

fn reduce(value: Value) -> Option<EntryService> {
    match Object::from_value(Kind::Service, value).unwrap() {
        Object::Service(service) => EntryService::reduce(&service, &mut Interner::default()),
        other => panic!("{other:?} is no Service"),
    }
}

#[test]
fn the_service_of_a_gateway_is_read_back() {
    let read = reduce(service()).unwrap();
    assert_eq!(read.gateway, Key::new("a", "front"));
    assert_eq!(
        *read.targets,
        [
            (Port::tcp(53), 20002),
            (Port::udp(53), 20002),
            (Port::tcp(80), 20000),
            (Port::tcp(443), 20001)
        ]
    );
    let address = Address::Ip("192.0.2.1".parse().unwrap());
    assert_eq!(*read.addresses, [address, Address::Hostname("lb.example.com".into())]);
}

#[test]
fn only_a_load_balancer_gives_addresses_from_outside() {
    for kind in ["ClusterIP", "NodePort"] {
        let mut value = service();
        value["spec"]["type"] = json!(kind);
        let address = Address::Ip("10.96.0.1".parse().unwrap());
        assert_eq!(*reduce(value).unwrap().addresses, [address], "{kind}");
    }
    let mut value = service();
    value["status"] = json!({});
    assert!(reduce(value).unwrap().addresses.is_empty(), "none was given yet");
    let mut value = service();
    value["spec"]["type"] = json!("ClusterIP");
    value["spec"]["clusterIPs"] = json!(["None"]);
    assert!(reduce(value).unwrap().addresses.is_empty());
}

#[test]
fn an_address_that_is_told_twice_is_one() {
    let mut value = service();
    value["status"]["loadBalancer"]["ingress"] =
        json!([{"ip": "192.0.2.2"}, {"hostname": "lb.example.com"}, {"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]);
    let shown: Vec<String> = reduce(value)
        .unwrap()
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(shown, ["192.0.2.2", "lb.example.com", "192.0.2.1"]);
}

#[test]
fn a_service_that_is_not_wholly_ours_is_no_entry() {
    let changes: [(&str, Value); 5] = [
        ("/metadata/name", json!("gatewright-other")),
        ("/metadata/ownerReferences", json!([])),
        ("/metadata/ownerReferences/0/controller", json!(false)),
        ("/metadata/ownerReferences/0/kind", json!("Deployment")),
        ("/metadata/ownerReferences/0/apiVersion", json!("example.com/v1")),
    ];
    for (place, value) in changes {
        let mut altered = service();
        *altered.pointer_mut(place).unwrap() = value;
        assert_eq!(reduce(altered), None, "{place}");
    }
}
