//! TLSRoutes, TCPRoutes and UDPRoutes, of the names of HTTPRoutes and with their Services.

use gatewright_api::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Edit, NAMESPACES, listeners, pick};

pub(super) fn base() -> Vec<Edit> {
    let mut edits = Vec::new();
    for namespace in NAMESPACES {
        // The TCPRoute attaches to the listener of the TLSRoute, too.
        for (kind, section) in [
            (Kind::TcpRoute, None),
            (Kind::UdpRoute, Some("l1")),
            (Kind::TlsRoute, Some("l2")),
        ] {
            let mut spec = json!({
                "parentRefs": [{"kind": "ListenerSet", "name": "s0", "namespace": "a", "sectionName": section}],
                "rules": [{"backendRefs": [{"name": "web", "port": 80}, {"name": "api", "namespace": "b", "port": 80}]}],
            });
            if kind == Kind::TlsRoute {
                spec["hostnames"] = json!(["a.x.com"]);
            }
            let metadata = json!({"namespace": namespace, "name": "r0", "generation": 1});
            edits.push(Edit::Apply(kind, json!({"metadata": metadata, "spec": spec})));
        }
    }
    edits
}

pub(super) fn route() -> impl Strategy<Value = Edit> {
    let kind = pick(&[Kind::TlsRoute, Kind::TcpRoute, Kind::UdpRoute]);
    let backend = (
        pick(&["web", "api", "none"]),
        pick(&[None, Some("a"), Some("b")]),
        pick(&[80, 99]),
        pick(&["Service", "Service", "Service", "ConfigMap"]),
        0..3,
    );
    let rules = proptest::collection::vec(proptest::collection::vec(backend, 0..3), 1..3);
    let hostnames = pick(&[
        json!(["a.x.com"]),
        json!(["*.x.com", "y.com"]),
        json!(["z.net"]),
        json!(["bad_host"]),
    ]);
    let parents = proptest::collection::vec(listeners::parent(), 0..3);
    let names = (pick(&NAMESPACES), pick(&["r0", "r1"]), 1..4i64);
    let created = pick(&["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
    let scope = pick(&[json!(null), json!(null), json!("All")]);
    (kind, names, created, parents, hostnames, rules, scope).prop_map(
        |(kind, (namespace, name, generation), created, parents, hostnames, rules, scope)| {
            let rules: Vec<Value> = rules
                .into_iter()
                .map(|backends| {
                    let backends: Vec<Value> = backends
                        .into_iter()
                        .map(|(name, namespace, port, kind, weight)| {
                            json!({"kind": kind, "name": name, "namespace": namespace, "port": port, "weight": weight})
                        })
                        .collect();
                    json!({ "backendRefs": backends })
                })
                .collect();
            let mut spec = json!({"parentRefs": parents, "rules": rules, "useDefaultGateways": scope});
            if kind == Kind::TlsRoute {
                spec["hostnames"] = hostnames;
            }
            let metadata = json!({
                "namespace": namespace, "name": name, "generation": generation, "creationTimestamp": created,
            });
            Edit::Apply(kind, json!({"metadata": metadata, "spec": spec}))
        },
    )
}
