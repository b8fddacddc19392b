use gatewright_api::{Kind, Object};
use gatewright_ir::Endpoints;
use gatewright_world::World;
use serde_json::{Value, json};

use crate::{PlanSettings, Planner};

/// The last part of each address that is used for a Service with these endpoints, by a replica on node `n1` in zone `z1`.
fn used(policy: &str, endpoints: &[Value]) -> Vec<u8> {
    let mut world = World::default();
    world.set_local("one", &[], Some("n1"));
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    let rule = json!({"backendRefs": [{"name": "web", "port": 80}]});
    let named = |name: &str| json!({"namespace": "a", "name": name});
    let slice = |index: usize, endpoints: &[Value]| {
        json!({
            "metadata": {
                "namespace": "a", "name": format!("web-{index}"), "labels": {"kubernetes.io/service-name": "web"},
            },
            "addressType": "IPv4", "ports": [{"port": 8080}], "endpoints": endpoints,
        })
    };
    // Endpoints are spread over two slices, which must make no difference.
    let (first, second) = endpoints.split_at(endpoints.len() / 2);
    let objects = [
        (
            Kind::GatewayClass,
            json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}}),
        ),
        (
            Kind::Gateway,
            json!({"metadata": named("gw"), "spec": {"gatewayClassName": "c", "listeners": listeners}}),
        ),
        (
            Kind::HttpRoute,
            json!({"metadata": named("r"), "spec": {"parentRefs": [{"name": "gw"}], "rules": [rule]}}),
        ),
        (
            Kind::Service,
            json!({"metadata": named("web"), "spec": {"ports": [{"port": 80}], "internalTrafficPolicy": policy}}),
        ),
        (Kind::EndpointSlice, slice(1, first)),
        (Kind::EndpointSlice, slice(2, second)),
    ];
    for (kind, value) in objects {
        world.apply(&Object::from_value(kind, value).unwrap());
    }
    let mut planner = Planner::new(PlanSettings {
        zone: Some("z1".into()),
        ..PlanSettings::default()
    });
    planner.update(&world, &world.everything());
    let gateway = planner.gateways().values().next().unwrap();
    match &gateway.clusters.values().next().unwrap().endpoints {
        Endpoints::Known(endpoints) => endpoints.iter().map(|endpoint| last(endpoint.address.ip())).collect(),
        other @ Endpoints::Named { .. } => panic!("{other:?}"),
    }
}

fn last(address: std::net::IpAddr) -> u8 {
    match address {
        std::net::IpAddr::V4(address) => address.octets()[3],
        other @ std::net::IpAddr::V6(_) => panic!("{other}"),
    }
}

fn endpoint(number: u8, node: &str, more: &Value) -> Value {
    let mut endpoint = json!({"addresses": [format!("10.0.0.{number}")], "nodeName": node});
    endpoint
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    endpoint
}

fn zones(zones: &[&str]) -> Value {
    let zones: Vec<Value> = zones.iter().map(|zone| json!({ "name": zone })).collect();
    json!({"hints": {"forZones": zones}})
}

fn leaving() -> Value {
    json!({"conditions": {"ready": false, "serving": true, "terminating": true}})
}

#[test]
fn a_service_for_its_own_node_has_the_endpoints_there_and_no_others() {
    let here = endpoint(1, "n1", &json!({}));
    let there = endpoint(2, "n2", &json!({}));
    assert_eq!(used("Cluster", &[here.clone(), there.clone()]), [1, 2]);
    assert_eq!(used("Local", &[here, there.clone()]), [1]);
    assert_eq!(used("Local", std::slice::from_ref(&there)), [] as [u8; 0]);
    assert_eq!(used("Local", &[endpoint(3, "n1", &leaving()), there]), [3]);
}

#[test]
fn endpoints_for_the_zone_are_used_where_all_have_hints_and_one_is_for_us() {
    let ours = endpoint(1, "n2", &zones(&["z1"]));
    let both = endpoint(2, "n2", &zones(&["z1", "z2"]));
    let theirs = endpoint(3, "n3", &zones(&["z2"]));
    let silent = endpoint(4, "n3", &json!({}));
    assert_eq!(used("Cluster", &[ours.clone(), both.clone(), theirs.clone()]), [1, 2]);
    assert_eq!(used("Cluster", &[ours, both, theirs.clone(), silent]), [1, 2, 3, 4]);
    assert_eq!(used("Cluster", &[theirs]), [3], "none is for this zone");
}

#[test]
fn endpoints_for_the_node_come_before_those_for_the_zone() {
    let hints = |node: &str| json!({"hints": {"forZones": [{"name": "z1"}], "forNodes": [{"name": node}]}});
    let (here, there) = (endpoint(1, "n1", &hints("n1")), endpoint(2, "n2", &hints("n2")));
    assert_eq!(used("Cluster", &[here, there.clone()]), [1]);
    assert_eq!(used("Cluster", &[there]), [2]);
}

#[test]
fn hints_of_those_that_leave_count_for_nothing() {
    let ready = endpoint(1, "n2", &zones(&["z1"]));
    assert_eq!(used("Cluster", &[endpoint(2, "n2", &leaving()), ready]), [1]);
    assert_eq!(used("Cluster", &[endpoint(2, "n2", &leaving())]), [2]);
}
