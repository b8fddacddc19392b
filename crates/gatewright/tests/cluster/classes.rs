//! Classes in use, Events, and leaving a cluster.

use std::{net::SocketAddr, process::Command};

use serde_json::{Value, json};

use crate::{
    bed::{Bed, eventually, holds, shared},
    install::Installation,
    namespace::{CLASS, Namespace, condition, path, plain_route, until_status},
};

const FINALIZER: &str = "gateway-exists-finalizer.gateway.networking.k8s.io";

fn finalizers(bed: &Bed, class: &str) -> Vec<String> {
    let class = bed.get(&path("gatewayclass", "", class)).unwrap();
    let finalizers = class["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

fn until_finalizers(bed: &Bed, class: &str, expected: &[&str]) {
    eventually(&format!("finalizers {expected:?} of class {class}"), || {
        let found = finalizers(bed, class);
        holds(found == expected, format!("{found:?}"))
    });
}

#[test]
fn a_class_in_use_stays_until_its_last_gateway_is_gone() {
    let bed = shared();
    let namespace = Namespace::make(bed, "classes");
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": { "name": "passing" },
        "spec": { "controllerName": "gatewright.dev/gateway-controller" },
    });
    bed.create(&path("gatewayclass", "", ""), &class).unwrap();
    namespace.gateway("one", "passing");
    namespace.gateway("two", "passing");
    until_finalizers(bed, "passing", &[FINALIZER]);
    namespace.programmed("two");
    let shown = bed.get(&path("gatewayclass", "", "passing")).unwrap();
    let supported = condition(&shown["status"]["conditions"], "SupportedVersion");
    assert_eq!(supported, ("True".to_owned(), "SupportedVersion".to_owned()));
    bed.delete(&path("gatewayclass", "", "passing")).unwrap();
    namespace.delete("gateway", "one");
    namespace.until_gone("gateway", "one");
    assert_eq!(
        finalizers(bed, "passing"),
        [FINALIZER],
        "the second Gateway still uses it"
    );
    namespace.delete("gateway", "two");
    eventually("the end of the class", || {
        match bed.get(&path("gatewayclass", "", "passing")) {
            Err(refusal) if refusal.code == 404 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn events_tell_what_became_of_objects() {
    let namespace = Namespace::make(shared(), "events");
    namespace.served("door", CLASS);
    namespace.route("lost", "door", "nowhere");
    namespace.until_route("lost", "ResolvedRefs", ("False", "BackendNotFound"));
    let told = |kind: &str, name: &str, reason: &str, tone: &str| {
        eventually(&format!("an Event {reason} of {kind} {name}"), || {
            let events = namespace.list("event");
            let fits = |event: &&Value| {
                let object = &event["involvedObject"];
                object["kind"] == kind && object["name"] == name && event["reason"] == reason && event["type"] == tone
            };
            let found = events.iter().find(fits).cloned();
            found.ok_or_else(|| format!("{} others", events.len()))
        })
    };
    let event = told("HTTPRoute", "lost", "BackendNotFound", "Warning");
    assert!(event["message"].as_str().unwrap().contains("nowhere"), "{event}");
    told("Gateway", "door", "Programmed", "Normal");
}

/// Runs `gatewright uninstall` on an installation: whether it succeeded, and what it said.
fn uninstall(installation: &Installation<'_>, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gatewright"))
        .env_clear()
        .arg("uninstall")
        .arg("--kubeconfig")
        .arg(installation.bed.cluster.kubeconfig())
        .args(["--controller-name", &installation.controller])
        .args(["--system-namespace", &installation.namespace])
        .args(arguments)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn uninstall_removes_what_is_left_and_refuses_while_a_replica_writes() {
    let bed = shared();
    let installation = Installation::make(bed, "leaving", 1, &[]);
    let namespace = Namespace::make(bed, "leaving");
    namespace.served("door", "leaving");
    until_finalizers(bed, "leaving", &[FINALIZER]);
    let (is_done, said) = uninstall(&installation, &[]);
    assert!(!is_done && said.contains("still at work"), "{said}");
    let (is_done, said) = uninstall(&installation, &["--dry-run"]);
    assert!(
        is_done && said.contains("would remove finalizer of GatewayClass leaving"),
        "{said}"
    );
    assert_eq!(finalizers(bed, "leaving"), [FINALIZER]);

    bed.kubectl(&[
        "--namespace",
        &installation.namespace,
        "delete",
        "deployment",
        "gatewright",
    ])
    .unwrap();
    eventually("the end of the replica", || {
        let pods = installation.pods();
        holds(pods.is_empty(), format!("{} pods", pods.len()))
    });
    let (is_done, said) = uninstall(&installation, &["--dry-run", "--objects"]);
    assert!(is_done, "{said}");
    for (what, count) in [
        ("finalizer of GatewayClass leaving", 1),
        ("Service leaving/", 1),
        ("EndpointSlice leaving/", 1),
    ] {
        assert_eq!(said.matches(&format!("would remove {what}")).count(), count, "{said}");
    }
    let (is_done, said) = uninstall(&installation, &[]);
    assert!(
        is_done && said.contains("removed finalizer of GatewayClass leaving"),
        "{said}"
    );
    assert_eq!(finalizers(bed, "leaving"), [""; 0]);
    let is_ours = |service: &Value| service["spec"]["type"] == "LoadBalancer";
    assert!(
        namespace.list("service").iter().any(is_ours),
        "objects stay unless asked for"
    );
    let (is_done, said) = uninstall(&installation, &["--objects"]);
    assert!(is_done && said.contains("removed Service leaving/"), "{said}");
    eventually("no Service of the Gateway", || {
        let services = namespace.list("service");
        holds(!services.iter().any(is_ours), format!("{services:?}"))
    });
    let (is_done, said) = uninstall(&installation, &["--objects"]);
    assert!(is_done && said.contains("nothing is left"), "{said}");
    let shared_class = bed.get(&path("gatewayclass", "", CLASS)).unwrap();
    assert_eq!(
        shared_class["metadata"]["finalizers"][0], FINALIZER,
        "that of another installation stays"
    );
}

#[test]
fn two_installations_say_each_its_own_on_one_route() {
    let bed = shared();
    let installation = Installation::make(bed, "beside", 1, &[]);
    let namespace = Namespace::make(bed, "beside");
    namespace.backend("echo");
    namespace.gateway("ours", CLASS);
    namespace.gateway("theirs", "beside");
    let mut route = plain_route("both", "ours", "echo");
    route["spec"]["parentRefs"] = json!([{ "name": "ours" }, { "name": "theirs" }]);
    namespace.create("httproute", &route);
    let entries = |route: &Value| {
        let parents = route["status"]["parents"].as_array().cloned().unwrap_or_default();
        let entry = |parent: &Value| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let accepted = condition(&parent["conditions"], "Accepted").0;
            (
                text(&parent["parentRef"]["name"]),
                text(&parent["controllerName"]),
                accepted,
            )
        };
        let mut entries: Vec<_> = parents.iter().map(entry).collect();
        entries.sort();
        entries
    };
    let entry = |gateway: &str, controller: &str| (gateway.to_owned(), controller.to_owned(), "True".to_owned());
    let (ours, theirs) = (
        entry("ours", "gatewright.dev/gateway-controller"),
        entry("theirs", &installation.controller),
    );
    let both = [ours, theirs.clone()];
    namespace.until("httproute", "both", "an entry of each", |route| entries(route) == both);
    for gateway in ["ours", "theirs"] {
        until_status(SocketAddr::new(namespace.programmed(gateway), 80), "/", 200);
    }
    namespace.delete("gateway", "ours");
    namespace.until("httproute", "both", "the other's entry alone", |route| {
        entries(route) == [theirs.clone()]
    });
    until_status(SocketAddr::new(namespace.programmed("theirs"), 80), "/", 200);
}
