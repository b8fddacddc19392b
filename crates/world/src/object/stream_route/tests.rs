use gatewright_api::{Kind, Object};
use gatewright_ir::HostPattern;
use serde_json::{Value, json};

use super::*;
use crate::Key;

const KINDS: [(Kind, RouteKind); 3] = [
    (Kind::TlsRoute, RouteKind::Tls),
    (Kind::TcpRoute, RouteKind::Tcp),
    (Kind::UdpRoute, RouteKind::Udp),
];

fn reduce(kind: Kind, spec: &Value) -> Route {
    let metadata = json!({"namespace": "a", "name": "r", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z"});
    let mut value = json!({"metadata": metadata, "spec": spec});
    if kind == Kind::TlsRoute && spec.get("hostnames").is_none() {
        value["spec"]["hostnames"] = json!(["a.example.com"]);
    }
    let names = &mut Interner::default();
    match Object::from_value(kind, value).unwrap() {
        Object::TlsRoute(route) => Route::of_tls(&route, names),
        Object::TcpRoute(route) => Route::of_tcp(&route, names),
        Object::UdpRoute(route) => Route::of_udp(&route, names),
        other => panic!("{other:?} is no such route"),
    }
}

#[test]
fn a_route_of_connections_or_datagrams_has_one_match_per_rule_which_everything_meets() {
    let spec = json!({
        "parentRefs": [{"kind": "ListenerSet", "name": "s", "namespace": "b", "sectionName": "l", "port": 53}],
        "rules": [{"name": "one", "backendRefs": [
            {"name": "web", "port": 80, "weight": 7}, {"kind": "Y", "group": "x.com", "name": "z"},
        ]}],
    });
    for (kind, expected) in KINDS {
        let route = reduce(kind, &spec);
        assert_eq!(route.kind, expected);
        assert_eq!((route.meta.generation, route.meta.created), (3, 1_767_225_600));
        let parent = &route.parents[0];
        assert!(parent.is_listener_set() && !parent.is_gateway());
        assert_eq!(parent.key(&"a".into()), Key::new("b", "s"));
        assert_eq!((parent.section.as_deref(), parent.port), (Some("l"), Some(53)));
        let [rule] = &*route.rules else {
            panic!("{kind} has other rules")
        };
        assert_eq!(rule.name.as_deref(), Some("one"));
        assert_eq!(*rule.matches, [Match::everything()]);
        let backends = rule.backends.iter();
        let backends: Vec<_> = backends
            .map(|backend| (&*backend.service.kind, backend.service.port, backend.weight))
            .collect();
        assert_eq!(backends, [("Service", Some(80), 7), ("Y", None, 1)]);
        assert!(rule.refusals.is_empty() && route.refusals.is_empty());
        assert!(rule.filters.is_none() && rule.retry.is_none() && rule.session.is_none());
    }
}

#[test]
fn a_route_that_asks_for_default_gateways_says_so() {
    for (kind, _) in KINDS {
        let rules = json!([{"backendRefs": []}]);
        let with = |scope: Value| reduce(kind, &json!({"rules": rules, "useDefaultGateways": scope})).uses_defaults;
        assert!(with(json!("All")), "{kind}");
        assert!(!with(json!("None")) && !with(Value::Null), "{kind}");
    }
}

#[test]
fn only_a_tls_route_has_hostnames_and_those_that_are_wrong_are_refused() {
    let rules = json!([{"backendRefs": []}]);
    let route = |hostnames: Value| reduce(Kind::TlsRoute, &json!({"rules": rules, "hostnames": hostnames}));
    let good = route(json!(["a.example.com", "*.example.com"]));
    let expected = [
        HostPattern::Exact("a.example.com".into()),
        HostPattern::Wildcard("example.com".into()),
    ];
    assert_eq!(*good.hostnames, expected);
    assert!(!good.is_hostless && good.refusals.is_empty());
    let half = route(json!(["a.example.com", "bad_host"]));
    assert_eq!(
        (half.hostnames.len(), half.refusals.len(), half.is_hostless),
        (1, 1, false)
    );
    let none = route(json!(["bad_host"]));
    assert!(none.is_hostless, "it must not come to answer for every host");
    for kind in [Kind::TcpRoute, Kind::UdpRoute] {
        let route = reduce(kind, &json!({ "rules": rules }));
        assert!(route.hostnames.is_empty() && !route.is_hostless, "{kind}");
    }
}

#[test]
fn a_weight_and_a_namespace_are_kept_for_every_kind() {
    for (kind, _) in KINDS {
        let backend = json!({"name": "web", "namespace": "b", "port": 53, "weight": 0});
        let route = reduce(kind, &json!({"rules": [{"backendRefs": [backend]}]}));
        let services: Vec<_> = route.services().map(|service| service.key(&"a".into())).collect();
        assert_eq!(services, [Key::new("b", "web")], "{kind}");
        assert_eq!(route.rules[0].backends[0].weight, 0, "{kind}");
    }
}
