//! What only happens in a cluster: replicas come and go, Services come back, and others are in the way.

use gatewright_api::Kind;
use gatewright_world::{
    ListenerFact, Replica,
    desired::{OwnedKind, OwnedName},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Edit, NAMESPACES, listener_fact, pick};

/// What there is besides in a cluster.
pub(crate) fn cluster_base() -> Vec<Edit> {
    let config = json!({"metadata": {"namespace": "a", "name": "config"}, "spec": {"entry": "LoadBalancer"}});
    vec![
        Edit::Apply(Kind::GatewayConfig, config),
        Edit::Local(vec!["10.244.0.1".parse().unwrap()]),
    ]
}

pub(super) fn replica() -> impl Strategy<Value = Edit> {
    let facts = proptest::collection::vec(listener_fact(), 0..6);
    let addresses = pick(&[
        vec![],
        vec!["10.244.0.2"],
        vec!["10.244.0.2", "fd00::2"],
        vec!["10.244.0.1"],
    ]);
    (
        pick(&["one", "two", "three"]),
        any::<bool>(),
        any::<bool>(),
        addresses,
        facts,
    )
        .prop_map(|(name, is_there, is_leaving, addresses, facts)| {
            let facts = facts.into_iter().filter_map(|(origin, generation, state)| {
                let state = state?;
                Some((origin, ListenerFact { generation, state }))
            });
            let replica = Replica {
                addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
                node: Some("node".into()),
                is_leaving,
                facts: facts.collect(),
            };
            Edit::Replica(name, Some(replica).filter(|_| is_there))
        })
}

pub(super) fn local() -> impl Strategy<Value = Edit> {
    let addresses = pick(&[
        vec![],
        vec!["10.244.0.1"],
        vec!["10.244.0.1", "fd00::1"],
        vec!["fd00::1"],
    ]);
    addresses.prop_map(|addresses| Edit::Local(addresses.iter().map(|address| address.parse().unwrap()).collect()))
}

/// The Service of a Gateway as a cluster shows it, also as somebody may have written it.
pub(super) fn entry() -> impl Strategy<Value = Edit> {
    let port = (
        pick(&[80, 81, 82]),
        pick(&[20_000, 20_001, 20_002, 80]),
        pick(&["TCP", "TCP", "UDP"]),
    );
    let ports = proptest::collection::vec(port, 1..4);
    let ingress = pick(&[
        json!([]),
        json!([{"ip": "192.0.2.1"}]),
        json!([{"hostname": "lb.example.com"}, {"ip": "192.0.2.2"}]),
    ]);
    let kind = pick(&["LoadBalancer", "LoadBalancer", "ClusterIP"]);
    (pick(&NAMESPACES), pick(&["front", "back"]), ports, ingress, kind, 0..8).prop_map(
        |(namespace, name, ports, ingress, kind, foreign)| {
            let ports = ports.iter();
            let ports = ports.map(|(port, target, protocol)| json!({"port": port, "targetPort": target, "protocol": protocol}));
            let owner = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": name,
                "uid": "1", "controller": foreign > 0});
            Edit::Apply(
                Kind::Service,
                json!({
                    "metadata": {"namespace": namespace, "name": format!("gatewright-{name}"), "ownerReferences": [owner]},
                    "spec": {"type": kind, "ports": ports.collect::<Value>(), "clusterIPs": ["10.96.0.1"]},
                    "status": {"loadBalancer": {"ingress": ingress}},
                }),
            )
        },
    )
}

pub(super) fn conflict() -> impl Strategy<Value = Edit> {
    let names = pick(&[
        (OwnedKind::Service, "gatewright-front"),
        (OwnedKind::Service, "gatewright-back"),
        (OwnedKind::EndpointSlice, "gatewright-front-80-ipv4"),
        (OwnedKind::EndpointSlice, "gatewright-front-udp82-ipv4"),
    ]);
    let message = pick(&[None, Some("it is somebody else's"), Some("it is a third one's")]);
    (pick(&NAMESPACES), names, message).prop_map(|(namespace, (kind, name), message)| {
        let (namespace, name) = (namespace.into(), name.into());
        Edit::Conflict(OwnedName { kind, namespace, name }, message)
    })
}

pub(super) fn invalid() -> impl Strategy<Value = Edit> {
    let broken = pick(&[
        (
            Kind::GatewayClass,
            "one",
            json!({"controllerName": "gatewright.dev/gateway-controller"}),
        ),
        (
            Kind::Gateway,
            "front",
            json!({"gatewayClassName": "one", "listeners": []}),
        ),
        (
            Kind::HttpRoute,
            "r0",
            json!({"parentRefs": [{"name": "front"}, {"name": "gone"}]}),
        ),
        (
            Kind::TlsRoute,
            "r0",
            json!({"parentRefs": [{"kind": "ListenerSet", "name": "s0"}], "hostnames": [], "rules": []}),
        ),
        (
            Kind::TcpRoute,
            "r0",
            json!({"parentRefs": [{"kind": "ListenerSet", "name": "s0"}], "rules": []}),
        ),
        (
            Kind::ListenerSet,
            "s0",
            json!({"parentRef": {"name": "front", "namespace": "a"}, "listeners": []}),
        ),
        (
            Kind::BackendTlsPolicy,
            "p0",
            json!({"targetRefs": [{"group": "", "kind": "Service", "name": "web"}], "validation": {"hostname": ""}}),
        ),
        (Kind::ConfigMap, "ca", Value::Null),
        (Kind::Service, "web", Value::Null),
        (Kind::Secret, "good", Value::Null),
        (Kind::EndpointSlice, "s0", Value::Null),
        (Kind::GatewayConfig, "config", json!({})),
        (Kind::ReferenceGrant, "g0", json!({"from": [], "to": []})),
    ]);
    (pick(&NAMESPACES), broken, 1..4i64).prop_map(|(namespace, (kind, name, spec), generation)| {
        let mut value = json!({"metadata": {"name": name, "generation": generation}});
        if kind.is_namespaced() {
            value["metadata"]["namespace"] = json!(namespace);
        }
        if !spec.is_null() {
            value["spec"] = spec;
        }
        Edit::Invalid(kind, value)
    })
}
