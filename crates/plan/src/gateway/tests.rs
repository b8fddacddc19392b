//! What golden cases cannot show: objects that no file may declare, and data planes that do not simply listen.

use gatewright_api::{Kind, Object};
use gatewright_ir::{Fact, ListenFailure, ListenerState};
use gatewright_world::{
    Key, ListenerFact, Replica, World,
    desired::{Condition, ConditionKind, GatewayStatus, Reason, State, Status},
    origin,
};
use serde_json::{Value, json};

use crate::{PlanSettings, Planner, StatusKey};

fn world(listeners: &Value, spec: &Value) -> World {
    let mut gateway = json!({
        "metadata": {"namespace": "a", "name": "front", "generation": 2},
        "spec": {"gatewayClassName": "c", "listeners": listeners},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        gateway["spec"][field] = value.clone();
    }
    let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}});
    let mut world = World::default();
    for (kind, value) in [(Kind::GatewayClass, class), (Kind::Gateway, gateway)] {
        world.apply(&Object::from_value(kind, value).unwrap());
    }
    world
}

fn status(world: &World) -> GatewayStatus {
    let mut planner = Planner::new(PlanSettings::default());
    planner.update(world, &world.everything());
    let key = Key::new("a", "front");
    let target = StatusKey {
        kind: Kind::Gateway,
        key,
    };
    match planner.status(&target) {
        Some(Status::Gateway(status)) => status,
        other => panic!("{other:?} is no status of a Gateway"),
    }
}

fn observe(world: &mut World, listener: &str, generation: i64, state: ListenerState) {
    let origin = origin::listener(Kind::Gateway, &Key::new("a", "front"), listener);
    world.observe(Fact::Listener {
        origin,
        generation,
        state,
    });
}

fn shown(conditions: &[Condition], kind: ConditionKind) -> (State, Reason) {
    let condition = conditions.iter().find(|condition| condition.kind == kind).unwrap();
    (condition.state, condition.reason)
}

fn of_listener(status: &GatewayStatus, index: usize, kind: ConditionKind) -> (State, Reason) {
    shown(&status.listeners[index].conditions, kind)
}

#[test]
fn listeners_with_one_hostname_on_one_port_are_all_in_conflict() {
    let world = world(
        &json!([
            {"name": "one", "protocol": "HTTP", "port": 80, "hostname": "a.example.com"},
            {"name": "two", "protocol": "HTTP", "port": 80, "hostname": "A.example.com"},
            {"name": "other", "protocol": "HTTP", "port": 80},
        ]),
        &json!({}),
    );
    let status = status(&world);
    for index in [0, 1] {
        for kind in [ConditionKind::Accepted, ConditionKind::Programmed] {
            assert_eq!(
                of_listener(&status, index, kind),
                (State::False, Reason::HostnameConflict)
            );
        }
        let conflicted = of_listener(&status, index, ConditionKind::Conflicted);
        assert_eq!(conflicted, (State::True, Reason::HostnameConflict));
    }
    assert_eq!(
        of_listener(&status, 2, ConditionKind::Accepted),
        (State::True, Reason::Accepted)
    );
    let accepted = shown(&status.conditions, ConditionKind::Accepted);
    assert_eq!(accepted, (State::True, Reason::ListenersNotValid));
}

#[test]
fn a_conflict_has_no_winner_even_if_one_of_the_two_is_refused_anyway() {
    let authority = json!([{"group": "", "kind": "ConfigMap", "name": "ca"}]);
    let frontend = json!({"default": {"validation": {"caCertificateRefs": authority}}});
    let world = world(
        &json!([
            {"name": "plain", "protocol": "HTTP", "port": 80},
            {"name": "guarded", "protocol": "HTTPS", "port": 80, "tls": {"certificateRefs": [{"name": "s"}]}},
        ]),
        &json!({"tls": {"frontend": frontend}}),
    );
    let status = status(&world);
    for index in [0, 1] {
        let conflicted = of_listener(&status, index, ConditionKind::Conflicted);
        assert_eq!(conflicted, (State::True, Reason::ProtocolConflict));
    }
    let accepted = shown(&status.conditions, ConditionKind::Accepted);
    assert_eq!(accepted, (State::False, Reason::ListenersNotValid));
}

#[test]
fn nothing_is_programmed_before_a_plane_has_acknowledged_this_generation() {
    let mut world = world(&json!([{"name": "http", "protocol": "HTTP", "port": 80}]), &json!({}));
    let pending = (State::False, Reason::Pending);
    assert_eq!(shown(&status(&world).conditions, ConditionKind::Programmed), pending);
    let listening = || ListenerState::Listening(vec!["0.0.0.0:80".parse().unwrap()]);
    observe(&mut world, "http", 1, listening());
    assert_eq!(shown(&status(&world).conditions, ConditionKind::Programmed), pending);
    observe(&mut world, "http", 2, listening());
    let now = status(&world);
    let programmed = (State::True, Reason::Programmed);
    assert_eq!(shown(&now.conditions, ConditionKind::Programmed), programmed);
    assert_eq!(of_listener(&now, 0, ConditionKind::Programmed), programmed);
}

#[test]
fn all_addresses_of_a_host_are_shown_as_those_by_which_it_is_known() {
    let mut world = world(&json!([{"name": "http", "protocol": "HTTP", "port": 80}]), &json!({}));
    let bound = ["0.0.0.0:80", "[::]:80", "127.0.0.1:80"];
    let bound = bound.iter().map(|address| address.parse().unwrap()).collect();
    observe(&mut world, "http", 2, ListenerState::Listening(bound));
    let addresses =
        |world: &World| -> Vec<String> { status(world).addresses.iter().map(ToString::to_string).collect() };
    assert_eq!(addresses(&world), ["127.0.0.1"], "nobody can connect to 0.0.0.0");
    world.set_local("host", &["192.0.2.1".parse().unwrap()], None);
    assert_eq!(addresses(&world), ["127.0.0.1", "192.0.2.1"]);
    world.set_local(
        "host",
        &["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
        None,
    );
    assert_eq!(addresses(&world), ["127.0.0.1", "192.0.2.1", "2001:db8::1"]);
}

#[test]
fn a_listener_that_one_of_two_replicas_cannot_open_serves_and_says_where_not() {
    let mut world = world(&json!([{"name": "http", "protocol": "HTTP", "port": 80}]), &json!({}));
    world.set_local("one", &["192.0.2.1".parse().unwrap()], None);
    let listening = ListenerState::Listening(vec!["0.0.0.0:80".parse().unwrap()]);
    observe(&mut world, "http", 2, listening);
    let other = |generation| {
        let state = ListenerState::Failed {
            address: "0.0.0.0:80".parse().unwrap(),
            failure: ListenFailure::InUse,
        };
        let origin = origin::listener(Kind::Gateway, &Key::new("a", "front"), "http");
        Replica {
            addresses: vec!["192.0.2.2".parse().unwrap()],
            facts: [(origin, ListenerFact { generation, state })].into(),
            ..Replica::default()
        }
    };
    let message = |conditions: &[Condition]| {
        let programmed = conditions.iter().find(|one| one.kind == ConditionKind::Programmed);
        let programmed = programmed.unwrap();
        assert_eq!(programmed.state, State::True);
        programmed.message.to_string()
    };
    world.set_replica("two", Some(other(1)));
    assert_eq!(
        message(&status(&world).listeners[0].conditions),
        "Connections are accepted",
        "what was wrong with an earlier generation does not matter"
    );
    world.set_replica("two", Some(other(2)));
    world.set_replica("three", Some(other(2)));
    let now = status(&world);
    assert_eq!(
        message(&now.listeners[0].conditions),
        "Connections are accepted, but not by replica three, where 0.0.0.0:80 cannot be opened: another program listens \
         there, nor by 1 more"
    );
    assert_eq!(
        message(&now.conditions),
        "All valid listeners accept connections, but not on every replica; their conditions say more"
    );
    let addresses: Vec<String> = now.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["192.0.2.1"], "only where connections are accepted");
}

#[test]
fn a_hundred_listeners_in_conflict_are_all_told_and_the_gateway_says_it_briefly() {
    let listeners: Vec<Value> = (0..100)
        .map(
            |number| json!({"name": format!("l{number}"), "protocol": "HTTP", "port": 80, "hostname": "a.example.com"}),
        )
        .collect();
    let status = status(&world(&json!(listeners), &json!({})));
    assert_eq!(status.listeners.len(), 100);
    for index in 0..100 {
        let conflicted = of_listener(&status, index, ConditionKind::Conflicted);
        assert_eq!(conflicted, (State::True, Reason::HostnameConflict));
    }
    let accepted = &status.conditions[0];
    assert_eq!(
        (accepted.state, accepted.reason),
        (State::False, Reason::ListenersNotValid)
    );
    assert!(accepted.message.len() < 200, "{}", accepted.message);
}

#[test]
fn a_listener_that_cannot_be_opened_says_whether_address_or_port_is_to_blame() {
    let port_is_to_blame = (State::False, Reason::PortUnavailable);
    let address_is_to_blame = (State::True, Reason::Accepted);
    let table = [
        (ListenFailure::InUse, port_is_to_blame, Reason::ListenersNotValid),
        (ListenFailure::Denied, port_is_to_blame, Reason::ListenersNotValid),
        (ListenFailure::NotAvailable, address_is_to_blame, Reason::Accepted),
    ];
    for (failure, accepted, of_gateway) in table {
        let mut world = world(
            &json!([{"name": "bad", "protocol": "HTTP", "port": 80}, {"name": "good", "protocol": "HTTP", "port": 81}]),
            &json!({"addresses": [{"value": "203.0.113.1"}]}),
        );
        let address = "203.0.113.1:80".parse().unwrap();
        observe(
            &mut world,
            "bad",
            2,
            ListenerState::Failed {
                address,
                failure: failure.clone(),
            },
        );
        observe(
            &mut world,
            "good",
            2,
            ListenerState::Listening(vec!["203.0.113.1:81".parse().unwrap()]),
        );
        let status = status(&world);
        assert_eq!(
            of_listener(&status, 0, ConditionKind::Accepted),
            accepted,
            "{failure:?}"
        );
        assert_eq!(
            of_listener(&status, 0, ConditionKind::Programmed),
            (State::False, Reason::Invalid)
        );
        assert_eq!(
            of_listener(&status, 1, ConditionKind::Programmed),
            (State::True, Reason::Programmed)
        );
        assert_eq!(
            shown(&status.conditions, ConditionKind::Accepted),
            (State::True, of_gateway)
        );
        let programmed = shown(&status.conditions, ConditionKind::Programmed);
        assert_eq!(programmed, (State::False, Reason::AddressNotUsable), "{failure:?}");
    }
}

#[test]
fn objects_that_cannot_be_read_say_so_and_are_not_served() {
    let read = |kind, value: Value| Object::from_value(kind, value).unwrap();
    let listeners = json!([{"name": "l", "protocol": "HTTP", "port": 80}]);
    let mut world = world(&listeners, &json!({}));
    let route = read(
        Kind::HttpRoute,
        json!({"metadata": {"namespace": "a", "name": "r", "generation": 3}, "spec": {"parentRefs": [{"name": "front"}]}}),
    );
    world.apply_invalid(&route.name(), Some(&route), "missing field `name`");
    let mut planner = Planner::new(PlanSettings::default());
    planner.update(&world, &world.everything());
    let target = StatusKey {
        kind: Kind::HttpRoute,
        key: Key::new("a", "r"),
    };
    let Some(Status::Route(shown_route)) = planner.status(&target) else {
        panic!("the route has no status");
    };
    assert_eq!(shown_route.generation, 3);
    let accepted = &shown_route.parents[0].conditions[0];
    assert_eq!(
        (accepted.state, accepted.reason),
        (State::False, Reason::UnsupportedValue)
    );
    assert_eq!(accepted.message, "object: cannot be read: missing field `name`");
    assert_eq!(status(&world).listeners[0].attached, 0);

    let gateway = read(
        Kind::Gateway,
        json!({"metadata": {"namespace": "a", "name": "front", "generation": 4}, "spec": {"gatewayClassName": "c", "listeners": []}}),
    );
    world.apply_invalid(&gateway.name(), Some(&gateway), "unknown variant");
    let broken = status(&world);
    assert_eq!(broken.generation, 4);
    assert_eq!(
        shown(&broken.conditions, ConditionKind::Accepted),
        (State::False, Reason::Invalid)
    );
    planner.update(&world, &world.everything());
    assert!(planner.gateways().is_empty());

    let class = read(
        Kind::GatewayClass,
        json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}}),
    );
    world.apply_invalid(&class.name(), Some(&class), "unknown variant");
    planner.update(&world, &world.everything());
    let target = StatusKey {
        kind: Kind::GatewayClass,
        key: Key::new("", "c"),
    };
    let Some(Status::GatewayClass(shown_class)) = planner.status(&target) else {
        panic!("the class has no status");
    };
    assert_eq!(
        shown(&shown_class.conditions, ConditionKind::Accepted),
        (State::False, Reason::Invalid)
    );
    assert!(planner.class_in_use("c"), "it still has a Gateway");
}
