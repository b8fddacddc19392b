use gatewright_api::{Kind, Object, config::Entry};
use gatewright_ir::{Fact, ListenFailure};
use gatewright_world::{
    ListenerFact, Replica,
    desired::{ConditionKind, Reason, State, Status},
    origin,
};
use serde_json::{Value, json};

use super::*;
use crate::{PlanSettings, Planner, StatusKey};

fn cluster() -> World {
    let mut world = World::in_cluster();
    let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}});
    world.apply(&Object::from_value(Kind::GatewayClass, class).unwrap());
    world.set_local("one", &["10.244.0.1".parse().unwrap()], None);
    world
}

fn declare(world: &mut World, name: &str, day: u32, ports: impl IntoIterator<Item = u16>) {
    let listeners = ports
        .into_iter()
        .map(|port| json!({"name": format!("l{port}"), "protocol": "HTTP", "port": port}));
    let gateway = json!({
        "metadata": {"namespace": "a", "name": name, "generation": 1, "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z")},
        "spec": {"gatewayClassName": "c", "listeners": listeners.collect::<Value>()},
    });
    world.apply(&Object::from_value(Kind::Gateway, gateway).unwrap());
}

fn write(world: &mut World, gateway: &str, ports: &[(u16, u16)]) {
    let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": gateway, "uid": "1", "controller": true});
    let ports = ports
        .iter()
        .map(|(port, target)| json!({"port": port, "targetPort": target}));
    let service = json!({
        "metadata": {"namespace": "a", "name": format!("gatewright-{gateway}"),
            "labels": {"app.kubernetes.io/managed-by": "gatewright"}, "ownerReferences": [owner]},
        "spec": {"type": "LoadBalancer", "ports": ports.collect::<Value>()},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    });
    world.apply(&Object::from_value(Kind::Service, service).unwrap());
}

fn listening(target: u16) -> ListenerState {
    ListenerState::Listening(vec![([0, 0, 0, 0], target).into()])
}

fn listen(world: &mut World, gateway: &str, port: u16, state: ListenerState) {
    world.observe(Fact::Listener {
        origin: origin::listener(Kind::Gateway, &Key::new("a", gateway), &format!("l{port}")),
        generation: 1,
        state,
    });
}

fn plan(world: &World) -> Planner {
    let mut planner = Planner::new(PlanSettings {
        default_entry: Entry::LoadBalancer,
        ..PlanSettings::default()
    });
    planner.update(world, &world.everything());
    planner
}

/// Gateway, port and target of every listener.
fn targets(world: &World) -> BTreeSet<(String, u16, u16)> {
    let planner = plan(world);
    let gateways = planner.gateways().values();
    let listeners = gateways.flat_map(|gateway| {
        let name = gateway.origin.as_str().rsplit('/').next().unwrap().to_owned();
        let listeners = gateway.listeners.iter();
        listeners
            .map(move |listener| (name.clone(), listener.port, listener.bind))
            .collect::<Vec<_>>()
    });
    listeners.collect()
}

fn programmed(world: &World, gateway: &str) -> (State, Reason) {
    let target = StatusKey {
        kind: Kind::Gateway,
        key: Key::new("a", gateway),
    };
    let Some(Status::Gateway(status)) = plan(world).status(&target) else {
        panic!("{gateway} has no status");
    };
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.kind == ConditionKind::Programmed);
    condition.map(|condition| (condition.state, condition.reason)).unwrap()
}

fn expect(world: &World, expected: &[(&str, u16, u16)]) {
    let expected = expected
        .iter()
        .map(|(name, port, target)| ((*name).to_owned(), *port, *target));
    assert_eq!(targets(world), expected.collect());
}

#[test]
fn a_gateway_that_comes_later_takes_the_next_free_port_and_disturbs_nobody() {
    let mut world = cluster();
    declare(&mut world, "old", 2, [80, 443]);
    expect(&world, &[("old", 80, 20_000), ("old", 443, 20_001)]);
    write(&mut world, "old", &[(80, 20_000), (443, 20_001)]);
    declare(&mut world, "older", 1, [80]);
    expect(
        &world,
        &[("old", 80, 20_000), ("old", 443, 20_001), ("older", 80, 20_002)],
    );
}

#[test]
fn a_service_that_was_deleted_is_made_again_as_it_was() {
    let mut world = cluster();
    declare(&mut world, "one", 1, [80]);
    listen(&mut world, "one", 80, listening(20_007));
    expect(&world, &[("one", 80, 20_007)]);
    // What a Service says is what all replicas see.
    write(&mut world, "one", &[(80, 20_003)]);
    expect(&world, &[("one", 80, 20_003)]);
}

#[test]
fn writing_into_ones_own_service_takes_no_port_from_another_gateway() {
    let mut world = cluster();
    declare(&mut world, "thief", 1, [80]);
    declare(&mut world, "victim", 2, [80]);
    write(&mut world, "victim", &[(80, 20_000)]);
    listen(&mut world, "victim", 80, listening(20_000));
    write(&mut world, "thief", &[(80, 20_000)]);
    expect(&world, &[("thief", 80, 20_001), ("victim", 80, 20_000)]);
}

#[test]
fn a_port_that_a_leftover_service_leads_to_is_given_last() {
    let mut world = cluster();
    write(&mut world, "gone", &[(80, 20_000)]);
    declare(&mut world, "new", 1, [80]);
    expect(&world, &[("new", 80, 20_001)]);
    let all: Vec<(u16, u16)> = RANGE.map(|target| (target - 19_000, target)).collect();
    write(&mut world, "gone", &all);
    expect(&world, &[("new", 80, 20_000)]);
}

#[test]
fn ports_outside_of_the_range_are_not_taken_over() {
    let mut world = cluster();
    declare(&mut world, "one", 1, [80]);
    write(&mut world, "one", &[(80, 22)]);
    listen(&mut world, "one", 80, listening(9870));
    expect(&world, &[("one", 80, 20_000)]);
}

#[test]
fn when_no_port_is_left_the_youngest_gateway_says_so() {
    let mut world = cluster();
    for index in 0..157u32 {
        declare(&mut world, &format!("g{index:03}"), 1 + index / 10, 1..=64);
    }
    let given = targets(&world);
    assert_eq!(given.len(), 10_000);
    let distinct: BTreeSet<u16> = given.iter().map(|(_, _, target)| *target).collect();
    assert_eq!(distinct.len(), 10_000, "no port is given twice");
    assert_eq!(programmed(&world, "g156"), (State::False, Reason::NoResources));
    assert_eq!(given.iter().filter(|(name, ..)| name == "g156").count(), 16);
}

#[test]
fn a_gateway_is_programmed_when_one_replica_listens_and_its_service_has_an_address() {
    let mut world = cluster();
    declare(&mut world, "one", 1, [80]);
    assert_eq!(programmed(&world, "one"), (State::False, Reason::Pending));
    write(&mut world, "one", &[(80, 20_000)]);
    assert_eq!(programmed(&world, "one"), (State::False, Reason::Pending));
    let failed = ListenerState::Failed {
        address: ([0, 0, 0, 0], 20_000).into(),
        failure: ListenFailure::InUse,
    };
    listen(&mut world, "one", 80, failed);
    assert_eq!(programmed(&world, "one"), (State::False, Reason::NoResources));
    let publish = |world: &mut World, target: u16, generation: i64| {
        let fact = ListenerFact {
            generation,
            state: listening(target),
        };
        let replica = Replica {
            facts: [(origin::listener(Kind::Gateway, &Key::new("a", "one"), "l80"), fact)].into(),
            ..Replica::default()
        };
        world.set_replica("two", Some(replica));
    };
    publish(&mut world, 20_001, 1);
    assert_ne!(programmed(&world, "one").0, State::True, "it listens elsewhere");
    publish(&mut world, 20_000, 1);
    assert_eq!(programmed(&world, "one"), (State::True, Reason::Programmed));
    world.set_replica("two", None);
    assert_eq!(programmed(&world, "one"), (State::False, Reason::NoResources));
}

#[test]
fn gateways_on_the_host_and_gateways_behind_services_do_not_share_a_port() {
    let mut world = cluster();
    let config = json!({"metadata": {"namespace": "a", "name": "host"}, "spec": {"entry": "Host"}});
    world.apply(&Object::from_value(Kind::GatewayConfig, config).unwrap());
    let gateway = json!({
        "metadata": {"namespace": "a", "name": "host", "generation": 1},
        "spec": {
            "gatewayClassName": "c",
            "infrastructure": {"parametersRef": {"group": "gatewright.dev", "kind": "GatewayConfig", "name": "host"}},
            "listeners": [{"name": "l", "protocol": "HTTP", "port": 20_000}],
        },
    });
    world.apply(&Object::from_value(Kind::Gateway, gateway).unwrap());
    declare(&mut world, "balanced", 1, [80]);
    expect(&world, &[("balanced", 80, 20_001), ("host", 20_000, 20_000)]);
    write(&mut world, "balanced", &[(80, 20_000)]);
    expect(&world, &[("balanced", 80, 20_000)]);
}
