//! Which namespaces count, and Gateways that listen on addresses of their host.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    bed::shared,
    install::{Installation, address},
    namespace::{Namespace, condition, message, path, plain_gateway, plain_route, until_status},
    web::ask,
};

/// A route of a host to the echo of its namespace, attached to a Gateway of another.
fn route_to(gateway_namespace: &str, host: &str) -> Value {
    let mut route = plain_route("across", "door", "echo");
    route["spec"]["parentRefs"][0]["namespace"] = json!(gateway_namespace);
    route["spec"]["hostnames"] = json!([host]);
    route
}

#[test]
fn routes_of_watched_namespaces_attach_to_gateways_elsewhere_and_others_do_not_count() {
    let bed = shared();
    let watched = Namespace::make(bed, "scoped-watched");
    let unwatched = Namespace::make(bed, "scoped-unwatched");
    let elsewhere = Namespace::make(bed, "scoped-elsewhere");
    let _installation = Installation::make(bed, "scoped", 1, &["--watch-namespaces=scoped-watched"]);
    let mut gateway = plain_gateway("door", "scoped");
    gateway["spec"]["listeners"][0]["allowedRoutes"] = json!({ "namespaces": { "from": "All" } });
    elsewhere.create("gateway", &gateway);
    for (namespace, host) in [(&unwatched, "unwatched.example.com"), (&watched, "watched.example.com")] {
        namespace.backend("echo");
        namespace.create("httproute", &route_to("scoped-elsewhere", host));
    }
    watched.until_route("across", "Accepted", ("True", "Accepted"));
    watched.until_route("across", "ResolvedRefs", ("True", "ResolvedRefs"));
    let door = SocketAddr::new(elsewhere.programmed("door"), 80);
    let status = |host: &str| ask(door, "/", host, &[]).map(|response| response.status);
    crate::bed::eventually("an answer", || {
        let found = status("watched.example.com");
        crate::bed::holds(found == Ok(200), format!("{found:?}"))
    });
    assert_eq!(status("unwatched.example.com"), Ok(404));
    let route = unwatched.get("httproute", "across").unwrap();
    assert!(
        route["status"]["parents"].as_array().is_none_or(Vec::is_empty),
        "{}",
        route["status"]
    );
    elsewhere.until("gateway", "door", "one attached route", |gateway| {
        gateway["status"]["listeners"][0]["attachedRoutes"] == 1
    });
}

#[test]
fn gateways_of_entry_host_share_a_pool_of_addresses() {
    let bed = shared();
    let installation = Installation::make(bed, "hosted", 1, &[]);
    let namespace = Namespace::make(bed, "hosted");
    let own = address(&installation.pods()[0]);
    let config = json!({
        "apiVersion": "gatewright.dev/v1alpha1", "kind": "GatewayConfig", "metadata": { "name": "pool" },
        "spec": { "entry": "Host", "host": { "addresses": [own, "127.0.0.2"] } },
    });
    namespace.create("gatewayconfig", &config);
    let parameters =
        json!({ "group": "gatewright.dev", "kind": "GatewayConfig", "name": "pool", "namespace": "hosted" });
    bed.patch(
        &path("gatewayclass", "", "hosted"),
        &json!({ "spec": { "parametersRef": parameters } }),
    )
    .unwrap_or_else(|error| panic!("{}", error.message));
    namespace.backend("echo");
    let gateway = |name: &str| {
        let mut gateway = plain_gateway(name, "hosted");
        gateway["spec"]["listeners"][0]["port"] = json!(8080);
        namespace.create("gateway", &gateway);
        namespace.route(name, name, "echo");
    };
    gateway("first");
    assert_eq!(namespace.programmed("first"), own);
    until_status(SocketAddr::new(own, 8080), "/", 200);
    gateway("second");
    assert_eq!(namespace.programmed("second").to_string(), "127.0.0.2");
    gateway("third");
    let third = namespace.until("gateway", "third", "not Programmed", |gateway| {
        condition(&gateway["status"]["conditions"], "Programmed").0 == "False"
            && condition(&gateway["status"]["conditions"], "Programmed").1 != "Pending"
    });
    let said = message(&third["status"]["conditions"], "Programmed");
    println!("third on two addresses: {said}");
    assert!(!said.is_empty());
    let services = namespace.list("service");
    assert_eq!(services.len(), 1, "only the backend's: {services:?}");
    namespace.delete("gateway", "first");
    assert_eq!(namespace.programmed("third"), own, "the address that became free");
}
