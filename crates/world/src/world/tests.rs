use gatewright_api::Kind;
use serde_json::json;

use super::*;

fn object(kind: Kind, value: serde_json::Value) -> Object {
    Object::from_value(kind, value).unwrap()
}

fn slice(address: &str) -> Object {
    object(
        Kind::EndpointSlice,
        json!({
            "metadata": {"namespace": "a", "name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}, {"addresses": ["10.0.0.9"], "conditions": {"ready": false}}],
            "ports": [{"port": 80}],
        }),
    )
}

#[test]
fn an_update_that_planning_would_not_see_is_no_change() {
    let mut world = World::default();
    world.apply(&slice("10.0.0.1"));
    assert_eq!(world.take_changes().endpoints, [Key::new("a", "web")].into());
    let mut again = slice("10.0.0.1");
    again.metadata_mut().resource_version = Some("2".to_owned());
    world.apply(&again);
    assert!(world.take_changes().is_empty());
    world.apply(&slice("10.0.0.2"));
    assert!(!world.take_changes().is_empty());
}

#[test]
fn a_deleted_config_is_held_while_someone_refers_to_it() {
    let mut world = World::default();
    let config = object(
        Kind::GatewayConfig,
        json!({"metadata": {"namespace": "a", "name": "c"}, "spec": {}}),
    );
    let class = object(
        Kind::GatewayClass,
        json!({"metadata": {"name": "k"}, "spec": {"controllerName": "x/y",
            "parametersRef": {"group": "gatewright.dev", "kind": "GatewayConfig", "namespace": "a", "name": "c"}}}),
    );
    world.apply(&config);
    world.apply(&class);
    world.delete(&config.name());
    assert_eq!(world.configs[&Key::new("a", "c")].standing, Standing::Gone);
    world.delete(&class.name());
    assert!(world.configs.is_empty(), "nobody refers to it any more");
}

#[test]
fn routes_are_found_by_what_they_refer_to() {
    let mut world = World::default();
    let route = |name: &str, service: &str| {
        object(
            Kind::HttpRoute,
            json!({"metadata": {"namespace": "a", "name": name}, "spec": {
                "parentRefs": [{"name": "gw", "namespace": "infra"}],
                "rules": [{"backendRefs": [{"name": service, "port": 80, "namespace": "b"}]}]}}),
        )
    };
    world.apply(&route("one", "web"));
    world.apply(&route("two", "web"));
    let (gateway, service, foreign) = (Key::new("infra", "gw"), Key::new("b", "web"), Text::from("b"));
    assert_eq!(world.routes_of_gateway(&gateway).count(), 2);
    assert_eq!(world.routes_of_service(&service).count(), 2);
    assert_eq!(world.foreign_routes(&foreign).count(), 2);
    world.apply(&route("one", "other"));
    assert_eq!(world.routes_of_service(&service).count(), 1);
    assert_eq!(world.foreign_routes(&foreign).count(), 2, "it still refers into b");
    world.delete(&route("one", "other").name());
    world.delete(&route("two", "web").name());
    assert_eq!(
        world.routes_of_gateway(&gateway).count() + world.foreign_routes(&foreign).count(),
        0
    );
    assert_eq!(world.routes_in(&Text::from("a")).count(), 0);
}

#[test]
fn a_config_that_cannot_be_honoured_never_replaces_one_that_could() {
    use crate::{
        ConfigStanding,
        resolve::{Granted, Reference, Referrer},
    };
    let config = |spec: serde_json::Value| {
        object(
            Kind::GatewayConfig,
            json!({"metadata": {"namespace": "a", "name": "c"}, "spec": spec}),
        )
    };
    let class = object(
        Kind::GatewayClass,
        json!({"metadata": {"name": "k"}, "spec": {"controllerName": "x/y",
            "parametersRef": {"group": "gatewright.dev", "kind": "GatewayConfig", "namespace": "a", "name": "c"}}}),
    );
    let (good, bad) = (
        config(json!({"host": {"addresses": ["127.0.0.1"]}})),
        config(json!({"entry": "SSH"})),
    );
    let resolve = |world: &World| -> Option<Granted<Config>> {
        let (namespace, name) = (Text::from("a"), Text::from("c"));
        let to = Reference {
            group: "gatewright.dev",
            kind: "GatewayConfig",
            namespace: Some(&namespace),
            name: &name,
        };
        world.resolve(Referrer::Cluster, to).ok()
    };
    let mut world = World::default();
    world.apply(&class);
    world.apply(&bad);
    let granted = resolve(&world).unwrap();
    assert!(matches!(world.config_standing(&granted), ConfigStanding::Refused(_)));
    world.delete(&bad.name());
    assert!(resolve(&world).is_none(), "nothing of it was ever in force");

    world.apply(&good);
    assert_eq!(world.config_standing(&granted), ConfigStanding::InForce);
    world.take_changes();
    world.apply(&bad);
    assert!(!world.take_changes().configs.is_empty());
    assert!(matches!(world.config_standing(&granted), ConfigStanding::Outdated(_)));
    assert!(
        world.read(&granted).unwrap().addresses.is_some(),
        "the last good one stays"
    );
    world.apply(&bad);
    assert!(world.take_changes().is_empty(), "to repeat it is no change");
    world.delete(&bad.name());
    assert_eq!(world.config_standing(&granted), ConfigStanding::Gone);
    world.apply(&good);
    assert_eq!(world.config_standing(&granted), ConfigStanding::InForce);
}
