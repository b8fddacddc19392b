//! What we are told where connections are measured: passed on by port, passed on by name, and ended with TLS.

use std::net::SocketAddrV4;

use serde_json::{Value, json};

use crate::{
    certificates::Identity,
    peers::{HOST, Streams},
    worlds::{CONTROLLER, GATEWAY, INFRA},
};

const API: &str = "gateway.networking.k8s.io/v1";

/// Two listeners for TCP, each with a route.
pub fn tcp(bulk: SocketAddrV4, line: SocketAddrV4, backend: Streams) -> Value {
    let listener =
        |name: &str, address: SocketAddrV4| json!({ "name": name, "port": address.port(), "protocol": "TCP" });
    let route = |name: &str| {
        route("TCPRoute", name, name, |spec| {
            spec["rules"] = json!([{ "backendRefs": [{ "name": name, "port": 80 }] }]);
        })
    };
    let mut items = frame(&json!([listener("bulk", bulk), listener("line", line)]));
    items.extend([route("bulk"), route("line")]);
    items.extend(streams(backend));
    list(&items)
}

/// One listener that passes TLS on, and a route for each name.
pub fn passthrough(address: SocketAddrV4, backend: Streams) -> Value {
    let route = |name: &str, host: &str| {
        route("TLSRoute", name, "tls", |spec| {
            spec["hostnames"] = json!([host]);
            spec["rules"] = json!([{ "backendRefs": [{ "name": name, "port": 80 }] }]);
        })
    };
    let mut items = frame(&json!([
        { "name": "tls", "port": address.port(), "protocol": "TLS", "tls": { "mode": "Passthrough" } },
    ]));
    items.extend([route("bulk", Streams::BULK_NAME), route("line", Streams::LINE_NAME)]);
    items.extend(streams(backend));
    list(&items)
}

/// One listener for HTTPS, and a route of everything.
pub fn terminating(address: SocketAddrV4, backend: SocketAddrV4, identity: &Identity) -> Value {
    let mut items = frame(&json!([{
        "name": "https", "port": address.port(), "protocol": "HTTPS",
        "tls": { "certificateRefs": [{ "name": "bench" }] },
    }]));
    items.push(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": named("bench"), "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": identity.certificate, "tls.key": identity.key },
    }));
    items.push(route("HTTPRoute", "bench", "https", |spec| {
        spec["hostnames"] = json!([HOST]);
        spec["rules"] = json!([{ "backendRefs": [{ "name": "bench", "port": 80 }] }]);
    }));
    items.extend(service("bench", backend));
    list(&items)
}

fn frame(listeners: &Value) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": API, "kind": "GatewayClass", "metadata": { "name": GATEWAY },
            "spec": { "controllerName": CONTROLLER },
        }),
        json!({
            "apiVersion": API, "kind": "Gateway", "metadata": named(GATEWAY),
            "spec": { "gatewayClassName": GATEWAY, "listeners": listeners },
        }),
    ]
}

fn route(kind: &str, name: &str, listener: &str, fill: impl FnOnce(&mut Value)) -> Value {
    let mut spec = json!({ "parentRefs": [{ "name": GATEWAY, "sectionName": listener }] });
    fill(&mut spec);
    json!({ "apiVersion": API, "kind": kind, "metadata": named(name), "spec": spec })
}

fn streams(backend: Streams) -> impl Iterator<Item = Value> {
    service("bulk", backend.bulk)
        .into_iter()
        .chain(service("line", backend.line))
}

fn service(name: &str, endpoint: SocketAddrV4) -> [Value; 2] {
    let slice = json!({
        "name": name, "namespace": INFRA, "labels": { "kubernetes.io/service-name": name },
    });
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": named(name),
            "spec": { "ports": [{ "port": 80, "protocol": "TCP" }] },
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice, "addressType": "IPv4",
            "endpoints": [{ "addresses": [endpoint.ip().to_string()], "conditions": { "ready": true } }],
            "ports": [{ "port": endpoint.port(), "protocol": "TCP" }],
        }),
    ]
}

fn named(name: &str) -> Value {
    json!({ "name": name, "namespace": INFRA })
}

fn list(items: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}
