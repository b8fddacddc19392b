use gatewright_api::Object;
use gatewright_ir::Port;
use serde_json::{Value, json};

use super::*;

fn reduce(spec: &Value) -> ListenerSet {
    let metadata = json!({"namespace": "a", "name": "s", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"});
    match Object::from_value(Kind::ListenerSet, json!({"metadata": metadata, "spec": spec})).unwrap() {
        Object::ListenerSet(set) => ListenerSet::reduce(&set, &mut Interner::default()),
        other => panic!("{other:?} is no ListenerSet"),
    }
}

#[test]
fn a_listener_set_names_its_gateway_and_lists_its_listeners_in_order() {
    let set = reduce(&json!({"parentRef": {"name": "front"}, "listeners": [
        {"name": "web", "port": 80, "protocol": "HTTP"},
        {"name": "dns", "port": 53, "protocol": "UDP"},
    ]}));
    assert_eq!((set.meta.generation, set.meta.created), (3, 1_767_225_600));
    assert_eq!(set.gateway, Some(Key::new("a", "front")));
    let listeners: Vec<_> = set.listeners.iter().map(|one| (&*one.name, one.door())).collect();
    assert_eq!(listeners, [("web", Some(Port::tcp(80))), ("dns", Some(Port::udp(53)))]);
    assert!(set.refusals.is_empty());
}

#[test]
fn the_gateway_may_be_in_another_namespace_and_nothing_else_is_a_parent() {
    let gateway = |parent: Value| reduce(&json!({"parentRef": parent, "listeners": []})).gateway;
    let named = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "b", "name": "front"});
    assert_eq!(gateway(named), Some(Key::new("b", "front")));
    assert_eq!(gateway(json!({"kind": "Service", "name": "front"})), None);
    assert_eq!(gateway(json!({"group": "example.com", "name": "front"})), None);
}

#[test]
fn a_listener_of_a_set_is_read_as_one_of_a_gateway() {
    let declared = json!({
        "name": "web", "port": 443, "protocol": "TLS", "hostname": "*.example.com",
        "tls": {"mode": "Terminate", "certificateRefs": [{"name": "c", "namespace": "b"}]},
        "allowedRoutes": {"kinds": [{"kind": "TLSRoute"}], "namespaces": {"from": "All"}},
    });
    let set = reduce(&json!({"parentRef": {"name": "front"}, "listeners": [declared]}));
    let gateway = json!({
        "metadata": {"namespace": "a", "name": "g"},
        "spec": {"gatewayClassName": "c", "listeners": [declared]},
    });
    let Object::Gateway(gateway) = Object::from_value(Kind::Gateway, gateway).unwrap() else {
        panic!("it is no Gateway")
    };
    let own = listener::reduce(&gateway.spec.listeners[0], 0, &mut Interner::default());
    assert_eq!(*set.listeners[0], own);
    assert_eq!(
        own.certificates.len() + own.kinds.len(),
        2,
        "nothing was lost on the way"
    );
}

#[test]
fn what_a_listener_asks_for_and_does_not_get_is_refused_with_its_place() {
    let set = reduce(&json!({"parentRef": {"name": "front"}, "listeners": [
        {"name": "web", "port": 80, "protocol": "HTTP"},
        {"name": "tls", "port": 443, "protocol": "HTTPS", "tls": {"options": {"example.com/own": "x"}}},
    ]}));
    assert!(set.listeners[0].refusals.is_empty());
    assert_eq!(&*set.listeners[1].refusals[0].field, "spec.listeners[1].tls.options");
}
