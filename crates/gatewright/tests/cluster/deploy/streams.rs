//! What replicas do about ListenerSets, routes of connections and datagrams, and policies for TLS to backends: enough of each
//! that every right on them is used.

use serde_json::{Value, json};

use super::empty::Empty;
use crate::{
    bed::{eventually, holds},
    namespace::{Namespace, condition, of_parent, plain_route},
};

/// Every status is written twice: only what shows something already is read again before.
pub(super) fn do_everything(empty: &Empty, namespace: &Namespace<'_>) {
    namespace.create("gateway", &gateway());
    namespace.create("service", &service());
    namespace.apply(&listener_set());
    until(empty, namespace, "listenersets/more", "Accepted", |set| {
        condition(&set["status"]["conditions"], "Accepted").0 == "True"
    });
    for (backend, resolved) in [("nobody", "False"), ("private", "True")] {
        for (kind, section) in [("TLSRoute", "tls"), ("TCPRoute", "tcp"), ("UDPRoute", "udp")] {
            namespace.apply(&route(kind, section, backend));
            let path = format!("{}s/{section}", kind.to_lowercase());
            until(empty, namespace, &path, resolved, |route| {
                of_parent(route, "ResolvedRefs").0 == resolved
            });
        }
    }
    namespace.create("httproute", &plain_route("private", "streams", "private"));
    for (hostname, times) in [("a.example.com", 1), ("b.example.com", 2)] {
        namespace.apply(&policy(hostname));
        until(empty, namespace, "backendtlspolicies/private", hostname, |policy| {
            policy["status"]["ancestors"][0]["conditions"][0]["observedGeneration"] == times
        });
    }
}

/// Removes what stays when the namespace does.
pub(super) fn clean(empty: &Empty) {
    empty.run("kubectl delete listenerset,tlsroute,tcproute,udproute,backendtlspolicy --all");
    empty.run("kubectl delete service/private");
}

fn until(empty: &Empty, namespace: &Namespace<'_>, path: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
    let place = format!(
        "/apis/gateway.networking.k8s.io/v1/namespaces/{}/{path}",
        namespace.name
    );
    eventually(&format!("{path}: {what}"), || {
        let object = empty.bed.get(&place).map_err(|error| error.message)?;
        holds(is_so(&object), &object["status"])
    });
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": { "name": "streams" },
        "spec": {
            "gatewayClassName": "gatewright",
            "allowedListeners": { "namespaces": { "from": "Same" } },
            "listeners": [
                { "name": "http", "protocol": "HTTP", "port": 8080 },
                { "name": "tls", "protocol": "TLS", "port": 8443, "tls": { "mode": "Passthrough" } },
                { "name": "tcp", "protocol": "TCP", "port": 5432 },
                { "name": "udp", "protocol": "UDP", "port": 5353 },
            ],
        },
    })
}

/// A Service of its own, for what it serves must be TLS in the end.
fn service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "private" },
        "spec": { "ports": [{ "name": "tcp", "port": 80 }, { "name": "udp", "port": 80, "protocol": "UDP" }] },
    })
}

fn listener_set() -> String {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "ListenerSet",
        "metadata": { "name": "more" },
        "spec": {
            "parentRef": { "name": "streams" },
            "listeners": [{ "name": "more", "protocol": "HTTP", "port": 8081 }],
        },
    })
    .to_string()
}

fn route(kind: &str, section: &str, backend: &str) -> String {
    let mut route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": section },
        "spec": {
            "parentRefs": [{ "name": "streams", "sectionName": section }],
            "rules": [{ "backendRefs": [{ "name": backend, "port": 80 }] }],
        },
    });
    if kind == "TLSRoute" {
        route["spec"]["hostnames"] = json!(["tls.example.com"]);
    }
    route.to_string()
}

fn policy(hostname: &str) -> String {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "BackendTLSPolicy",
        "metadata": { "name": "private" },
        "spec": {
            "targetRefs": [{ "group": "", "kind": "Service", "name": "private" }],
            "validation": { "hostname": hostname, "wellKnownCACertificates": "System" },
        },
    })
    .to_string()
}
