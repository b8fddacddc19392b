//! Routes of connections and datagrams: which one gets them, on which ports, and through which Services.

use gatewright_api::Kind;
use gatewright_world::desired::OwnedKind;
use serde_json::{Value, json};

use crate::stage::{Stage, listener, with};

const OPEN: [&str; 4] = [
    "Accepted True Accepted",
    "Conflicted False NoConflicts",
    "Programmed True Programmed",
    "ResolvedRefs True ResolvedRefs",
];
const ATTACHED: [&str; 2] = ["Accepted True Accepted", "ResolvedRefs True ResolvedRefs"];

/// TCP and UDP have the same port of a Service.
fn both() -> Value {
    json!([{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}])
}

fn route(parent: Value, service: &str) -> Value {
    json!({"spec": {"parentRefs": [parent], "rules": [{"backendRefs": [{"name": service, "port": 53}]}]}})
}

fn tls_route(hostname: &str, service: &str) -> Value {
    let mut made = route(json!({"name": "front"}), service);
    made["spec"]["hostnames"] = json!([hostname]);
    made
}

fn tls(name: &str, hostname: &str, mode: &str) -> Value {
    let mut tls = json!({ "mode": mode });
    if mode == "Terminate" {
        tls["certificateRefs"] = json!([{"name": "cert"}]);
    }
    with(listener(name, "TLS", 443), json!({"hostname": hostname, "tls": tls}))
}

#[test]
fn of_two_routes_on_a_listener_the_older_gets_everything_and_both_are_attached() {
    for (kind, protocol) in [(Kind::TcpRoute, "TCP"), (Kind::UdpRoute, "UDP")] {
        let mut stage = Stage::new();
        stage.gateway("a/front", json!([listener("l", protocol, 53)]), json!({}));
        stage.service("a/one", both());
        stage.service("a/two", both());
        stage.apply_at(2, kind, "a/a-young", route(json!({"name": "front"}), "one"));
        stage.apply_at(1, kind, "a/z-old", route(json!({"name": "front"}), "two"));
        stage.apply_at(1, kind, "a/y-old", route(json!({"name": "front"}), "two"));
        stage.listen();
        assert_eq!(stage.attached(Kind::Gateway, "a/front", "l"), 3);
        assert_eq!(stage.shown(Kind::Gateway, "a/front", "l"), OPEN);
        for name in ["a/a-young", "a/z-old", "a/y-old"] {
            assert_eq!(stage.shown(kind, name, "0"), ATTACHED, "{name}");
        }
        let entries = stage.entries("a/front", "Gateway/a/front/l");
        let suffix = protocol.to_lowercase();
        let expected: Vec<String> = [("y-old", "two"), ("z-old", "two"), ("a-young", "one")]
            .iter()
            .map(|(name, service)| format!("* {kind}/a/{name} a/{service}:53/{suffix}=1"))
            .collect();
        assert_eq!(entries, expected);
        stage.delete(kind, "a/y-old");
        assert!(stage.entries("a/front", "Gateway/a/front/l")[0].contains("z-old"));
    }
}

#[test]
fn a_tls_route_and_a_tcp_route_of_one_name_and_age_are_two_routes() {
    let mut stage = Stage::new();
    stage.secret("a/cert", "a.x.com", None);
    stage.gateway("a/front", json!([tls("l", "a.x.com", "Terminate")]), json!({}));
    stage.service("a/one", both());
    stage.service("a/two", both());
    stage.apply_at(1, Kind::TlsRoute, "a/r", tls_route("a.x.com", "one"));
    stage.apply_at(1, Kind::TcpRoute, "a/r", route(json!({"name": "front"}), "two"));
    let entries = |stage: &Stage| stage.entries("a/front", "Gateway/a/front/l");
    let (of_tls, of_tcp) = (
        "a.x.com TLSRoute/a/r a/one:53/tcp=1",
        "a.x.com TCPRoute/a/r a/two:53/tcp=1",
    );
    assert_eq!(entries(&stage), [of_tls, of_tcp]);
    assert_eq!(stage.attached(Kind::Gateway, "a/front", "l"), 2);
    stage.delete(Kind::TcpRoute, "a/r");
    assert_eq!(entries(&stage), [of_tls]);
    stage.apply_at(1, Kind::TcpRoute, "a/r", route(json!({"name": "front"}), "two"));
    stage.delete(Kind::TlsRoute, "a/r");
    assert_eq!(entries(&stage), [of_tcp]);
}

#[test]
fn routes_attach_by_name_and_port_of_listeners_or_to_all_that_fit() {
    for (kind, protocol) in [(Kind::TcpRoute, "TCP"), (Kind::UdpRoute, "UDP")] {
        let listeners = json!([
            listener("one", protocol, 5301),
            listener("two", protocol, 5302),
            listener("http", "HTTP", 80)
        ]);
        let table = [
            (json!({"name": "front"}), [1, 1, 0]),
            (json!({"name": "front", "port": 5302}), [0, 1, 0]),
            (json!({"name": "front", "sectionName": "one"}), [1, 0, 0]),
            (json!({"name": "front", "sectionName": "one", "port": 5301}), [1, 0, 0]),
        ];
        for (parent, expected) in table {
            let mut stage = Stage::new();
            stage.gateway("a/front", listeners.clone(), json!({}));
            stage.service("a/web", both());
            stage.apply_at(1, kind, "a/r", route(parent.clone(), "web"));
            let attached = ["one", "two", "http"].map(|name| stage.attached(Kind::Gateway, "a/front", name));
            assert_eq!(attached, expected, "{parent}");
            assert_eq!(stage.shown(kind, "a/r", "0"), ATTACHED, "{parent}");
        }
        let refused = [
            (json!({"name": "front", "sectionName": "http"}), "NotAllowedByListeners"),
            (json!({"name": "front", "port": 80}), "NotAllowedByListeners"),
            (json!({"name": "front", "sectionName": "three"}), "NoMatchingParent"),
            (
                json!({"name": "front", "sectionName": "one", "port": 5302}),
                "NoMatchingParent",
            ),
        ];
        for (parent, reason) in refused {
            let mut stage = Stage::new();
            stage.gateway("a/front", listeners.clone(), json!({}));
            stage.apply_at(1, kind, "a/r", route(parent.clone(), "web"));
            assert_eq!(
                stage.shown(kind, "a/r", "0")[0],
                format!("Accepted False {reason}"),
                "{parent}"
            );
        }
    }
}

#[test]
fn each_kind_of_route_fits_its_protocols_and_no_others() {
    let table = [
        ("TLS", json!({"mode": "Passthrough"}), vec!["TLSRoute"]),
        ("TLS", json!({"mode": "Terminate"}), vec!["TLSRoute", "TCPRoute"]),
        ("TCP", Value::Null, vec!["TCPRoute"]),
        ("UDP", Value::Null, vec!["UDPRoute"]),
        ("HTTP", Value::Null, vec!["HTTPRoute"]),
        ("HTTPS", Value::Null, vec!["HTTPRoute"]),
        ("SCTP", Value::Null, vec![]),
    ];
    for (protocol, mode, expected) in table {
        let mut stage = Stage::new();
        stage.gateway(
            "a/front",
            json!([with(listener("l", protocol, 443), json!({"tls": mode}))]),
            json!({}),
        );
        for kind in [Kind::HttpRoute, Kind::TlsRoute, Kind::TcpRoute, Kind::UdpRoute] {
            let mut made = route(json!({"name": "front"}), "web");
            if kind == Kind::TlsRoute {
                made["spec"]["hostnames"] = json!(["a.x.com"]);
            }
            stage.apply_at(1, kind, "a/r", made);
            let shown = stage.shown(kind, "a/r", "0")[0].clone();
            let wanted = if expected.contains(&kind.as_str()) {
                "Accepted True Accepted"
            } else {
                "Accepted False NotAllowedByListeners"
            };
            assert_eq!(shown, wanted, "{kind} on {protocol} {mode}");
        }
    }
}

#[test]
fn backends_that_do_not_hold_are_told_and_the_route_stays_attached() {
    for kind in [Kind::TlsRoute, Kind::TcpRoute, Kind::UdpRoute] {
        let mut stage = Stage::new();
        let listeners = json!([
            tls("tls", "a.x.com", "Passthrough"),
            listener("tcp", "TCP", 53),
            listener("udp", "UDP", 53)
        ]);
        stage.gateway("a/front", listeners, json!({}));
        let table = [
            (json!({"name": "none", "port": 53}), "BackendNotFound", "NotFound"),
            (
                json!({"name": "none", "namespace": "b", "port": 53}),
                "RefNotPermitted",
                "NotPermitted",
            ),
            (
                json!({"kind": "Odd", "group": "x.com", "name": "web"}),
                "InvalidKind",
                "InvalidKind",
            ),
        ];
        for (backend, reason, target) in table {
            let mut made = tls_route("a.x.com", "web");
            made["spec"]["rules"][0]["backendRefs"] = json!([backend]);
            if kind != Kind::TlsRoute {
                made["spec"].as_object_mut().unwrap().remove("hostnames");
            }
            stage.apply_at(1, kind, "a/r", made);
            let expected = [
                "Accepted True Accepted".to_owned(),
                format!("ResolvedRefs False {reason}"),
            ];
            assert_eq!(stage.shown(kind, "a/r", "0"), expected, "{kind}");
            let origin = format!(
                "Gateway/a/front/{}",
                kind.as_str().trim_end_matches("Route").to_lowercase()
            );
            assert!(
                stage.entries("a/front", &origin)[0].ends_with(&format!("{target}=1")),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_grant_that_is_revoked_takes_the_backend_away_at_once() {
    for (kind, protocol) in [(Kind::TcpRoute, "TCP"), (Kind::UdpRoute, "UDP")] {
        let mut stage = Stage::new();
        stage.gateway("a/front", json!([listener("l", protocol, 53)]), json!({}));
        stage.service("b/web", both());
        let from = json!([{"group": "gateway.networking.k8s.io", "kind": kind.as_str(), "namespace": "a"}]);
        stage.apply(
            Kind::ReferenceGrant,
            "b/g",
            json!({"from": from, "to": [{"group": "", "kind": "Service"}]}),
        );
        let mut made = route(json!({"name": "front"}), "web");
        made["spec"]["rules"][0]["backendRefs"][0]["namespace"] = json!("b");
        stage.apply_at(1, kind, "a/r", made);
        assert_eq!(stage.shown(kind, "a/r", "0"), ATTACHED);
        assert_eq!(stage.ir("a/front").clusters.len(), 1);
        stage.delete(Kind::ReferenceGrant, "b/g");
        assert_eq!(stage.shown(kind, "a/r", "0")[1], "ResolvedRefs False RefNotPermitted");
        assert!(stage.ir("a/front").clusters.is_empty());
    }
}

#[test]
fn on_a_port_with_both_modes_each_tls_route_goes_to_the_listener_of_its_hostname() {
    let mut stage = Stage::new();
    stage.secret("a/cert", "t.x.com", None);
    let listeners = json!([
        tls("end", "t.x.com", "Terminate"),
        tls("pass", "p.x.com", "Passthrough")
    ]);
    stage.gateway("a/front", listeners, json!({}));
    stage.service("a/web", both());
    stage.apply_at(1, Kind::TlsRoute, "a/t", tls_route("t.x.com", "web"));
    stage.apply_at(1, Kind::TlsRoute, "a/p", tls_route("p.x.com", "web"));
    stage.apply_at(1, Kind::TlsRoute, "a/q", tls_route("q.x.com", "web"));
    stage.listen();
    assert_eq!(
        stage.served("a/front"),
        ["Gateway/a/front/end 443 TLS", "Gateway/a/front/pass 443 passthrough"]
    );
    for name in ["end", "pass"] {
        assert_eq!(stage.shown(Kind::Gateway, "a/front", name), OPEN);
        assert_eq!(stage.attached(Kind::Gateway, "a/front", name), 1);
    }
    assert_eq!(
        stage.entries("a/front", "Gateway/a/front/end"),
        ["t.x.com TLSRoute/a/t a/web:53/tcp=1"]
    );
    assert_eq!(
        stage.entries("a/front", "Gateway/a/front/pass"),
        ["p.x.com TLSRoute/a/p a/web:53/tcp=1"]
    );
    assert_eq!(
        stage.shown(Kind::TlsRoute, "a/q", "0")[0],
        "Accepted False NoMatchingListenerHostname"
    );
}

#[test]
fn a_service_of_a_gateway_has_each_port_once_for_each_transport() {
    let mut stage = Stage::in_cluster();
    let listeners = json!([
        listener("tcp", "TCP", 53),
        listener("udp", "UDP", 53),
        listener("dns", "UDP", 5353)
    ]);
    stage.gateway("a/front", listeners, json!({}));
    let service = |stage: &Stage| -> Value {
        let mut owned = stage
            .planner
            .owned()
            .filter(|(name, _)| name.kind == OwnedKind::Service);
        owned.next().unwrap().1.to_value().unwrap()
    };
    // Numbers of one transport are no numbers of the other.
    let expected = json!([
        {"name": "tcp-53", "port": 53, "protocol": "TCP", "targetPort": 20000},
        {"name": "udp-53", "port": 53, "protocol": "UDP", "targetPort": 20000},
        {"name": "udp-5353", "port": 5353, "protocol": "UDP", "targetPort": 20001},
    ]);
    let made = service(&stage);
    assert_eq!(made["spec"]["ports"], expected);
    let owner = json!([{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "front", "uid": "1", "controller": true}]);
    let mut written = made;
    written["metadata"]["ownerReferences"] = owner;
    let object = gatewright_api::Object::from_value(Kind::Service, written).unwrap();
    stage.world.apply(&object);
    stage.plan();
    stage.listen();
    let slices = stage
        .planner
        .owned()
        .filter(|(name, _)| name.kind == OwnedKind::EndpointSlice);
    let slices: Vec<(String, Value)> = slices
        .map(|(name, owned)| (name.name.to_string(), owned.to_value().unwrap()["ports"][0].clone()))
        .collect();
    let expected = [
        (
            "gatewright-front-53-ipv4",
            json!({"name": "tcp-53", "port": 20000, "protocol": "TCP"}),
        ),
        (
            "gatewright-front-udp53-ipv4",
            json!({"name": "udp-53", "port": 20000, "protocol": "UDP"}),
        ),
        (
            "gatewright-front-udp5353-ipv4",
            json!({"name": "udp-5353", "port": 20001, "protocol": "UDP"}),
        ),
    ];
    let expected = expected.map(|(name, port)| (name.to_owned(), port));
    assert_eq!(slices, expected);
    // What was given once is read back, for each transport by itself.
    stage.gateway(
        "a/front",
        json!([listener("dns", "UDP", 5353), listener("tcp", "TCP", 53)]),
        json!({}),
    );
    let bound: Vec<String> = stage.served("a/front");
    assert_eq!(
        bound,
        ["Gateway/a/front/dns 20001 UDP", "Gateway/a/front/tcp 20000 TCP"]
    );
}

#[test]
fn two_gateways_share_a_number_on_one_host_if_one_has_it_for_tcp_and_one_for_udp() {
    let mut stage = Stage::new();
    stage.gateway("a/first", json!([listener("l", "TCP", 53)]), json!({}));
    stage.gateway("a/second", json!([listener("l", "UDP", 53)]), json!({}));
    stage.gateway("a/third", json!([listener("l", "UDP", 53)]), json!({}));
    stage.listen();
    for name in ["a/first", "a/second"] {
        assert_eq!(stage.shown(Kind::Gateway, name, "l"), OPEN, "{name}");
    }
    let third = stage.shown(Kind::Gateway, "a/third", "l");
    assert_eq!(third[0], "Accepted False PortUnavailable");
    assert_eq!(
        stage.told(Kind::Gateway, "a/third", "l", "Accepted"),
        "port 53/udp is taken by the older Gateway a/second; use another port or address"
    );
    assert!(stage.served("a/third").is_empty());
}
