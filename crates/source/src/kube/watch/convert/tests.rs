use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::convert;
use crate::{Change, kube::raw::Raw};

fn read(kind: Kind, value: Value) -> Change {
    convert(kind, Raw::of(value).unwrap())
}

fn route(filter: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": "shop", "generation": 3, "managedFields": [{"manager": "kubectl"}],
                     "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}},
        "spec": {"parentRefs": [{"name": "edge", "sectionName": "web"}, {"name": 7}, "what"],
                 "rules": [{"filters": [{"type": filter}]}]},
    })
}

#[test]
fn a_route_with_an_unknown_filter_keeps_its_parents() {
    let Change::Invalid { name, salvaged, error } = read(Kind::HttpRoute, route("Teleport")) else {
        panic!("it is invalid");
    };
    assert_eq!(name.to_string(), "HTTPRoute shop/r");
    assert!(error.contains("Teleport") || error.contains("invalid type"), "{error}");
    let Some(Object::HttpRoute(route)) = salvaged.map(|object| *object) else {
        panic!("a route is salvaged");
    };
    let parents = route.spec.parent_refs.unwrap();
    assert_eq!(parents.len(), 1);
    assert_eq!(
        (parents[0].name.as_str(), parents[0].section_name.as_deref()),
        ("edge", Some("web"))
    );
    assert_eq!(route.metadata.generation, Some(3));
    assert!(route.spec.rules.is_none());
}

#[test]
fn gateways_and_classes_keep_whose_they_are() {
    let gateway = json!({"metadata": {"name": "g", "namespace": "a"},
                         "spec": {"gatewayClassName": "c", "listeners": [{"name": 1}]}});
    let Change::Invalid { salvaged, .. } = read(Kind::Gateway, gateway) else {
        panic!()
    };
    let Some(Object::Gateway(gateway)) = salvaged.map(|object| *object) else {
        panic!()
    };
    assert_eq!(
        (gateway.spec.gateway_class_name.as_str(), gateway.spec.listeners.len()),
        ("c", 0)
    );
    let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "us", "parametersRef": 5}});
    let Change::Invalid { salvaged, .. } = read(Kind::GatewayClass, class) else {
        panic!()
    };
    let Some(Object::GatewayClass(class)) = salvaged.map(|object| *object) else {
        panic!()
    };
    assert_eq!(class.spec.controller_name, "us");
}

#[test]
fn a_broken_service_is_invalid_and_nothing_is_salvaged() {
    let change = read(
        Kind::Service,
        json!({"metadata": {"name": "s", "namespace": "a"}, "spec": {"ports": 5}}),
    );
    assert!(matches!(change, Change::Invalid { salvaged: None, .. }), "{change:?}");
}

#[test]
fn what_nobody_reads_is_dropped_and_an_older_version_is_read() {
    let mut value = route("URLRewrite");
    value["apiVersion"] = json!("gateway.networking.k8s.io/v1beta1");
    value["spec"]["parentRefs"] = json!([{"name": "edge"}]);
    let Change::Apply(object) = read(Kind::HttpRoute, value) else {
        panic!("it can be read")
    };
    let metadata = object.metadata();
    assert_eq!(metadata.managed_fields, None);
    assert_eq!(
        metadata.annotations.as_ref().map(std::collections::BTreeMap::len),
        Some(1)
    );
}
