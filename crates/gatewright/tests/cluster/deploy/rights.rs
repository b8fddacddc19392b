//! The roles are exactly what a replica needs: no request of it is refused, and no right is left unused.
//!
//! Replicas run as installed by the plain manifests and are led through everything they do in a cluster; the API server's
//! audit log says by which right each of their requests was allowed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    audit::{AuditLog, granted},
    empty::{Empty, SYSTEM},
    files::{manifest, of_kind},
    streams,
};
use crate::{
    bed::{eventually, holds},
    namespace::{Namespace, of_parent, plain_gateway},
};

const LABEL: &str = "gateway.networking.k8s.io/gateway-name";

#[test]
fn the_rights_in_a_whole_cluster_are_all_that_is_needed_and_all_are_used() {
    let empty = Empty::take();
    let audit = empty.audit();
    empty.install("install.yaml");
    let namespace = Namespace::make(empty.bed, "rights");
    do_everything(&empty, &namespace);
    every_right_is_used(&audit, "install.yaml");
    let found = audit.read();
    assert_eq!(found.refused, BTreeSet::new());
    assert_eq!(found.borrowed, BTreeSet::new());
    empty.remove("install.yaml");
    empty.run("kubectl delete namespace rights");
}

#[test]
fn the_rights_in_one_namespace_are_all_that_is_needed_and_all_are_used() {
    let empty = Empty::take();
    let audit = empty.audit();
    empty.install("install-namespaced.yaml");
    let namespace = Namespace {
        bed: empty.bed,
        name: "default".to_owned(),
    };
    do_everything(&empty, &namespace);
    every_right_is_used(&audit, "install-namespaced.yaml");
    let found = audit.read();
    assert_eq!(found.refused, BTreeSet::new());
    assert_eq!(found.borrowed, BTreeSet::new());
    streams::clean(&empty);
    empty.run("kubectl delete gateway,httproute,grpcroute,xbackendtrafficpolicy,deployment --all");
    empty.run("kubectl delete service/first service/gatewright-second endpointslice/gatewright-third-80-ipv4");
    empty.remove("install-namespaced.yaml");
}

/// Waits, for some requests come a while after what they are about.
fn every_right_is_used(audit: &AuditLog, name: &str) {
    let granted = granted(&manifest(name));
    eventually("a use of every right", || {
        let used = audit.read().used;
        let unused: Vec<_> = granted.difference(&used).collect();
        holds(unused.is_empty(), format_args!("never used: {unused:#?}"))
    });
    let used = audit.read().used;
    assert!(
        used.is_subset(&granted),
        "{:#?}",
        used.difference(&granted).collect::<Vec<_>>()
    );
}

/// Leads the replicas through everything that they do in a cluster.
fn do_everything(empty: &Empty, namespace: &Namespace<'_>) {
    // What is made and served; and that the network policy lets it through.
    namespace.served("first", "gatewright");
    let service = namespace.get("service", "gatewright-first").unwrap();
    let policy = of_kind(&manifest("install.yaml"), "NetworkPolicy")[0]["spec"]["ingress"][0]["ports"][0].clone();
    let target = service["spec"]["ports"][0]["targetPort"].as_u64().unwrap();
    let range = policy["port"].as_u64().unwrap()..=policy["endPort"].as_u64().unwrap();
    assert!(range.contains(&target), "{target} is none of {range:?}");

    // What is broken, and mended.
    namespace.route("broken", "first", "nobody");
    namespace.until_route("broken", "ResolvedRefs", ("False", "BackendNotFound"));
    let mended = json!({ "spec": { "rules": [{ "backendRefs": [{ "name": "first", "port": 80 }] }] } });
    namespace.patch("httproute", "broken", &mended);
    namespace.until_route("broken", "ResolvedRefs", ("True", "ResolvedRefs"));
    let path = format!(
        "/apis/gateway.networking.k8s.io/v1/namespaces/{}/grpcroutes/calls",
        namespace.name
    );
    for (backend, resolved) in [("nobody", "False"), ("first", "True")] {
        namespace.apply(&grpc_route(backend));
        eventually("the status of a GRPCRoute", || {
            let route = empty.bed.get(&path).map_err(|error| error.message)?;
            holds(of_parent(&route, "ResolvedRefs").0 == resolved, &route["status"])
        });
    }

    let path = format!(
        "/apis/gateway.networking.x-k8s.io/v1alpha1/namespaces/{}/xbackendtrafficpolicies/calm",
        namespace.name
    );
    for (percent, times) in [(10, 1), (20, 2)] {
        namespace.apply(&traffic_policy(percent));
        eventually("the status of a policy", || {
            let policy = empty.bed.get(&path).map_err(|error| error.message)?;
            let condition = &policy["status"]["ancestors"][0]["conditions"][0];
            let is_new = condition["status"] == "True" && condition["observedGeneration"] == times;
            holds(is_new, &policy["status"])
        });
    }

    streams::do_everything(empty, namespace);

    // What others have changed or deleted.
    let edited = json!({ "metadata": { "labels": { LABEL: "other" } } });
    namespace.patch("service", "gatewright-first", &edited);
    namespace.until("service", "gatewright-first", "the name of its Gateway", |service| {
        service["metadata"]["labels"][LABEL] == "first"
    });
    namespace.delete("endpointslice", "gatewright-first-80-ipv4");
    namespace.until("endpointslice", "gatewright-first-80-ipv4", "endpoints", |slice| {
        slice["endpoints"]
            .as_array()
            .is_some_and(|endpoints| !endpoints.is_empty())
    });

    // Names that others have.
    namespace.create("service", &foreign_service("gatewright-second"));
    namespace.create("gateway", &plain_gateway("second", "gatewright"));
    namespace.create("endpointslice", &foreign_slice("gatewright-third-80-ipv4"));
    namespace.create("gateway", &plain_gateway("third", "gatewright"));

    // What nobody plans any more.
    for (kind, name) in [
        ("service", "gatewright-first"),
        ("endpointslice", "gatewright-first-80-ipv4"),
    ] {
        let left = left_over(namespace.get(kind, name).unwrap());
        namespace.create(kind, &left);
        namespace.until_gone(kind, "left-over");
    }

    // A replica that leaves, be it the one that writes or another, and the way back.
    for replicas in [1, 2] {
        let path = format!("/apis/apps/v1/namespaces/{SYSTEM}/deployments/gatewright");
        empty
            .bed
            .patch(&path, &json!({ "spec": { "replicas": replicas } }))
            .unwrap();
        eventually("replicas that come and go", || {
            let status = empty.deployment()["status"].clone();
            holds(
                status["readyReplicas"] == replicas && status["replicas"] == replicas,
                status,
            )
        });
    }

    // The end of a Gateway.
    namespace.delete("gateway", "first");
    namespace.until_gone("service", "gatewright-first");
}

fn grpc_route(backend: &str) -> String {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GRPCRoute",
        "metadata": { "name": "calls" },
        "spec": {
            "parentRefs": [{ "name": "first" }],
            "hostnames": ["calls.example.com"],
            "rules": [{ "backendRefs": [{ "name": backend, "port": 80 }] }],
        },
    })
    .to_string()
}

fn traffic_policy(percent: u8) -> String {
    json!({
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha1",
        "kind": "XBackendTrafficPolicy",
        "metadata": { "name": "calm" },
        "spec": {
            "targetRefs": [{ "group": "", "kind": "Service", "name": "first" }],
            "retryConstraint": { "budget": { "percent": percent } },
        },
    })
    .to_string()
}

fn foreign_service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name },
        "spec": { "ports": [{ "port": 80 }] },
    })
}

fn foreign_slice(name: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": { "name": name },
        "addressType": "IPv4",
        "endpoints": [],
    })
}

/// The same object under another name, as if its Gateway had gone while no replica was there.
fn left_over(mut object: Value) -> Value {
    let metadata = &object["metadata"];
    object["metadata"] = json!({
        "name": "left-over",
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
    });
    if object["kind"] == "Service" {
        object["spec"] = json!({ "ports": [{ "port": 80 }] });
    }
    object.as_object_mut().unwrap().remove("status");
    object
}
