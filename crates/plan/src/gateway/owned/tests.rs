use gatewright_api::{Object, config};
use gatewright_ir::Fact;
use gatewright_world::{
    ListenerFact,
    desired::{ConditionKind, Reason, Status},
    origin,
};
use serde_json::{Value, json};

use super::*;
use crate::{PlanSettings, Planner, StatusKey};

fn cluster(addresses: &[&str]) -> World {
    let mut world = World::in_cluster();
    let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}});
    let gateway = json!({
        "metadata": {"namespace": "a", "name": "front", "generation": 1},
        "spec": {"gatewayClassName": "c", "listeners": [{"name": "l", "protocol": "HTTP", "port": 80}]},
    });
    for (kind, value) in [(Kind::GatewayClass, class), (Kind::Gateway, gateway)] {
        world.apply(&Object::from_value(kind, value).unwrap());
    }
    world.apply(&service("front"));
    let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
    world.set_local("one", &addresses, Some("node-a"));
    world
}

/// The Service of the Gateway, or one of somebody else that only has its name.
fn service(owner: &str) -> Object {
    given_service(owner, &json!([]))
}

fn given_service(owner: &str, ingress: &Value) -> Object {
    let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": owner, "uid": "1", "controller": true});
    let value = json!({
        "metadata": {"namespace": "a", "name": "gatewright-front", "ownerReferences": [owner]},
        "spec": {"type": "LoadBalancer", "ports": [{"name": "tcp-80", "port": 80, "targetPort": 20000}]},
        "status": {"loadBalancer": {"ingress": ingress}},
    });
    Object::from_value(Kind::Service, value).unwrap()
}

fn planner(world: &World) -> Planner {
    let mut planner = Planner::new(PlanSettings {
        default_entry: config::Entry::LoadBalancer,
        ..PlanSettings::default()
    });
    planner.update(world, &world.everything());
    planner
}

fn listen(world: &mut World, addresses: &[&str]) {
    world.observe(Fact::Listener {
        origin: origin::listener(Kind::Gateway, &Key::new("a", "front"), "l"),
        generation: 1,
        state: ListenerState::Listening(addresses.iter().map(|address| address.parse().unwrap()).collect()),
    });
}

/// Name, and per endpoint its address and whether it is ready.
fn slices(world: &World) -> Vec<(String, Vec<(String, bool)>)> {
    let planner = planner(world);
    let slices = planner
        .owned()
        .filter(|(name, _)| name.kind == OwnedKind::EndpointSlice);
    let shown = slices.map(|(name, owned)| {
        let value = owned.to_value().unwrap();
        let endpoints = value["endpoints"].as_array().unwrap().iter();
        let endpoint = |endpoint: &Value| {
            let address = endpoint["addresses"][0].as_str().unwrap().to_owned();
            (address, endpoint["conditions"]["ready"].as_bool().unwrap())
        };
        (name.name.to_string(), endpoints.map(endpoint).collect())
    });
    shown.collect()
}

fn expect(world: &World, expected: &[(&str, &[(&str, bool)])]) {
    let expected: Vec<(String, Vec<(String, bool)>)> = expected
        .iter()
        .map(|(name, endpoints)| {
            let endpoints = endpoints
                .iter()
                .map(|(address, is_ready)| ((*address).to_owned(), *is_ready));
            ((*name).to_owned(), endpoints.collect())
        })
        .collect();
    assert_eq!(slices(world), expected);
}

#[test]
fn each_family_of_addresses_has_a_slice_of_its_own() {
    let mut world = cluster(&["10.244.0.1", "fd00::1"]);
    listen(&mut world, &["0.0.0.0:20000"]);
    expect(
        &world,
        &[
            ("gatewright-front-80-ipv4", &[("10.244.0.1", true)]),
            ("gatewright-front-80-ipv6", &[("fd00::1", false)]),
        ],
    );
    let planned = planner(&world);
    let bound: Vec<String> = planned.gateways().values().next().unwrap().listeners[0]
        .addresses
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(bound, ["0.0.0.0", "::"]);
    listen(&mut world, &["0.0.0.0:20000", "[::]:20000"]);
    assert_eq!(slices(&world)[1].1, [("fd00::1".to_owned(), true)]);
}

#[test]
fn an_address_that_nobody_else_can_reach_is_no_endpoint() {
    expect(&cluster(&["127.0.0.1"]), &[]);
    expect(&cluster(&["169.254.0.1", "fe80::1"]), &[]);
    expect(&cluster(&[]), &[]);
}

#[test]
fn a_replica_is_ready_for_the_port_it_listens_on_whatever_the_generation() {
    let mut world = cluster(&["10.244.0.1"]);
    let slice = |is_ready| {
        [(
            "gatewright-front-80-ipv4".to_owned(),
            vec![("10.244.0.1".to_owned(), is_ready)],
        )]
    };
    assert_eq!(slices(&world), slice(false));
    listen(&mut world, &["0.0.0.0:20000"]);
    assert_eq!(slices(&world), slice(true));
    let gateway = json!({
        "metadata": {"namespace": "a", "name": "front", "generation": 2},
        "spec": {"gatewayClassName": "c", "listeners": [{"name": "l", "protocol": "HTTP", "port": 80, "hostname": "a.example.com"}]},
    });
    world.apply(&Object::from_value(Kind::Gateway, gateway).unwrap());
    assert_eq!(slices(&world), slice(true), "an edit costs no connection");
    listen(&mut world, &["0.0.0.0:20001"]);
    world.set_leaving();
    assert_eq!(slices(&world), slice(false));
}

#[test]
fn of_two_replicas_with_one_address_the_one_that_listens_is_believed() {
    let mut world = cluster(&["10.244.0.1"]);
    let fact = ListenerFact {
        generation: 1,
        state: ListenerState::Listening(vec!["0.0.0.0:20000".parse().unwrap()]),
    };
    let replica = Replica {
        addresses: vec!["10.244.0.1".parse().unwrap()],
        facts: [(origin::listener(Kind::Gateway, &Key::new("a", "front"), "l"), fact)].into(),
        ..Replica::default()
    };
    world.set_replica("gone", Some(replica));
    expect(&world, &[("gatewright-front-80-ipv4", &[("10.244.0.1", true)])]);
}

#[test]
fn a_gateway_that_goes_or_moves_to_the_host_takes_its_objects_with_it() {
    let mut world = cluster(&["10.244.0.1"]);
    let mut planner = planner(&world);
    world.take_changes();
    assert_eq!(planner.owned().count(), 2);
    let config = json!({"metadata": {"namespace": "a", "name": "host"}, "spec": {"entry": "Host"}});
    world.apply(&Object::from_value(Kind::GatewayConfig, config).unwrap());
    let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller",
        "parametersRef": {"group": "gatewright.dev", "kind": "GatewayConfig", "namespace": "a", "name": "host"}}});
    world.apply(&Object::from_value(Kind::GatewayClass, class).unwrap());
    let changes = world.take_changes();
    let delta = planner.update(&world, &changes);
    assert_eq!(delta.owned.iter().filter(|(_, owned)| owned.is_none()).count(), 2);
    assert_eq!(planner.owned().count(), 0);
}

#[test]
fn a_service_of_somebody_else_gets_no_endpoints_of_ours() {
    let mut world = cluster(&["10.244.0.1"]);
    assert_eq!(slices(&world).len(), 1);
    world.apply(&service("other"));
    assert_eq!(slices(&world), []);
    world.delete(&service("other").name());
    assert_eq!(slices(&world), [], "it is not there yet");
}

fn declare(world: &mut World, listeners: &[Value], spec: &Value) {
    let mut gateway = json!({
        "metadata": {"namespace": "a", "name": "front", "generation": 1},
        "spec": {"gatewayClassName": "c", "listeners": listeners},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        gateway["spec"][field] = value.clone();
    }
    world.apply(&Object::from_value(Kind::Gateway, gateway).unwrap());
}

#[test]
fn sixty_four_listeners_share_one_service_with_one_port_for_each_number() {
    let mut world = cluster(&["10.244.0.1"]);
    let listeners: Vec<Value> = (0..64)
        .map(|number| {
            // Two on each port, told apart by their hostnames, up to the highest port there is.
            let (port, host) = (65_535 - number / 2, format!("h{number}.example.com"));
            json!({"name": format!("l{number}"), "protocol": "HTTP", "port": port, "hostname": host})
        })
        .collect();
    declare(&mut world, &listeners, &json!({}));
    let planner = planner(&world);
    let services: Vec<Value> = planner
        .owned()
        .filter(|(name, _)| name.kind == OwnedKind::Service)
        .map(|(_, owned)| owned.to_value().unwrap())
        .collect();
    assert_eq!(services.len(), 1);
    let ports = services[0]["spec"]["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 32);
    let distinct = |field: &str| -> BTreeSet<String> { ports.iter().map(|port| port[field].to_string()).collect() };
    for field in ["name", "port", "targetPort"] {
        assert_eq!(distinct(field).len(), 32, "{field}");
    }
    // What Kubernetes takes as the name of a port in an EndpointSlice: a DNS label; in a container it would be 15 characters.
    let is_legal =
        |name: &str| name.len() <= 15 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    assert!(ports.iter().all(|port| is_legal(port["name"].as_str().unwrap())));
    assert_eq!(slices(&world).len(), 32);
    let bound: BTreeSet<u16> = planner
        .gateways()
        .values()
        .next()
        .unwrap()
        .listeners
        .iter()
        .map(|one| one.bind)
        .collect();
    assert_eq!(bound.len(), 32, "listeners on one port share its target");
}

#[test]
fn the_service_stays_while_every_listener_is_in_conflict() {
    let mut world = cluster(&["10.244.0.1"]);
    let listener = |name: &str| json!({"name": name, "protocol": "HTTP", "port": 80});
    declare(&mut world, &[listener("l"), listener("m")], &json!({}));
    let planner = planner(&world);
    assert!(planner.gateways().values().all(|gateway| gateway.listeners.is_empty()));
    assert_eq!(
        slices(&world),
        [(
            "gatewright-front-80-ipv4".to_owned(),
            vec![("10.244.0.1".to_owned(), false)]
        )],
        "nothing is ready behind it, and its address is kept"
    );
}

#[test]
fn a_gateway_without_one_listener_that_could_ever_be_opened_gets_no_service() {
    let mut world = World::in_cluster();
    let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}});
    world.apply(&Object::from_value(Kind::GatewayClass, class).unwrap());
    // Kubernetes takes no Service without ports.
    declare(
        &mut world,
        &[json!({"name": "l", "protocol": "SCTP", "port": 9})],
        &json!({}),
    );
    assert_eq!(planner(&world).owned().count(), 0);
}

#[test]
fn an_address_of_either_family_is_asked_for() {
    for address in ["192.0.2.7", "2001:db8::7"] {
        let mut world = cluster(&["10.244.0.1"]);
        let listener = json!({"name": "l", "protocol": "HTTP", "port": 80});
        declare(&mut world, &[listener], &json!({"addresses": [{"value": address}]}));
        let planner = planner(&world);
        let (_, service) = planner.owned().next().unwrap();
        assert_eq!(service.to_value().unwrap()["spec"]["loadBalancerIP"], address);
    }
}

/// Why the Gateway is or is not programmed.
fn programmed(world: &World) -> Reason {
    let target = StatusKey {
        kind: Kind::Gateway,
        key: Key::new("a", "front"),
    };
    let Some(Status::Gateway(status)) = planner(world).status(&target) else {
        panic!("the Gateway has no status");
    };
    let condition = status
        .conditions
        .iter()
        .find(|one| one.kind == ConditionKind::Programmed);
    condition.unwrap().reason
}

#[test]
fn a_gateway_is_programmed_step_by_step() {
    let mut world = cluster(&[]);
    world.delete(&service("front").name());
    assert_eq!(programmed(&world), Reason::Pending, "there is no Service yet");
    world.apply(&service("front"));
    assert_eq!(programmed(&world), Reason::AddressNotAssigned, "it has no address yet");
    world.apply(&given_service("front", &json!([{"ip": "192.0.2.1"}])));
    assert_eq!(programmed(&world), Reason::NoResources, "nobody is behind it");
    world.set_local("one", &["127.0.0.1".parse().unwrap()], None);
    assert_eq!(programmed(&world), Reason::NoResources, "nobody else can reach that");
    world.set_local("one", &["10.244.0.1".parse().unwrap()], None);
    assert_eq!(programmed(&world), Reason::Pending);
    listen(&mut world, &["0.0.0.0:20000"]);
    assert_eq!(programmed(&world), Reason::Programmed);
}

#[test]
fn traffic_that_stays_on_its_node_needs_to_know_the_nodes() {
    let mut world = cluster(&["10.244.0.1"]);
    world.apply(&given_service("front", &json!([{"ip": "192.0.2.1"}])));
    listen(&mut world, &["0.0.0.0:20000"]);
    let config = json!({"metadata": {"namespace": "a", "name": "local"}, "spec": {"loadBalancer": {"externalTrafficPolicy": "Local"}}});
    world.apply(&Object::from_value(Kind::GatewayConfig, config).unwrap());
    let reference = json!({"group": "gatewright.dev", "kind": "GatewayConfig", "name": "local"});
    let listener = json!({"name": "l", "protocol": "HTTP", "port": 80});
    declare(
        &mut world,
        &[listener],
        &json!({"infrastructure": {"parametersRef": reference}}),
    );
    assert_eq!(programmed(&world), Reason::Programmed);
    let planner = planner(&world);
    let values: Vec<Value> = planner.owned().filter_map(|(_, owned)| owned.to_value()).collect();
    assert_eq!(values[0]["spec"]["externalTrafficPolicy"], "Local");
    assert_eq!(values[1]["endpoints"][0]["nodeName"], "node-a");
    world.set_local("one", &["10.244.0.1".parse().unwrap()], None);
    assert_eq!(programmed(&world), Reason::NoResources);
}
