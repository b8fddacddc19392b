use serde_json::{Value, json};

use super::*;
use crate::{
    ConfigStanding, Key,
    object::{RouteKey, RouteKind},
};

fn object(kind: Kind, value: Value) -> Object {
    Object::from_value(kind, value).unwrap()
}

#[test]
fn what_was_salvaged_says_whose_an_object_is_and_the_error_stays_with_it() {
    let mut world = World::default();
    let metadata = json!({"namespace": "a", "name": "x", "generation": 7});
    let gateway = object(
        Kind::Gateway,
        json!({"metadata": metadata, "spec": {"gatewayClassName": "c", "listeners": []}}),
    );
    let route = object(
        Kind::HttpRoute,
        json!({"metadata": metadata, "spec": {"parentRefs": [{"name": "gw"}]}}),
    );
    let class = object(
        Kind::GatewayClass,
        json!({"metadata": {"name": "c"}, "spec": {"controllerName": "x/y"}}),
    );
    for object in [&gateway, &route, &class] {
        world.apply_invalid(&object.name(), Some(object), "missing field `port`");
    }
    let key = Key::new("a", "x");
    let route_key = RouteKey {
        key: key.clone(),
        kind: RouteKind::Http,
    };
    let expected = "cannot be read: missing field `port`";
    let read = world.gateway(&key).unwrap();
    assert_eq!((read.meta.generation, &*read.refusals[0].message), (7, expected));
    assert_eq!(world.route(&route_key).unwrap().refusals[0].message, expected);
    assert_eq!(world.routes_of_gateway(&Key::new("a", "gw")).count(), 1);
    let class = world.class(&"c".into()).unwrap();
    assert_eq!(class.refusal.as_ref().unwrap().message, expected);
    world.take_changes();
    world.apply_invalid(&gateway.name(), Some(&gateway), "missing field `port`");
    assert!(world.take_changes().is_empty(), "to repeat it is no change");
    world.apply(&gateway);
    assert!(world.gateway(&key).unwrap().refusals.is_empty(), "it has been mended");
    world.delete(&route.name());
    assert!(world.route(&route_key).is_none());
}

#[test]
fn an_object_of_which_nothing_is_left_counts_as_absent() {
    let mut world = World::default();
    let grant = object(
        Kind::ReferenceGrant,
        json!({"metadata": {"namespace": "a", "name": "g"}, "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "b"}],
            "to": [{"group": "", "kind": "Service"}]}}),
    );
    world.apply(&grant);
    assert_eq!(world.grants.len(), 1);
    world.apply_invalid(&grant.name(), None, "no");
    assert_eq!(world.grants.len(), 0, "what opens a namespace must be readable");
}

#[test]
fn a_config_that_cannot_be_read_leaves_the_last_good_one_in_force() {
    use crate::resolve::{Reference, Referrer};
    let mut world = World::default();
    let config = object(
        Kind::GatewayConfig,
        json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {"host": {"addresses": ["127.0.0.1"]}}}),
    );
    world.apply(&config);
    world.apply_invalid(&config.name(), None, "unknown variant");
    let (namespace, name) = ("a".into(), "c".into());
    let to = Reference {
        group: "gatewright.dev",
        kind: "GatewayConfig",
        namespace: Some(&namespace),
        name: &name,
    };
    let granted = world.resolve::<Config>(Referrer::Cluster, to).unwrap();
    assert!(matches!(world.config_standing(&granted), ConfigStanding::Outdated(_)));
    assert!(world.read(&granted).unwrap().addresses.is_some());
}

#[test]
fn a_long_error_is_cut() {
    let mut world = World::default();
    let gateway = object(
        Kind::Gateway,
        json!({"metadata": {"namespace": "a", "name": "x"}, "spec": {"gatewayClassName": "c", "listeners": []}}),
    );
    world.apply_invalid(&gateway.name(), Some(&gateway), &"ä".repeat(100_000));
    assert!(world.gateway(&Key::new("a", "x")).unwrap().refusals[0].message.len() < 2100);
}
