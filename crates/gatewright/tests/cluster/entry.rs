//! What a Gateway and its GatewayConfig say about the Service through which it is reached.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

use crate::{
    bed::{eventually, holds, shared},
    namespace::{CLASS, Namespace, message, plain_gateway, until_status},
    web::get,
};

#[test]
fn infrastructure_and_settings_of_a_gateway_are_found_on_its_service() {
    let namespace = Namespace::make(shared(), "settings");
    let config = |balancer: Value| {
        json!({
            "apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayConfig", "metadata": { "name": "edge" },
            "spec": { "loadBalancer": balancer },
        })
    };
    let balancer = json!({ "externalTrafficPolicy": "Local", "annotations": { "example.com/pool": "edge" } });
    namespace.create("gatewayconfig", &config(balancer));
    let mut gateway = plain_gateway("door", CLASS);
    gateway["spec"]["infrastructure"] = json!({
        "labels": { "example.com/team": "edge" },
        "annotations": { "example.com/note": "ours", "example.com/pool": "overridden" },
        "parametersRef": { "group": "gatewright.dev", "kind": "GatewayConfig", "name": "edge" },
    });
    namespace.create("gateway", &gateway);
    namespace.backend("echo");
    namespace.route("door", "door", "echo");
    let address = SocketAddr::new(namespace.programmed("door"), 80);
    until_status(address, "/", 200);
    let service = namespace.get("service", "gatewright-door").unwrap();
    let (metadata, spec) = (&service["metadata"], &service["spec"]);
    assert_eq!(metadata["labels"]["example.com/team"], "edge");
    assert_eq!(metadata["annotations"]["example.com/note"], "ours");
    assert_eq!(
        metadata["annotations"]["example.com/pool"], "edge",
        "the GatewayConfig wins"
    );
    assert_eq!(
        (&spec["type"], &spec["externalTrafficPolicy"]),
        (&json!("LoadBalancer"), &json!("Local"))
    );
    assert!(spec["selector"].is_null(), "{spec}");

    // A change of the settings changes the Service, which stays the same one.
    namespace.patch("gatewayconfig", "edge", &json!({ "spec": { "loadBalancer": null } }));
    let service = namespace.until("service", "gatewright-door", "the default policy", |service| {
        service["spec"]["externalTrafficPolicy"] == "Cluster"
            && service["metadata"]["annotations"]["example.com/pool"] == "overridden"
    });
    assert_eq!(service["metadata"]["uid"], metadata["uid"]);
    assert_eq!(namespace.programmed("door"), address.ip(), "and so does its address");
    namespace.patch(
        "gatewayconfig",
        "edge",
        &json!({ "spec": { "loadBalancer": { "serviceType": "ClusterIP" } } }),
    );
    let inside: IpAddr = spec["clusterIP"].as_str().unwrap().parse().unwrap();
    eventually("the address inside the cluster", || {
        let found = namespace.programmed("door");
        holds(found == inside, found.to_string())
    });
}

#[test]
fn a_gateway_gets_the_address_it_asks_for_or_says_that_it_has_not() {
    let namespace = Namespace::make(shared(), "addresses");
    namespace.backend("echo");
    let asking = |name: &str, address: IpAddr| {
        let mut gateway = plain_gateway(name, CLASS);
        gateway["spec"]["addresses"] = json!([{ "type": "IPAddress", "value": address }]);
        namespace.create("gateway", &gateway);
        namespace.route(name, name, "echo");
    };
    namespace.gateway("any", CLASS);
    let IpAddr::V4(given) = namespace.programmed("any") else {
        panic!("the testbed gives addresses of IPv4");
    };
    // Of the same pool, and far from those that are given in turn.
    let wanted = IpAddr::from((u32::from(given) + 700).to_be_bytes());
    asking("wanting", wanted);
    assert_eq!(namespace.programmed("wanting"), wanted);
    eventually("an answer at the wanted address", || {
        let response = get(SocketAddr::new(wanted, 80), "/")?;
        holds(response.status == 200, format!("{response:?}"))
    });
    asking("dreaming", IpAddr::from([203, 0, 113, 1]));
    let dreaming = namespace.until_gateway("dreaming", "Programmed", ("False", "AddressNotUsable"));
    let said = message(&dreaming["status"]["conditions"], "Programmed");
    assert!(said.contains("203.0.113.1"), "{said}");
}
