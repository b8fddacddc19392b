//! Every reference into another namespace, with every grant that does not fit it and the one that does.
//!
//! The rows are all fields of all kinds through which an object can refer to another; the columns are grants. What a Gateway
//! may not use must be nowhere in what data planes are told, and whoever refers must show it. Policies for backends are not
//! among the rows: they can name only objects of their own namespace.

use gatewright_api::{Kind, Object, ObjectName};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::{World, desired::Reason};
use serde_json::{Value, json};

/// A field that refers to something.
struct Field {
    /// Whose it is.
    from: Kind,
    /// What it refers to.
    to: Kind,
    /// Where it stands; only for people.
    place: &'static str,
    /// The object with the reference in it.
    object: fn(Value) -> Value,
}

/// Who refers is in namespace `a`, what is referred to is `b/target`.
fn fields() -> Vec<Field> {
    let mut fields = Vec::new();
    let mut add = |from, to, place, object| {
        fields.push(Field {
            from,
            to,
            place,
            object,
        });
    };
    add_routes(&mut add);
    add_gateways(&mut add);
    fields
}

type Add<'a> = &'a mut dyn FnMut(Kind, Kind, &'static str, fn(Value) -> Value);

fn add_routes(add: Add<'_>) {
    let service = Kind::Service;
    let http = Kind::HttpRoute;
    add(http, service, "backendRefs[0]", |to| {
        route("HTTPRoute", "http", json!({"backendRefs": [to]}))
    });
    add(http, service, "backendRefs[1]", |to| {
        route("HTTPRoute", "http", json!({"backendRefs": [own(), to]}))
    });
    add(http, service, "backendRefs[2] of weight 0", |mut to| {
        to["weight"] = json!(0);
        route("HTTPRoute", "http", json!({"backendRefs": [own(), own(), to]}))
    });
    add(http, service, "a mirror", |to| {
        let mirror = json!({"type": "RequestMirror", "requestMirror": {"backendRef": to}});
        route(
            "HTTPRoute",
            "http",
            json!({"filters": [mirror], "backendRefs": [own()]}),
        )
    });
    add(http, service, "a second mirror", |to| {
        let mirror = |to: Value| json!({"type": "RequestMirror", "requestMirror": {"backendRef": to}});
        route(
            "HTTPRoute",
            "http",
            json!({"filters": [mirror(own()), mirror(to)], "backendRefs": [own()]}),
        )
    });
    add(http, service, "a mirror of one backend", |to| {
        let mut backend = own();
        backend["filters"] = json!([{"type": "RequestMirror", "requestMirror": {"backendRef": to}}]);
        route("HTTPRoute", "http", json!({"backendRefs": [backend]}))
    });
    add(http, service, "an authoriser", |to| {
        let auth = json!({"type": "ExternalAuth", "externalAuth": {"protocol": "HTTP", "backendRef": to}});
        route("HTTPRoute", "http", json!({"filters": [auth], "backendRefs": [own()]}))
    });
    add(Kind::GrpcRoute, service, "backendRefs[0]", |to| {
        route("GRPCRoute", "http", json!({"backendRefs": [to]}))
    });
    add(Kind::GrpcRoute, service, "backendRefs[1]", |to| {
        route("GRPCRoute", "http", json!({"backendRefs": [own(), to]}))
    });
    add(Kind::GrpcRoute, service, "a mirror", |to| {
        let mirror = json!({"type": "RequestMirror", "requestMirror": {"backendRef": to}});
        route(
            "GRPCRoute",
            "http",
            json!({"filters": [mirror], "backendRefs": [own()]}),
        )
    });
    add(Kind::TlsRoute, service, "backendRefs[0]", |to| {
        route("TLSRoute", "passed", json!({"backendRefs": [to]}))
    });
    add(Kind::TlsRoute, service, "backendRefs[1]", |to| {
        route("TLSRoute", "passed", json!({"backendRefs": [own(), to]}))
    });
    add(Kind::TcpRoute, service, "backendRefs[0]", |to| {
        route("TCPRoute", "line", json!({"backendRefs": [to]}))
    });
    add(Kind::TcpRoute, service, "backendRefs[1]", |to| {
        route("TCPRoute", "line", json!({"backendRefs": [own(), to]}))
    });
    add(Kind::UdpRoute, service, "backendRefs[0]", |to| {
        route("UDPRoute", "datagrams", json!({"backendRefs": [to]}))
    });
    add(Kind::UdpRoute, service, "backendRefs[1]", |to| {
        route("UDPRoute", "datagrams", json!({"backendRefs": [own(), to]}))
    });
}

fn add_gateways(add: Add<'_>) {
    let (secret, map) = (Kind::Secret, Kind::ConfigMap);
    let gateway = Kind::Gateway;
    add(gateway, secret, "certificateRefs[0]", |to| {
        self::gateway(json!([tls_listener("HTTPS", json!([to]))]), json!({}))
    });
    add(gateway, secret, "certificateRefs[1]", |to| {
        self::gateway(json!([tls_listener("HTTPS", json!([{"name": "own"}, to]))]), json!({}))
    });
    add(gateway, secret, "certificateRefs of a TLS listener", |to| {
        self::gateway(json!([tls_listener("TLS", json!([to]))]), json!({}))
    });
    add(gateway, secret, "tls.backend.clientCertificateRef", |to| {
        self::gateway(own_listeners(), json!({"backend": {"clientCertificateRef": to}}))
    });
    add(gateway, map, "tls.frontend.default", |to| {
        let frontend = json!({"default": {"validation": {"caCertificateRefs": [to]}}});
        self::gateway(
            json!([tls_listener("HTTPS", json!([{"name": "own"}]))]),
            json!({ "frontend": frontend }),
        )
    });
    add(gateway, map, "tls.frontend.default, beside one of its own", |to| {
        let own = json!({"group": "", "kind": "ConfigMap", "name": "own"});
        let frontend = json!({"default": {"validation": {"caCertificateRefs": [own, to]}}});
        self::gateway(
            json!([tls_listener("HTTPS", json!([{"name": "own"}]))]),
            json!({ "frontend": frontend }),
        )
    });
    add(gateway, map, "tls.frontend.perPort", |to| {
        let port = json!({"port": 443, "tls": {"validation": {"caCertificateRefs": [to]}}});
        let frontend = json!({"default": {}, "perPort": [port]});
        self::gateway(
            json!([tls_listener("HTTPS", json!([{"name": "own"}]))]),
            json!({ "frontend": frontend }),
        )
    });
    add(Kind::ListenerSet, secret, "certificateRefs[0]", |to| set(json!([to])));
    add(Kind::ListenerSet, secret, "certificateRefs[1]", |to| {
        set(json!([{"name": "own"}, to]))
    });
}

fn own() -> Value {
    json!({"name": "own", "port": 80})
}

fn route(kind: &str, section: &str, rule: Value) -> Value {
    let mut spec = json!({"parentRefs": [{"name": "g", "sectionName": section}], "rules": [rule]});
    if kind == "TLSRoute" {
        spec["hostnames"] = json!(["x.example.com"]);
    }
    json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": {"namespace": "a", "name": "r"}, "spec": spec})
}

fn tls_listener(protocol: &str, certificates: Value) -> Value {
    json!({"name": "tls", "protocol": protocol, "port": 443, "tls": {"certificateRefs": certificates}})
}

fn own_listeners() -> Value {
    json!([
        {"name": "http", "protocol": "HTTP", "port": 80},
        {"name": "passed", "protocol": "TLS", "port": 8443, "tls": {"mode": "Passthrough"}},
        {"name": "line", "protocol": "TCP", "port": 9000},
        {"name": "datagrams", "protocol": "UDP", "port": 9000},
    ])
}

fn gateway(listeners: Value, tls: Value) -> Value {
    let spec = json!({
        "gatewayClassName": "c", "listeners": listeners, "tls": tls,
        "allowedListeners": {"namespaces": {"from": "Same"}},
    });
    json!({"metadata": {"namespace": "a", "name": "g"}, "spec": spec})
}

fn set(certificates: Value) -> Value {
    json!({"metadata": {"namespace": "a", "name": "s"}, "spec": {
        "parentRef": {"name": "g"}, "listeners": [tls_listener("HTTPS", certificates)],
    }})
}

/// A grant in a namespace.
fn grant(namespace: &str, from: (Kind, &str), to: (Kind, Option<&str>)) -> Value {
    let mut target = json!({"group": to.0.group(), "kind": to.0.as_str()});
    if let Some(name) = to.1 {
        target["name"] = json!(name);
    }
    json!({"metadata": {"namespace": namespace, "name": "grant"}, "spec": {
        "from": [{"group": from.0.group(), "kind": from.0.as_str(), "namespace": from.1}], "to": [target],
    }})
}

/// The grants that do not fit a field, by what is wrong with them.
fn unfit(field: &Field) -> Vec<(&'static str, Option<Value>)> {
    let Field { from, to, .. } = field;
    let other_from = if *from == Kind::HttpRoute {
        Kind::GrpcRoute
    } else {
        Kind::HttpRoute
    };
    let other_to = if *to == Kind::Secret {
        Kind::ConfigMap
    } else {
        Kind::Secret
    };
    vec![
        ("no grant", None),
        (
            "a grant for another namespace",
            Some(grant("b", (*from, "x"), (*to, None))),
        ),
        (
            "a grant for another kind that refers",
            Some(grant("b", (other_from, "a"), (*to, None))),
        ),
        (
            "a grant to another kind",
            Some(grant("b", (*from, "a"), (other_to, None))),
        ),
        (
            "a grant to another name",
            Some(grant("b", (*from, "a"), (*to, Some("other")))),
        ),
        (
            "a grant in the namespace of who refers",
            Some(grant("a", (*from, "a"), (*to, None))),
        ),
        (
            "a grant in a third namespace",
            Some(grant("x", (*from, "a"), (*to, None))),
        ),
    ]
}

/// A world in which everything is there but grants, planned as changes come.
struct Bed {
    world: World,
    planner: Planner,
}

impl Bed {
    fn new(field: &Field) -> Self {
        let mut bed = Self {
            world: World::default(),
            planner: Planner::new(PlanSettings::default()),
        };
        let class = json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}});
        bed.apply(Kind::GatewayClass, class);
        if field.from != Kind::Gateway {
            bed.apply(Kind::Gateway, gateway(own_listeners(), json!({})));
        }
        let made = rcgen::generate_simple_self_signed(vec!["x.example.com".to_owned()]).unwrap();
        for (namespace, name) in [("a", "own"), ("b", "target"), ("b", "other")] {
            let metadata = json!({"namespace": namespace, "name": name});
            let ports = json!([{"name": "t", "port": 80}, {"name": "u", "port": 80, "protocol": "UDP"}]);
            bed.apply(Kind::Service, json!({"metadata": metadata, "spec": {"ports": ports}}));
            let data = json!({"tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem()});
            bed.apply(Kind::Secret, json!({"metadata": metadata, "stringData": data}));
            bed.apply(
                Kind::ConfigMap,
                json!({"metadata": metadata, "data": {"ca.crt": made.cert.pem()}}),
            );
        }
        let mut to = json!({"namespace": "b", "name": "target", "port": 80});
        if field.to != Kind::Service {
            to = json!({"group": "", "kind": field.to.as_str(), "namespace": "b", "name": "target"});
        }
        bed.apply(field.from, (field.object)(to));
        bed
    }

    fn apply(&mut self, kind: Kind, value: Value) {
        self.world.apply(&Object::from_value(kind, value).unwrap());
        self.plan();
    }

    fn revoke(&mut self, namespace: &str) {
        self.world.delete(&ObjectName {
            kind: Kind::ReferenceGrant,
            namespace: namespace.to_owned(),
            name: "grant".to_owned(),
        });
        self.plan();
    }

    fn plan(&mut self) {
        let changes = self.world.take_changes();
        self.planner.update(&self.world, &changes);
    }

    /// Whether a data plane is told anything of what is referred to.
    fn is_used(&self) -> bool {
        let gateways = self.planner.gateways().values();
        let told: Vec<String> = gateways
            .map(|gateway| serde_json::to_string(gateway).unwrap())
            .collect();
        assert!(!told.is_empty(), "the Gateway is not served at all");
        told.iter().any(|told| told.contains("b/target"))
    }

    /// Whether somebody shows that a reference is not permitted.
    fn is_told(&self) -> bool {
        let statuses = self.planner.statuses();
        let mut conditions = statuses.iter().flat_map(|(_, status)| status.conditions());
        conditions.any(|(_, condition)| condition.reason == Reason::RefNotPermitted)
    }
}

#[test]
fn what_no_grant_allows_reaches_no_data_plane_and_what_one_allows_does_until_it_is_revoked() {
    let mut cells = 0;
    for field in fields() {
        let shown = format!("{} of {} to {}", field.place, field.from, field.to);
        for (what, value) in unfit(&field) {
            let mut bed = Bed::new(&field);
            if let Some(value) = value {
                bed.apply(Kind::ReferenceGrant, value);
            }
            assert!(!bed.is_used(), "{shown}, with {what}: it is used");
            assert!(bed.is_told(), "{shown}, with {what}: nobody is told");
            cells += 1;
        }
        for name in [None, Some("target")] {
            let mut bed = Bed::new(&field);
            bed.apply(Kind::ReferenceGrant, grant("b", (field.from, "a"), (field.to, name)));
            assert!(bed.is_used(), "{shown}, with the right grant: it is not used");
            assert!(
                !bed.is_told(),
                "{shown}, with the right grant: it is called not permitted"
            );
            bed.revoke("b");
            assert!(!bed.is_used(), "{shown}, after revocation: it is used");
            assert!(bed.is_told(), "{shown}, after revocation: nobody is told");
            // Another grant that is edited into one that does not fit is a revocation as well.
            bed.apply(Kind::ReferenceGrant, grant("b", (field.from, "a"), (field.to, name)));
            assert!(bed.is_used(), "{shown}, granted again: it is not used");
            bed.apply(Kind::ReferenceGrant, grant("b", (field.from, "x"), (field.to, name)));
            assert!(!bed.is_used(), "{shown}, after the grant was edited: it is used");
            cells += 4;
        }
    }
    println!("{cells} cells of the matrix of references");
    assert!(cells > 300, "only {cells} cells");
}

#[test]
fn a_grant_does_not_make_a_kind_fit_that_cannot_stand_there() {
    for field in fields() {
        let wrong = if field.to == Kind::Secret {
            Kind::ConfigMap
        } else {
            Kind::Secret
        };
        let mut bed = Bed::new(&field);
        bed.apply(Kind::ReferenceGrant, grant("b", (field.from, "a"), (wrong, None)));
        bed.apply(
            field.from,
            (field.object)(
                json!({"group": "", "kind": wrong.as_str(), "namespace": "b", "name": "target", "port": 80}),
            ),
        );
        assert!(!bed.is_used(), "{} of {}: a {wrong} is used", field.place, field.from);
    }
}
