use gatewright_api::{self as api, Object};

use super::*;

fn service(namespace: &str, name: &str) -> Object {
    let mut service = api::Service::default();
    service.metadata.namespace = Some(namespace.to_owned());
    service.metadata.name = Some(name.to_owned());
    Object::Service(Box::new(service))
}

fn grant(namespace: &str, from: (&str, &str), to: (&str, Option<&str>)) -> Object {
    let value = serde_json::json!({
        "metadata": {"namespace": namespace, "name": "grant"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": from.0, "namespace": from.1}],
            "to": [{"group": "", "kind": to.0, "name": to.1}],
        },
    });
    Object::from_value(Kind::ReferenceGrant, value).unwrap()
}

fn ask(world: &World, kind: &str, namespace: Option<&str>, name: &str) -> Result<Key, Refused> {
    let (own, name) = (Text::from("app"), Text::from(name));
    let namespace = namespace.map(Text::from);
    let to = Reference {
        group: "",
        kind,
        namespace: namespace.as_ref(),
        name: &name,
    };
    let granted = world.resolve::<Service>(Referrer::Namespaced(Kind::HttpRoute, &own), to)?;
    Ok(granted.key().clone())
}

#[test]
fn a_reference_within_a_namespace_needs_only_the_object() {
    let mut world = World::default();
    world.apply(&service("app", "web"));
    assert_eq!(ask(&world, "Service", None, "web"), Ok(Key::new("app", "web")));
    assert_eq!(ask(&world, "Service", Some("app"), "web"), Ok(Key::new("app", "web")));
    assert_eq!(ask(&world, "Service", None, "other"), Err(Refused::NotFound));
    assert_eq!(ask(&world, "Pod", None, "web"), Err(Refused::InvalidKind));
}

#[test]
fn another_namespace_must_grant_exactly_this_reference() {
    let wrong = [
        grant("data", ("HTTPRoute", "else"), ("Service", None)),
        grant("data", ("Gateway", "app"), ("Service", None)),
        grant("data", ("HTTPRoute", "app"), ("Secret", None)),
        grant("data", ("HTTPRoute", "app"), ("Service", Some("other"))),
        grant("else", ("HTTPRoute", "app"), ("Service", None)),
    ];
    for grant in wrong {
        let mut world = World::default();
        world.apply(&service("data", "db"));
        world.apply(&grant);
        assert_eq!(
            ask(&world, "Service", Some("data"), "db"),
            Err(Refused::NotPermitted),
            "{grant:?}"
        );
        assert_eq!(
            ask(&world, "Service", Some("data"), "absent"),
            Err(Refused::NotPermitted),
            "existence must not show"
        );
    }
    for name in [None, Some("db")] {
        let mut world = World::default();
        world.apply(&service("data", "db"));
        let grant = grant("data", ("HTTPRoute", "app"), ("Service", name));
        world.apply(&grant);
        assert_eq!(ask(&world, "Service", Some("data"), "db"), Ok(Key::new("data", "db")));
        world.delete(&grant.name());
        assert_eq!(
            ask(&world, "Service", Some("data"), "db"),
            Err(Refused::NotPermitted),
            "revoked"
        );
    }
}
