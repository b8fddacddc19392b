//! The Service of a Gateway and its EndpointSlices: kept as planned, whatever others do to them.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    bed::{eventually, holds, shared},
    install::name,
    namespace::{CLASS, Namespace, condition, message, until_status},
    web::get,
};

const LABEL: &str = "gateway.networking.k8s.io/gateway-name";

/// The objects of a kind that were made for the Gateways of a namespace.
fn made(namespace: &Namespace<'_>, kind: &str) -> Vec<Value> {
    let all = namespace.list(kind).into_iter();
    all.filter(|object| object["metadata"]["labels"][LABEL].is_string())
        .collect()
}

fn until_answered(namespace: &Namespace<'_>, gateway: &str) -> SocketAddr {
    eventually("an answer at the address that the Gateway shows", || {
        let address = SocketAddr::new(namespace.programmed(gateway), 80);
        let response = get(address, "/")?;
        holds(response.status == 200, format!("{response:?}")).map(|()| address)
    })
}

#[test]
fn what_is_edited_by_hand_is_corrected_and_what_is_deleted_is_made_again() {
    let namespace = Namespace::make(shared(), "edited");
    let address = namespace.served("door", CLASS);
    let services = made(&namespace, "service");
    assert_eq!(services.len(), 1);
    let service = name(&services[0]);
    let ports = services[0]["spec"]["ports"].clone();

    let mut edited = ports.clone();
    edited[0]["targetPort"] = json!(1);
    namespace.patch(
        "service",
        &service,
        &json!({
            "spec": { "ports": edited, "type": "ClusterIP" },
            "metadata": { "annotations": { "example.com/mine": "kept" } },
        }),
    );
    let corrected = namespace.until("service", &service, "as planned", |found| {
        found["spec"]["ports"][0]["targetPort"] == ports[0]["targetPort"] && found["spec"]["type"] == "LoadBalancer"
    });
    assert_eq!(
        corrected["metadata"]["annotations"]["example.com/mine"], "kept",
        "what is not ours stays"
    );
    until_answered(&namespace, "door");

    let slices = made(&namespace, "endpointslice");
    assert!(!slices.is_empty());
    for slice in &slices {
        namespace.patch("endpointslice", &name(slice), &json!({ "endpoints": [] }));
    }
    for slice in &slices {
        namespace.until("endpointslice", &name(slice), "as planned", |found| {
            found["endpoints"] == slice["endpoints"]
        });
    }
    for slice in &slices {
        namespace.delete("endpointslice", &name(slice));
    }
    eventually("slices that are made again", || {
        let found = made(&namespace, "endpointslice");
        let is_back = |slice: &Value| found.iter().any(|found| found["endpoints"] == slice["endpoints"]);
        holds(slices.iter().all(is_back), format!("{found:?}"))
    });
    until_status(address, "/", 200);

    let old = made(&namespace, "service")[0]["metadata"]["uid"].clone();
    namespace.delete("service", &service);
    eventually("another Service", || {
        let found = made(&namespace, "service");
        holds(
            found.len() == 1 && found[0]["metadata"]["uid"] != old,
            format!("{found:?}"),
        )
    });
    until_answered(&namespace, "door");

    namespace.delete("gateway", "door");
    eventually("the end of what was made", || {
        let left: Vec<Value> = ["service", "endpointslice"]
            .iter()
            .flat_map(|kind| made(&namespace, kind))
            .collect();
        holds(left.is_empty(), format!("{left:?}"))
    });
    namespace.until("httproute", "door", "no word of a parent that is gone", |route| {
        route["status"]["parents"].as_array().is_none_or(Vec::is_empty)
    });
}

#[test]
fn a_service_of_somebody_else_is_never_touched_and_the_gateway_says_so() {
    let namespace = Namespace::make(shared(), "foreign");
    namespace.served("door", CLASS);
    let service = name(&made(&namespace, "service")[0]);
    namespace.delete("gateway", "door");
    namespace.until_gone("service", &service);
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": service },
        "spec": { "selector": { "app": "door" }, "ports": [{ "port": 80, "targetPort": 3000 }] },
    });
    namespace.create("service", &foreign);
    let before = namespace.get("service", &service).unwrap();
    namespace.gateway("door", CLASS);
    let gateway = namespace.until_gateway("door", "Programmed", ("False", "NoResources"));
    let said = message(&gateway["status"]["conditions"], "Programmed");
    assert!(said.contains(&service), "{said}");
    assert!(
        gateway["status"]["addresses"].as_array().is_none_or(Vec::is_empty),
        "{gateway}"
    );
    let after = namespace.get("service", &service).unwrap();
    assert_eq!(before, after, "somebody else's Service");
    let slices = namespace.list("endpointslice").into_iter();
    let ours = slices
        .filter(|slice| slice["metadata"]["labels"][LABEL].is_string())
        .count();
    assert_eq!(ours, 0, "nothing of ours leads others' clients astray");

    namespace.delete("service", &service);
    until_answered(&namespace, "door");
}

#[test]
fn a_gateway_with_the_longest_name_is_served() {
    let namespace = Namespace::make(shared(), "long-names");
    let part = "a".repeat(63);
    let long = format!("{part}.{part}.{part}.{}", "z".repeat(61));
    assert_eq!(long.len(), 253);
    namespace.backend("echo");
    namespace.gateway(&long, CLASS);
    // One that differs in the last letter only has a Service of its own.
    let other = format!("{}y", &long[..252]);
    namespace.gateway(&other, CLASS);
    namespace.route("long", &long, "echo");
    let address = SocketAddr::new(namespace.programmed(&long), 80);
    until_status(address, "/", 200);
    let beside = SocketAddr::new(namespace.programmed(&other), 80);
    assert_ne!(address, beside);
    until_status(beside, "/", 404);
    let gateway = namespace.get("gateway", &long).unwrap();
    assert_eq!(condition(&gateway["status"]["conditions"], "Accepted").0, "True");
}
