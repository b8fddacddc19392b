//! A small universe of objects, so small that random edits collide all the time.

mod cluster;
mod listeners;
mod streams;
mod trust;

use std::net::IpAddr;

use gatewright_api::{Kind, Object, ObjectName};
use gatewright_ir::{Fact, ListenFailure, ListenerState, Origin};
use gatewright_world::{Key, Replica, World, desired::OwnedName, origin};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) use cluster::cluster_base;

/// One change of the world.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Apply(Kind, Value),
    Delete(ObjectName),
    Observe(Fact),
    /// An object of which only this much can be read.
    Invalid(Kind, Value),
    Replica(&'static str, Option<Replica>),
    Local(Vec<IpAddr>),
    Leaving,
    Conflict(OwnedName, Option<&'static str>),
    /// What time it is.
    Time(i64),
}

impl Edit {
    pub(crate) fn make(&self, world: &mut World) {
        match self {
            Self::Apply(kind, value) => world.apply(&Object::from_value(*kind, value.clone()).unwrap()),
            Self::Delete(name) => world.delete(name),
            Self::Observe(fact) => world.observe(fact.clone()),
            Self::Invalid(kind, value) => {
                let object = Object::from_value(*kind, value.clone()).unwrap();
                let is_empty = value.get("spec").is_none();
                world.apply_invalid(&object.name(), Some(&object).filter(|_| !is_empty), "it is broken");
            }
            Self::Replica(name, replica) => world.set_replica(name, replica.clone()),
            Self::Local(addresses) => {
                // The node changes with the addresses.
                let node = Some("n1").filter(|_| addresses.len() == 1);
                world.set_local("one", addresses, node);
            }
            Self::Leaving => world.set_leaving(),
            Self::Conflict(name, message) => world.set_conflict(name, *message),
            Self::Time(seconds) => _ = world.set_time(*seconds),
        }
    }
}

const NAMESPACES: [&str; 2] = ["a", "b"];

/// A world in which most references hold, so that random edits break and mend something real.
pub(crate) fn base() -> Vec<Edit> {
    let mut edits = vec![
        Edit::Apply(
            Kind::GatewayClass,
            json!({"metadata": {"name": "one"}, "spec": {
                "controllerName": "gatewright.dev/gateway-controller",
                "parametersRef": {"group": "gatewright.dev", "kind": "GatewayConfig", "namespace": "a", "name": "config"},
            }}),
        ),
        Edit::Apply(
            Kind::GatewayConfig,
            json!({"metadata": {"namespace": "a", "name": "config"}, "spec": {"host": {"addresses": ["127.0.0.1", "127.0.0.2"]}}}),
        ),
        Edit::Apply(
            Kind::Namespace,
            json!({"metadata": {"name": "a", "labels": {"team": "red"}}}),
        ),
        Edit::Apply(
            Kind::Namespace,
            json!({"metadata": {"name": "b", "labels": {"team": "red"}}}),
        ),
    ];
    for namespace in NAMESPACES {
        for service in ["web", "api"] {
            let ports =
                json!([{"port": 80, "name": "http"}, {"port": 80, "name": "dns", "protocol": "UDP"}, {"port": 99}]);
            let metadata = json!({"namespace": namespace, "name": service});
            edits.push(Edit::Apply(
                Kind::Service,
                json!({"metadata": metadata, "spec": {"ports": ports}}),
            ));
        }
        for (index, name) in ["r0", "r1"].into_iter().enumerate() {
            let backends = json!([{"name": "web", "port": 80}, {"name": "api", "namespace": "b", "port": 80}]);
            edits.push(Edit::Apply(
                Kind::HttpRoute,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "generation": 1},
                    "spec": {"parentRefs": [{"name": "front", "namespace": NAMESPACES[index]}], "rules": [{"backendRefs": backends}]},
                }),
            ));
        }
    }
    edits.extend(listeners::base());
    edits.extend(streams::base());
    edits.extend(trust::base());
    edits
}

pub(crate) fn edits(count: usize) -> impl Strategy<Value = Vec<Edit>> {
    proptest::collection::vec(edit(), 1..count)
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        3 => class(),
        6 => listeners::gateway(),
        5 => listeners::set(),
        12 => route(),
        6 => grpc_route(),
        3 => policy(),
        4 => service(),
        4 => slice(),
        8 => streams::route(),
        3 => trust::secret(),
        3 => trust::authorities(),
        4 => trust::tls_policy(),
        2 => trust::time(),
        4 => grant(),
        3 => namespace(),
        2 => config(),
        5 => fact(),
        8 => delete(),
        2 => cluster::invalid(),
        3 => cluster::replica(),
        1 => cluster::local(),
        1 => Just(Edit::Leaving),
        4 => cluster::entry(),
        1 => cluster::conflict(),
    ]
}

fn pick<T: Clone + std::fmt::Debug + 'static>(values: &[T]) -> impl Strategy<Value = T> + use<T> {
    proptest::sample::select(values.to_vec())
}

fn class() -> impl Strategy<Value = Edit> {
    (
        pick(&["one", "two"]),
        pick(&["gatewright.dev/gateway-controller", "other/controller"]),
        pick(&[0, 1, 2]),
    )
        .prop_map(|(name, controller, parameters)| {
            let parameters = match parameters {
                0 => Value::Null,
                1 => json!({"group": "gatewright.dev", "kind": "GatewayConfig", "namespace": "a", "name": "config"}),
                _ => json!({"group": "", "kind": "ConfigMap", "namespace": "a", "name": "config"}),
            };
            let spec = json!({"controllerName": controller, "parametersRef": parameters});
            Edit::Apply(
                Kind::GatewayClass,
                json!({"metadata": {"name": name, "generation": 1}, "spec": spec}),
            )
        })
}

fn rule() -> impl Strategy<Value = Value> {
    let path = pick(&[
        json!(null),
        json!({"type": "Exact", "value": "/a"}),
        json!({"value": "/b"}),
        json!({"type": "RegularExpression", "value": "/c.*"}),
        json!({"type": "RegularExpression", "value": "("}),
    ]);
    let backend = (
        pick(&["web", "api", "none"]),
        pick(&[None, Some("a"), Some("b")]),
        pick(&[80, 99]),
        0..3,
    );
    let backends = proptest::collection::vec(backend, 0..3);
    let mirror = json!({"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "web", "port": 80}}});
    let foreign = json!({"type": "RequestMirror", "requestMirror": {"percent": 5, "backendRef": {"name": "api", "namespace": "b", "port": 80}}});
    let auth = json!({"type": "ExternalAuth", "externalAuth": {
        "protocol": "GRPC", "grpc": {}, "backendRef": {"name": "api", "namespace": "a", "port": 80}}});
    let filter = pick(&[
        json!([]),
        json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "X-A", "value": "1"}]}}]),
        json!([{"type": "RequestRedirect", "requestRedirect": {"statusCode": 301}}]),
        json!([mirror]),
        json!([mirror, foreign, auth]),
        json!([{"type": "CORS", "cors": {"allowOrigins": ["*"]}}]),
        json!([{"type": "ExtensionRef", "extensionRef": {"group": "x", "kind": "Y", "name": "z"}}]),
    ]);
    let extra = pick(&[
        json!({}),
        json!({"retry": {"attempts": 2}}),
        json!({"sessionPersistence": {"sessionName": "s"}}),
        json!({"timeouts": {"request": "1s"}}),
        json!({"filters": [foreign]}),
    ]);
    let parts = (proptest::collection::vec(path, 0..3), backends, filter, extra);
    parts.prop_map(|(paths, backends, filters, extra)| {
        let matches: Vec<Value> = paths.into_iter().map(|path| json!({"path": path})).collect();
        let backends: Vec<Value> = backends
            .into_iter()
            .map(|(name, namespace, port, weight)| {
                json!({"name": name, "namespace": namespace, "port": port, "weight": weight, "filters": extra["filters"]})
            })
            .collect();
        json!({
            "matches": matches,
            "backendRefs": backends,
            "filters": filters,
            "retry": extra["retry"],
            "sessionPersistence": extra["sessionPersistence"],
            "timeouts": extra["timeouts"],
        })
    })
}

/// GRPCRoutes of the names of HTTPRoutes, with the Services of HTTPRoutes.
fn grpc_route() -> impl Strategy<Value = Edit> {
    let method = pick(&[
        json!(null),
        json!({"service": "a.B", "method": "Get"}),
        json!({"service": "a.B"}),
        json!({"method": "Get"}),
        json!({"type": "RegularExpression", "service": "("}),
    ]);
    let backend = (pick(&["web", "api", "none"]), pick(&[None, Some("b")]), pick(&[80, 99]));
    let backends = proptest::collection::vec(backend, 0..3);
    let filters = pick(&[
        json!([]),
        json!([{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "api", "namespace": "b", "port": 80}}}]),
    ]);
    let names = (pick(&NAMESPACES), pick(&["r0", "r1"]), 1..4i64);
    let hostnames = pick(&[json!([]), json!(["a.x.com"]), json!(["*.x.com"])]);
    (names, listeners::parent(), hostnames, method, backends, filters).prop_map(
        |((namespace, name, generation), parent, hostnames, method, backends, filters)| {
            let backends: Vec<Value> = backends
                .into_iter()
                .map(|(name, namespace, port)| json!({"name": name, "namespace": namespace, "port": port}))
                .collect();
            Edit::Apply(
                Kind::GrpcRoute,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "generation": generation, "creationTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {
                        "parentRefs": [parent],
                        "hostnames": hostnames,
                        "rules": [{"matches": [{"method": method}], "backendRefs": backends, "filters": filters}],
                    },
                }),
            )
        },
    )
}

fn route() -> impl Strategy<Value = Edit> {
    let parents = proptest::collection::vec(listeners::parent(), 0..3);
    let hostnames = pick(&[
        json!([]),
        json!(["a.x.com"]),
        json!(["*.x.com", "y.com"]),
        json!(["z.net"]),
        json!(["bad_host"]),
    ]);
    let rules = proptest::collection::vec(rule(), 1..3);
    let scope = pick(&[json!(null), json!(null), json!("All")]);
    (pick(&NAMESPACES), pick(&["r0", "r1", "r2"]), parents, hostnames, rules, 1..4i64, scope).prop_map(
        |(namespace, name, parents, hostnames, rules, generation, scope)| {
            Edit::Apply(
                Kind::HttpRoute,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "generation": generation, "creationTimestamp": "2026-01-01T00:00:00Z"},
                    "spec": {"parentRefs": parents, "hostnames": hostnames, "rules": rules, "useDefaultGateways": scope},
                }),
            )
        },
    )
}

fn service() -> impl Strategy<Value = Edit> {
    let spec = pick(&[
        json!({"ports": [{"port": 80}]}),
        json!({"ports": [{"port": 80, "appProtocol": "kubernetes.io/ws"}]}),
        json!({"ports": [{"port": 80}], "internalTrafficPolicy": "Local"}),
        json!({"ports": [{"port": 80, "name": "http", "appProtocol": "kubernetes.io/h2c"}, {"port": 99, "name": "x", "appProtocol": "https"}]}),
        json!({"ports": [{"port": 80, "name": "http", "appProtocol": "https"}, {"port": 80, "name": "dns", "protocol": "UDP"}]}),
        json!({"ports": [{"port": 80, "name": "dns", "protocol": "UDP"}, {"port": 99, "name": "http"}]}),
        json!({"type": "ExternalName", "externalName": "example.com"}),
    ]);
    (pick(&NAMESPACES), pick(&["web", "api"]), spec).prop_map(|(namespace, name, spec)| {
        Edit::Apply(
            Kind::Service,
            json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec}),
        )
    })
}

/// Policies of different ages for the same Services.
fn policy() -> impl Strategy<Value = Edit> {
    let target = |name: &str| json!({"group": "", "kind": "Service", "name": name});
    let targets = pick(&[
        json!([target("web")]),
        json!([target("api"), target("web")]),
        json!([target("none")]),
        json!([target("web"), {"group": "x.com", "kind": "Y", "name": "z"}]),
    ]);
    let constraint = pick(&[
        json!(null),
        json!({"budget": {"percent": 5}}),
        json!({"budget": {"percent": 50}}),
    ]);
    let created = pick(&["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]);
    (pick(&NAMESPACES), pick(&["p0", "p1"]), targets, constraint, created).prop_map(
        |(namespace, name, targets, constraint, created)| {
            Edit::Apply(
                Kind::BackendTrafficPolicy,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "creationTimestamp": created},
                    "spec": {"targetRefs": targets, "retryConstraint": constraint},
                }),
            )
        },
    )
}

fn slice() -> impl Strategy<Value = Edit> {
    (pick(&NAMESPACES), pick(&["web", "api"]), pick(&["s0", "s1"]), pick(&["", "http", "dns"]), 1..4u8, any::<(bool, bool)>()).prop_map(
        |(namespace, service, name, port, address, (ready, leaving))| {
            Edit::Apply(
                Kind::EndpointSlice,
                json!({
                    "metadata": {"namespace": namespace, "name": name, "labels": {"kubernetes.io/service-name": service}},
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": [format!("10.0.0.{address}")], "conditions": {"ready": ready, "serving": true, "terminating": leaving},
                        "nodeName": format!("n{address}")}],
                    "ports": [{"name": port, "port": 8080}],
                }),
            )
        },
    )
}

fn grant() -> impl Strategy<Value = Edit> {
    let from = pick(&[
        "HTTPRoute",
        "GRPCRoute",
        "TLSRoute",
        "TCPRoute",
        "UDPRoute",
        "Gateway",
        "Gateway",
        "ListenerSet",
        "ListenerSet",
    ]);
    let to = pick(&[
        ("Service", None),
        ("Service", Some("web")),
        ("Secret", None),
        ("ConfigMap", None),
    ]);
    (pick(&NAMESPACES), pick(&["g0", "g1"]), from, pick(&NAMESPACES), to).prop_map(
        |(namespace, name, kind, other, (to, target))| {
            let from = json!([{"group": "gateway.networking.k8s.io", "kind": kind, "namespace": other}]);
            let to = json!([{"group": "", "kind": to, "name": target}]);
            let spec = json!({"from": from, "to": to});
            Edit::Apply(
                Kind::ReferenceGrant,
                json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec}),
            )
        },
    )
}

fn namespace() -> impl Strategy<Value = Edit> {
    (pick(&NAMESPACES), pick(&["red", "blue"])).prop_map(|(name, team)| {
        Edit::Apply(
            Kind::Namespace,
            json!({"metadata": {"name": name, "labels": {"team": team}}}),
        )
    })
}

fn config() -> impl Strategy<Value = Edit> {
    let spec = pick(&[
        json!({}),
        json!({"host": {"addresses": ["127.0.0.1", "127.0.0.2"]}}),
        json!({"http": {"maxHeaderBytes": 4096}, "allowedOverrides": ["http"]}),
        json!({"dataPlane": "Envoy"}),
        json!({"entry": "LoadBalancer", "allowedOverrides": ["entry"]}),
        json!({"loadBalancer": {"serviceType": "ClusterIP", "annotations": {"example.com/note": "y"}}}),
        json!({"entry": "Host"}),
        json!({"loadBalancer": {"externalTrafficPolicy": "Local"}}),
    ]);
    (pick(&NAMESPACES), spec).prop_map(|(namespace, spec)| {
        Edit::Apply(
            Kind::GatewayConfig,
            json!({"metadata": {"namespace": namespace, "name": "config"}, "spec": spec}),
        )
    })
}

fn listener_fact() -> impl Strategy<Value = (Origin, i64, Option<ListenerState>)> {
    let owner = pick(&[
        (Kind::Gateway, "front"),
        (Kind::Gateway, "back"),
        (Kind::ListenerSet, "s0"),
        (Kind::ListenerSet, "s1"),
    ]);
    (pick(&NAMESPACES), owner, 0..3, 1..4i64, 0..6u16).prop_map(
        |(namespace, (kind, name), listener, generation, state)| {
            let origin = origin::listener(kind, &Key::new(namespace, name), &format!("l{listener}"));
            let address = "127.0.0.2:80".parse().unwrap();
            let state = match state {
                0 => None,
                1 => Some(ListenerState::Failed {
                    address,
                    failure: ListenFailure::InUse,
                }),
                2 => Some(ListenerState::Listening(vec!["0.0.0.0:80".parse().unwrap()])),
                3 => Some(ListenerState::Listening(vec![address])),
                number => {
                    let address: IpAddr = "0.0.0.0".parse().unwrap();
                    Some(ListenerState::Listening(vec![(address, 19_996 + number).into()]))
                }
            };
            (origin, generation, state)
        },
    )
}

fn fact() -> impl Strategy<Value = Edit> {
    listener_fact().prop_map(|(origin, generation, state)| {
        Edit::Observe(match state {
            None => Fact::Gone { origin },
            Some(state) => Fact::Listener {
                origin,
                generation,
                state,
            },
        })
    })
}

fn delete() -> impl Strategy<Value = Edit> {
    let names = pick(&[
        (Kind::GatewayClass, "one"),
        (Kind::GatewayClass, "two"),
        (Kind::Gateway, "front"),
        (Kind::Gateway, "back"),
        (Kind::HttpRoute, "r0"),
        (Kind::HttpRoute, "r1"),
        (Kind::HttpRoute, "r2"),
        (Kind::GrpcRoute, "r0"),
        (Kind::GrpcRoute, "r1"),
        (Kind::TlsRoute, "r0"),
        (Kind::TlsRoute, "r1"),
        (Kind::TcpRoute, "r0"),
        (Kind::TcpRoute, "r1"),
        (Kind::UdpRoute, "r0"),
        (Kind::UdpRoute, "r1"),
        (Kind::ListenerSet, "s0"),
        (Kind::ListenerSet, "s1"),
        (Kind::BackendTlsPolicy, "p0"),
        (Kind::BackendTlsPolicy, "p1"),
        (Kind::ConfigMap, "ca"),
        (Kind::BackendTrafficPolicy, "p0"),
        (Kind::BackendTrafficPolicy, "p1"),
        (Kind::Service, "web"),
        (Kind::Service, "api"),
        (Kind::Service, "gatewright-front"),
        (Kind::Service, "gatewright-back"),
        (Kind::EndpointSlice, "s0"),
        (Kind::EndpointSlice, "s1"),
        (Kind::Secret, "good"),
        (Kind::Secret, "bad"),
        (Kind::ReferenceGrant, "g0"),
        (Kind::ReferenceGrant, "g1"),
        (Kind::GatewayConfig, "config"),
        (Kind::Namespace, "a"),
        (Kind::Namespace, "b"),
    ]);
    (pick(&NAMESPACES), names).prop_map(|(namespace, (kind, name))| {
        let namespace = if kind.is_namespaced() {
            namespace.to_owned()
        } else {
            String::new()
        };
        Edit::Delete(ObjectName {
            kind,
            namespace,
            name: name.to_owned(),
        })
    })
}
