use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;
use crate::ChangeSet;

fn object(kind: Kind, name: &str, spec: &Value) -> Object {
    let value = json!({"metadata": {"namespace": "a", "name": name}, "spec": spec});
    Object::from_value(kind, value).unwrap()
}

fn key(name: &str) -> Key {
    Key::new("a", name)
}

fn set(name: &str, gateway: &str, certificate: &Value) -> Object {
    let listener = json!({"name": "l", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [certificate]}});
    let spec = json!({"parentRef": {"name": gateway}, "listeners": [listener]});
    object(Kind::ListenerSet, name, &spec)
}

fn gateway(name: &str, authority: &Value, identity: &Value) -> Object {
    let validation = json!({"caCertificateRefs": [authority]});
    let spec = json!({
        "gatewayClassName": "c",
        "listeners": [{"name": "l", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "own"}]}}],
        "tls": {
            "frontend": {"default": {"validation": validation}},
            "backend": {"clientCertificateRef": identity},
        },
    });
    object(Kind::Gateway, name, &spec)
}

fn policy(name: &str, targets: &[(&str, Option<&str>)], authority: &str) -> Object {
    let targets = targets
        .iter()
        .map(|(name, port)| json!({"group": "", "kind": "Service", "name": name, "sectionName": port}));
    let authority = json!({"group": "", "kind": "ConfigMap", "name": authority});
    let spec = json!({
        "targetRefs": targets.collect::<Value>(),
        "validation": {"hostname": "a.com", "caCertificateRefs": [authority]},
    });
    object(Kind::BackendTlsPolicy, name, &spec)
}

fn map(name: &str, text: &str) -> Object {
    let value = json!({"metadata": {"namespace": "a", "name": name}, "data": {"ca.crt": text}});
    Object::from_value(Kind::ConfigMap, value).unwrap()
}

fn keys<'a>(found: impl Iterator<Item = &'a Key>) -> Vec<String> {
    found.map(ToString::to_string).collect()
}

/// What an edit changes.
fn changes(world: &mut World, edit: impl FnOnce(&mut World)) -> ChangeSet {
    world.take_changes();
    edit(world);
    world.take_changes()
}

#[test]
fn a_listener_set_is_a_change_of_its_gateway_and_of_the_one_it_left() {
    let mut world = World::default();
    let secret = json!({"name": "s"});
    let made = changes(&mut world, |world| world.apply(&set("set", "one", &secret)));
    let expected = ChangeSet {
        gateways: [key("one")].into(),
        sets: [key("set")].into(),
        ..ChangeSet::default()
    };
    assert_eq!(made, expected);
    let again = changes(&mut world, |world| world.apply(&set("set", "one", &secret)));
    assert!(again.is_empty());
    let moved = changes(&mut world, |world| world.apply(&set("set", "two", &secret)));
    let expected = ChangeSet {
        gateways: [key("one"), key("two")].into(),
        sets: [key("set")].into(),
        ..ChangeSet::default()
    };
    assert_eq!(moved, expected);
    assert!(world.sets_of_gateway(&key("one")).is_empty());
    assert_eq!(world.sets_of_gateway(&key("two")).len(), 1);
    let gone = changes(&mut world, |world| world.delete(&set("set", "two", &secret).name()));
    assert_eq!(gone.gateways, [key("two")].into());
    assert!(world.sets_of_gateway(&key("two")).is_empty() && world.set(&key("set")).is_none());
}

#[test]
fn a_listener_set_without_a_gateway_is_a_change_of_itself_alone() {
    let mut world = World::default();
    let odd = object(
        Kind::ListenerSet,
        "odd",
        &json!({"parentRef": {"kind": "Service", "name": "s"}, "listeners": []}),
    );
    let made = changes(&mut world, |world| world.apply(&odd));
    assert_eq!((made.sets.len(), made.gateways.len()), (1, 0));
}

#[test]
fn listener_sets_come_in_the_order_in_which_they_count() {
    let mut world = World::default();
    for (name, created) in [("young", 2), ("b", 1), ("a", 1)] {
        let mut made = set(name, "one", &json!({"name": "s"}));
        let time = format!("2026-01-0{created}T00:00:00Z");
        made.metadata_mut().creation_timestamp = serde_json::from_value(json!(time)).unwrap();
        world.apply(&made);
    }
    let sets = world.sets_of_gateway(&key("one"));
    assert_eq!(keys(sets.into_iter().map(|(key, _)| key)), ["a/a", "a/b", "a/young"]);
    assert_eq!(world.sets_in(&"a".into()).count(), 3);
    assert_eq!(
        world.sets_in(&"".into()).count() + world.sets_in(&"b".into()).count(),
        0
    );
}

#[test]
fn a_gateway_is_found_by_the_secrets_of_its_listener_sets_and_by_its_own() {
    let mut world = World::default();
    let authority = json!({"group": "", "kind": "ConfigMap", "name": "ca", "namespace": "maps"});
    world.apply(&gateway("one", &authority, &json!({"name": "me", "namespace": "ids"})));
    world.apply(&set("set", "one", &json!({"name": "s", "namespace": "certs"})));
    for secret in [key("own"), Key::new("ids", "me"), Key::new("certs", "s")] {
        assert_eq!(keys(world.gateways_of_secret(&secret)), ["a/one"], "{secret}");
    }
    assert!(keys(world.gateways_of_secret(&key("s"))).is_empty());
    for namespace in ["maps", "ids", "certs"] {
        assert_eq!(
            keys(world.foreign_gateways(&namespace.into())),
            ["a/one"],
            "{namespace}"
        );
    }
    assert!(keys(world.foreign_gateways(&"a".into())).is_empty(), "that is its own");
    // The set moves on, and takes with it what it refers to.
    world.apply(&set("set", "two", &json!({"name": "other", "namespace": "certs"})));
    assert_eq!(keys(world.foreign_gateways(&"certs".into())), ["a/two"]);
    assert!(keys(world.gateways_of_secret(&Key::new("certs", "s"))).is_empty());
    world.delete(&set("set", "two", &json!({"name": "s"})).name());
    let authority = json!({"group": "", "kind": "ConfigMap", "name": "ca"});
    world.apply(&gateway("one", &authority, &json!({"name": "me"})));
    for namespace in ["maps", "ids", "certs"] {
        assert!(
            keys(world.foreign_gateways(&namespace.into())).is_empty(),
            "{namespace}"
        );
    }
}

#[test]
fn a_gateway_that_refers_twice_into_a_namespace_and_then_once_is_still_found_there() {
    let mut world = World::default();
    let authority = json!({"group": "", "kind": "ConfigMap", "name": "ca", "namespace": "b"});
    world.apply(&gateway("one", &authority, &json!({"name": "me", "namespace": "b"})));
    world.apply(&gateway("one", &authority, &json!({"name": "me"})));
    assert_eq!(keys(world.foreign_gateways(&"b".into())), ["a/one"]);
}

#[test]
fn a_changed_config_map_is_a_change_of_the_gateways_and_policies_that_name_it() {
    let mut world = World::default();
    let authority = json!({"group": "", "kind": "ConfigMap", "name": "ca"});
    world.apply(&gateway("one", &authority, &json!({"name": "me"})));
    world.apply(&policy("p", &[("web", None), ("api", Some("https"))], "ca"));
    world.apply(&policy("other", &[("db", None)], "else"));
    let expected = ChangeSet {
        gateways: [key("one")].into(),
        tls_policies: [key("p")].into(),
        services: [key("api"), key("web")].into(),
        ..ChangeSet::default()
    };
    let made = changes(&mut world, |world| world.apply(&map("ca", "")));
    assert_eq!(made, expected);
    let again = changes(&mut world, |world| world.apply(&map("ca", "")));
    assert!(again.is_empty());
    let broken = changes(&mut world, |world| world.apply(&map("ca", "junk")));
    assert_eq!(broken, expected, "it says something else about what is wrong");
    let gone = changes(&mut world, |world| world.delete(&map("ca", "").name()));
    assert_eq!(gone, expected);
    let unused = changes(&mut world, |world| world.apply(&map("unused", "")));
    assert!(unused.is_empty(), "nobody names it");
}

#[test]
fn a_policy_is_a_change_of_the_services_it_is_for_and_of_those_it_was_for() {
    let mut world = World::default();
    let made = changes(&mut world, |world| {
        world.apply(&policy("p", &[("web", None), ("web", Some("x"))], "ca"));
    });
    let expected = ChangeSet {
        tls_policies: [key("p")].into(),
        services: [key("web")].into(),
        ..ChangeSet::default()
    };
    assert_eq!(made, expected);
    let moved = changes(&mut world, |world| world.apply(&policy("p", &[("api", None)], "ca")));
    assert_eq!(moved.services, [key("api"), key("web")].into());
    assert!(world.tls_policies_of_service(&key("web")).is_empty());
    assert_eq!(world.tls_policies_of_service(&key("api")).len(), 1);
    let gone = changes(&mut world, |world| world.delete(&policy("p", &[], "ca").name()));
    assert_eq!(
        (gone.services, gone.tls_policies),
        ([key("api")].into(), [key("p")].into())
    );
    assert!(world.tls_policies_of_service(&key("api")).is_empty() && world.tls_policy(&key("p")).is_none());
    let map = changes(&mut world, |world| world.apply(&map("ca", "")));
    assert!(map.is_empty(), "the policy that named it is gone");
}

#[test]
fn of_several_policies_the_oldest_counts_and_then_the_name() {
    let mut world = World::default();
    for (name, created) in [("young", 2), ("b", 1), ("a", 1)] {
        let mut made = policy(name, &[("web", None)], "ca");
        let time = format!("2026-01-0{created}T00:00:00Z");
        made.metadata_mut().creation_timestamp = serde_json::from_value(json!(time)).unwrap();
        world.apply(&made);
    }
    let policies = world.tls_policies_of_service(&key("web"));
    assert_eq!(
        keys(policies.into_iter().map(|(key, _)| key)),
        ["a/a", "a/b", "a/young"]
    );
}

#[test]
fn routes_of_every_kind_are_found_by_their_listener_set_and_through_it_by_its_gateway() {
    let mut world = World::default();
    world.apply(&set("set", "one", &json!({"name": "s"})));
    let spec = json!({
        "parentRefs": [{"kind": "ListenerSet", "name": "set"}], "hostnames": ["a.com"], "rules": [{"backendRefs": []}],
    });
    let kinds = [
        Kind::HttpRoute,
        Kind::GrpcRoute,
        Kind::TlsRoute,
        Kind::TcpRoute,
        Kind::UdpRoute,
    ];
    for (count, kind) in kinds.into_iter().enumerate() {
        let mut spec = spec.clone();
        if matches!(kind, Kind::TcpRoute | Kind::UdpRoute) {
            spec.as_object_mut().unwrap().remove("hostnames");
        }
        world.apply(&object(kind, "r", &spec));
        assert_eq!(world.routes_of_set(&key("set")).count(), count + 1, "{kind}");
    }
    assert_eq!(world.routes_of_gateway(&key("one")).count(), 5);
    world.apply(&set("set", "two", &json!({"name": "s"})));
    assert_eq!(world.routes_of_gateway(&key("one")).count(), 0);
    assert_eq!(world.routes_of_gateway(&key("two")).count(), 5);
    let counts = world.counts();
    for kind in kinds {
        assert!(counts.contains(&(kind, 1)), "{kind} in {counts:?}");
    }
    for kind in kinds {
        world.delete(&object(kind, "r", &json!({"rules": [], "hostnames": []})).name());
    }
    assert_eq!(world.routes_of_set(&key("set")).count(), 0);
}
