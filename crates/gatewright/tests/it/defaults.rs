//! Default Gateways with files: routes that name no Gateway attach to those that offer themselves.

use std::net::SocketAddr;

use serde_json::Value;

use crate::{
    calls::{ECHO, call},
    process::{Process, free_port, wait_for, whole},
    served::Served,
    web::{Backends, Echoes, get},
    yaml::{self, FOLDER, folder, save, service},
};

/// A Gateway with one listener, and whatever else its spec and its listener say.
fn gateway(name: &str, port: u16, spec: &str, listener: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  name: {name}
spec:
  gatewayClassName: gatewright
{spec}  listeners:
  - name: http
    protocol: HTTP
    port: {port}
{listener}"
    )
}

const OFFERED: &str = "  defaultScope: All\n";

/// A route that asks for default Gateways.
fn route(kind: &str, name: &str, namespace: &str, service: &str) -> String {
    format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: {kind}
metadata:
  name: {name}
  namespace: {namespace}
spec:
  useDefaultGateways: All
  rules:
  - backendRefs:
    - name: {service}
      port: 80
"
    )
}

/// The Gateways in a route's status, with whether they accept it.
fn parents(served: &Served, name: &str) -> Vec<(String, bool)> {
    let object = served.object("HTTPRoute", name);
    let parents = object["status"]["parents"].as_array().cloned().unwrap_or_default();
    let one = |parent: &Value| {
        let conditions = parent["conditions"].as_array().into_iter().flatten();
        let mut accepted = conditions.filter(|condition| condition["type"] == "Accepted");
        let name = parent["parentRef"]["name"].as_str().unwrap().to_owned();
        (name, accepted.any(|condition| condition["status"] == "True"))
    };
    parents.iter().map(one).collect()
}

fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn until_service(port: u16, expected: &str) {
    wait_for(&format!("{expected:?} on port {port}"), || {
        (get(here(port), "/").service() == expected).then_some(())
    });
}

#[test]
fn a_route_without_parents_attaches_to_gateways_that_come_and_go() {
    let backends = Backends::start();
    let objects = service("blue", backends.blue) + &route("HTTPRoute", "anywhere", "default", "blue");
    let served = Served::start(&objects);
    assert_eq!(get(served.traffic, "/").status, 404, "`edge` does not offer itself");
    assert!(parents(&served, "anywhere").is_empty());

    let ports = [free_port(), free_port()];
    save(served.parent.path(), "one.yaml", &gateway("one", ports[0], OFFERED, ""));
    until_service(ports[0], "blue");
    save(served.parent.path(), "two.yaml", &gateway("two", ports[1], OFFERED, ""));
    until_service(ports[1], "blue");
    let both = [("one".to_owned(), true), ("two".to_owned(), true)];
    wait_for("both parents", || (parents(&served, "anywhere") == both).then_some(()));

    // One that takes its offer back is a Gateway like any other.
    save(
        served.parent.path(),
        "one.yaml",
        &gateway("one", ports[0], "  defaultScope: None\n", ""),
    );
    wait_for("no route", || (get(here(ports[0]), "/").status == 404).then_some(()));
    wait_for("one parent", || {
        (parents(&served, "anywhere") == both[1..]).then_some(())
    });
    assert_eq!(get(here(ports[1]), "/").service(), "blue");
    assert_eq!(get(served.traffic, "/").status, 404);
}

#[test]
fn routes_of_other_namespaces_attach_where_the_listener_lets_them() {
    let backends = Backends::start();
    let ports = [free_port(), free_port()];
    let there = service("green", backends.green).replace("metadata:\n", "metadata:\n  namespace: shop\n");
    let open = "    allowedRoutes: { namespaces: { from: All } }\n";
    let objects = gateway("open", ports[0], OFFERED, open)
        + &gateway("closed", ports[1], OFFERED, "")
        + &there
        + &route("HTTPRoute", "foreign", "shop", "green");
    let served = Served::start(&objects);
    until_service(ports[0], "green");
    assert_eq!(get(here(ports[1]), "/").status, 404);
    let accepted: Vec<_> = parents(&served, "foreign").into_iter().filter(|(_, is)| *is).collect();
    assert_eq!(accepted, [("open".to_owned(), true)]);
}

#[test]
fn a_route_may_name_a_gateway_and_ask_for_the_default_ones_too() {
    let backends = Backends::start();
    let port = free_port();
    let both = route("HTTPRoute", "both", "default", "blue").replace(
        "  useDefaultGateways",
        "  parentRefs:\n  - name: edge\n  useDefaultGateways",
    );
    let objects = gateway("offered", port, OFFERED, "") + &service("blue", backends.blue) + &both;
    let served = Served::start(&objects);
    until_service(port, "blue");
    assert_eq!(get(served.traffic, "/").service(), "blue");
    let mut found = parents(&served, "both");
    found.sort();
    assert_eq!(found, [("edge".to_owned(), true), ("offered".to_owned(), true)]);
    // What does not ask stays where it is.
    served.save(&objects.replace("useDefaultGateways: All", "useDefaultGateways: None"));
    wait_for("no route at the other", || {
        (get(here(port), "/").status == 404).then_some(())
    });
    assert_eq!(get(served.traffic, "/").service(), "blue");
}

#[test]
fn default_gateways_are_shown_like_those_that_a_route_names() {
    let port = free_port();
    let objects = service("blue", 9081) + &route("HTTPRoute", "anywhere", "default", "blue");
    let parent = folder(&[("edge.yaml", &yaml::gateway(port)), ("objects.yaml", &objects)]);
    // Without one there is something to mend.
    insta::assert_snapshot!("default_gateways_missing", whole(parent.path(), &["check", FOLDER]));
    save(
        parent.path(),
        "edge.yaml",
        &yaml::gateway(port).replace("  listeners:", "  defaultScope: All\n  listeners:"),
    );
    assert!(whole(parent.path(), &["check", FOLDER, "--strict"]).starts_with("exit code: 0\n"));
    let process = Process::serve(parent.path(), FOLDER);
    let admin = process.admin().to_string();
    let table = whole(parent.path(), &["status", "httproutes", "--admin", &admin]);
    insta::assert_snapshot!("default_gateways_shown", table);
}

#[test]
fn routes_of_grpc_ask_for_default_gateways_as_well() {
    let echoes = Echoes::start("grpc", &["blue"]);
    let port = free_port();
    let objects = gateway("offered", port, OFFERED, "")
        + &service("blue", echoes.ports()[0])
        + &route("GRPCRoute", "calls", "default", "blue");
    let _served = Served::start(&objects);
    let reply = call(here(port), &format!("/{ECHO}/Echo"), &[]);
    assert_eq!((reply.status(), reply.service().as_str()), ("0", "blue"));
}
