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

fn salvaged(kind: Kind, spec: &Value) -> Object {
    let value = json!({"metadata": {"name": "x", "namespace": "shop", "generation": 4}, "spec": spec});
    match read(kind, value) {
        Change::Invalid {
            salvaged: Some(object), ..
        } => *object,
        other => panic!("{other:?}"),
    }
}

#[test]
fn routes_of_connections_keep_their_parents() {
    let spec = json!({"parentRefs": [{"name": "edge", "port": 443}, {"port": 1}], "rules": [{"backendRefs": 5}]});
    let parents: Vec<(String, Option<i32>)> = match salvaged(Kind::TlsRoute, &spec) {
        Object::TlsRoute(route) => {
            assert!(route.spec.hostnames.is_empty() && route.spec.rules.is_empty());
            route
                .spec
                .parent_refs
                .unwrap()
                .into_iter()
                .map(|parent| (parent.name, parent.port))
                .collect()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(parents, [("edge".to_owned(), Some(443))]);
    for kind in [Kind::TcpRoute, Kind::UdpRoute] {
        let parents = match salvaged(kind, &spec) {
            Object::TcpRoute(route) => route.spec.parent_refs.map_or(0, |parents| parents.len()),
            Object::UdpRoute(route) => route.spec.parent_refs.map_or(0, |parents| parents.len()),
            other => panic!("{other:?}"),
        };
        assert_eq!(parents, 1, "{kind}");
    }
}

#[test]
fn a_listener_set_keeps_its_parent() {
    let spec = json!({"parentRef": {"name": "edge", "namespace": "infra"}, "listeners": [{"name": "a", "port": "x"}]});
    let Object::ListenerSet(set) = salvaged(Kind::ListenerSet, &spec) else {
        panic!()
    };
    let parent = set.spec.parent_ref;
    assert_eq!(
        (parent.name.as_str(), parent.namespace.as_deref()),
        ("edge", Some("infra"))
    );
    assert!(set.spec.listeners.is_empty());
    assert_eq!(set.metadata.generation, Some(4));
}

#[test]
fn a_policy_keeps_its_targets_and_neither_authorities_nor_names() {
    let target = |name: &str| json!({"group": "", "kind": "Service", "name": name});
    let mut odd = target("odd");
    odd["sectionName"] = json!(7);
    let spec = json!({
        "targetRefs": [target("cart"), odd, {"name": "half"}],
        "validation": {"hostname": "a.example.com", "wellKnownCACertificates": "System",
                       "subjectAltNames": [{"type": "Email"}]},
    });
    let Object::BackendTlsPolicy(policy) = salvaged(Kind::BackendTlsPolicy, &spec) else {
        panic!()
    };
    assert_eq!(policy.spec.target_refs.len(), 1);
    assert_eq!(policy.spec.target_refs[0].name, "cart");
    assert_eq!(policy.spec.validation.hostname, "");
    assert_eq!(policy.spec.validation.well_known_ca_certificates, None);
}

#[test]
fn a_tls_route_of_an_older_version_may_have_no_hostnames() {
    let route = json!({"apiVersion": "gateway.networking.k8s.io/v1alpha2", "kind": "TLSRoute",
                       "metadata": {"name": "r", "namespace": "shop"},
                       "spec": {"rules": [{"backendRefs": [{"name": "a", "port": 1}]}]}});
    let Change::Apply(object) = read(Kind::TlsRoute, route) else {
        panic!("it can be read")
    };
    let Object::TlsRoute(route) = *object else { panic!() };
    assert!(route.spec.hostnames.is_empty() && route.spec.rules.len() == 1);
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
