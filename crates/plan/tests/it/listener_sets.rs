//! ListenerSets: who may add listeners to a Gateway, which of them count, and which routes reach them.

use gatewright_api::Kind;
use gatewright_world::desired::Status;
use serde_json::{Value, json};

use crate::stage::{Stage, listener, with};

const ACCEPTED: [&str; 2] = ["Accepted True Accepted", "Programmed True Programmed"];
const NOT_ALLOWED: [&str; 2] = ["Accepted False NotAllowed", "Programmed False NotAllowed"];
const NOT_VALID: [&str; 2] = ["Accepted False ListenersNotValid", "Programmed False ListenersNotValid"];
const OPEN: [&str; 4] = [
    "Accepted True Accepted",
    "Conflicted False NoConflicts",
    "Programmed True Programmed",
    "ResolvedRefs True ResolvedRefs",
];

fn conflicted(reason: &str) -> Vec<String> {
    vec![
        format!("Accepted False {reason}"),
        format!("Conflicted True {reason}"),
        format!("Programmed False {reason}"),
        "ResolvedRefs True ResolvedRefs".to_owned(),
    ]
}

fn allow(from: &str) -> Value {
    json!({"allowedListeners": {"namespaces": {"from": from}}})
}

/// A Gateway with one HTTP listener on port 80 that takes ListenerSets from everywhere.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.gateway("a/front", json!([listener("own", "HTTP", 80)]), allow("All"));
    stage
}

fn route(parent: Value) -> Value {
    json!({"parentRefs": [parent], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]})
}

#[test]
fn a_gateway_takes_listener_sets_only_from_the_namespaces_it_names() {
    // allowedListeners, whether sets of a, of b (red) and of c (blue) are taken
    let table = [
        (json!({}), [false, false, false]),
        (allow("None"), [false, false, false]),
        (allow("Same"), [true, false, false]),
        (allow("All"), [true, true, true]),
        (
            json!({"allowedListeners": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "red"}}}}}),
            [false, true, false],
        ),
    ];
    for (allowed, expected) in table {
        let mut stage = Stage::new();
        stage.gateway("a/front", json!([listener("own", "HTTP", 80)]), allowed.clone());
        for (namespace, team) in [("b", "red"), ("c", "blue")] {
            stage.apply_at(
                1,
                Kind::Namespace,
                &format!("/{namespace}"),
                json!({"labels": {"team": team}}),
            );
        }
        for (index, namespace) in ["a", "b", "c"].into_iter().enumerate() {
            let port = 81 + u16::try_from(index).unwrap();
            stage.set(
                1,
                &format!("{namespace}/set"),
                "a/front",
                json!([listener("l", "HTTP", port)]),
            );
        }
        stage.listen();
        for (namespace, is_taken) in ["a", "b", "c"].into_iter().zip(expected) {
            let shown = stage.shown(Kind::ListenerSet, &format!("{namespace}/set"), "");
            let wanted = if is_taken { ACCEPTED } else { NOT_ALLOWED };
            assert_eq!(shown, wanted, "{allowed} {namespace}");
        }
        let taken = expected.into_iter().filter(|is_taken| *is_taken).count();
        assert_eq!(stage.attached_sets("a/front") as usize, taken, "{allowed}");
        assert_eq!(stage.served("a/front").len(), 1 + taken, "{allowed}");
    }
}

#[test]
fn a_namespace_that_gets_or_loses_a_label_opens_or_closes_the_listeners_of_its_sets() {
    let mut stage = Stage::new();
    let selector = json!({"from": "Selector", "selector": {"matchLabels": {"team": "red"}}});
    let allowed = json!({"allowedListeners": {"namespaces": selector}});
    stage.gateway("a/front", json!([listener("own", "HTTP", 80)]), allowed);
    stage.set(1, "b/set", "a/front", json!([listener("l", "HTTP", 81)]));
    stage.service("b/web", json!([{"port": 80}]));
    stage.apply(
        Kind::HttpRoute,
        "b/r",
        route(json!({"kind": "ListenerSet", "name": "set"})),
    );
    assert_eq!(stage.shown(Kind::ListenerSet, "b/set", ""), NOT_ALLOWED);
    assert_eq!(
        stage.shown(Kind::HttpRoute, "b/r", "0")[0],
        "Accepted False NoMatchingParent"
    );
    stage.apply_at(1, Kind::Namespace, "/b", json!({"labels": {"team": "red"}}));
    stage.listen();
    assert_eq!(stage.shown(Kind::ListenerSet, "b/set", ""), ACCEPTED);
    assert_eq!(stage.shown(Kind::HttpRoute, "b/r", "0")[0], "Accepted True Accepted");
    assert_eq!(stage.attached(Kind::ListenerSet, "b/set", "l"), 1);
    stage.apply_at(1, Kind::Namespace, "/b", json!({"labels": {"team": "blue"}}));
    assert_eq!(stage.shown(Kind::ListenerSet, "b/set", ""), NOT_ALLOWED);
    assert_eq!(stage.served("a/front"), ["Gateway/a/front/own 80 HTTP"]);
    assert!(
        stage.ir("a/front").clusters.is_empty(),
        "nobody sends to the Service now"
    );
}

#[test]
fn listeners_of_sets_lose_against_the_gateway_and_against_older_sets_then_by_name() {
    let mut stage = stage();
    let same = |protocol: &str, port: u16, host: &str| with(listener("l", protocol, port), json!({"hostname": host}));
    stage.set(1, "a/against", "a/front", json!([listener("l", "HTTP", 80)]));
    stage.set(
        3,
        "a/young",
        "a/front",
        json!([same("HTTP", 81, "x.com"), listener("free", "HTTP", 82)]),
    );
    stage.set(2, "b/old", "a/front", json!([same("HTTP", 81, "x.com")]));
    stage.set(2, "b/older", "a/front", json!([same("HTTP", 81, "x.com")]));
    stage.listen();
    assert_eq!(stage.shown(Kind::Gateway, "a/front", "own"), OPEN);
    assert_eq!(
        stage.shown(Kind::ListenerSet, "b/old", "l"),
        OPEN,
        "of one age, by name"
    );
    for loser in ["a/against", "a/young", "b/older"] {
        let shown = stage.shown(Kind::ListenerSet, loser, "l");
        assert_eq!(shown, conflicted("HostnameConflict"), "{loser}");
    }
    assert_eq!(stage.shown(Kind::ListenerSet, "b/old", ""), ACCEPTED);
    for none_valid in ["a/against", "b/older"] {
        assert_eq!(stage.shown(Kind::ListenerSet, none_valid, ""), NOT_VALID);
    }
    let partly = ["Accepted True ListenersNotValid", "Programmed True Programmed"];
    assert_eq!(stage.shown(Kind::ListenerSet, "a/young", ""), partly);
    assert_eq!(stage.attached_sets("a/front"), 2, "sets count, not listeners");
    // The winner goes, the next one takes its place.
    stage.delete(Kind::ListenerSet, "b/old");
    stage.listen();
    assert_eq!(stage.shown(Kind::ListenerSet, "b/older", "l"), OPEN);
    assert_eq!(stage.status(Kind::ListenerSet, "b/old"), None);
}

#[test]
fn a_set_does_not_get_what_two_listeners_of_the_gateway_quarrel_about() {
    let mut stage = Stage::new();
    let own = json!([listener("one", "HTTP", 80), listener("two", "HTTP", 80)]);
    stage.gateway("a/front", own, allow("All"));
    stage.set(1, "b/set", "a/front", json!([listener("l", "HTTP", 80)]));
    stage.listen();
    for own in ["one", "two"] {
        assert_eq!(
            stage.shown(Kind::Gateway, "a/front", own),
            conflicted("HostnameConflict")
        );
    }
    assert_eq!(
        stage.shown(Kind::ListenerSet, "b/set", "l"),
        conflicted("HostnameConflict")
    );
    assert!(stage.served("a/front").is_empty());
}

#[test]
fn protocols_that_cannot_share_a_port_clash_and_those_that_can_are_told_apart() {
    // first, second, what the second one shows
    let host = |protocol: &str, host: &str| with(listener("l", protocol, 81), json!({"hostname": host}));
    let passthrough = |name: &str| with(host("TLS", name), json!({"tls": {"mode": "Passthrough"}}));
    let table = [
        (
            listener("l", "TCP", 81),
            listener("l", "HTTP", 81),
            Some("ProtocolConflict"),
        ),
        (
            listener("l", "TCP", 81),
            listener("l", "TCP", 81),
            Some("ProtocolConflict"),
        ),
        (
            listener("l", "UDP", 81),
            listener("l", "UDP", 81),
            Some("ProtocolConflict"),
        ),
        (listener("l", "TCP", 81), listener("l", "UDP", 81), None),
        (listener("l", "HTTP", 81), listener("l", "UDP", 81), None),
        (host("HTTP", "a.com"), passthrough("b.com"), Some("ProtocolConflict")),
        (passthrough("a.com"), passthrough("b.com"), None),
        (passthrough("*.a.com"), passthrough("b.a.com"), None),
        (passthrough("a.com"), passthrough("a.com"), Some("HostnameConflict")),
        (listener("l", "TCP", 81), passthrough("a.com"), Some("ProtocolConflict")),
        (listener("l", "SCTP", 81), listener("l", "HTTP", 81), None),
    ];
    for (first, second, expected) in table {
        let mut stage = stage();
        stage.set(1, "a/first", "a/front", json!([first]));
        stage.set(2, "a/second", "a/front", json!([second]));
        stage.listen();
        let shown = stage.shown(Kind::ListenerSet, "a/second", "l");
        match expected {
            Some(reason) => assert_eq!(shown, conflicted(reason), "{first} {second}"),
            None => assert_eq!(shown, OPEN, "{first} {second}"),
        }
        // In one Gateway neither wins.
        let mut stage = Stage::new();
        let renamed = with(second.clone(), json!({"name": "m"}));
        stage.gateway("a/front", json!([first, renamed]), json!({}));
        let is_conflict = |name: &str| stage.shown(Kind::Gateway, "a/front", name)[1].starts_with("Conflicted True");
        assert_eq!(is_conflict("l"), expected.is_some(), "{first} {second}");
        assert_eq!(is_conflict("m"), expected.is_some(), "{first} {second}");
    }
}

#[test]
fn a_certificate_needs_a_grant_for_the_set_and_that_of_the_gateway_does_not_serve_it() {
    let mut stage = stage();
    let secure = with(
        listener("l", "HTTPS", 443),
        json!({"tls": {"certificateRefs": [{"name": "s", "namespace": "certs"}]}}),
    );
    stage.set(1, "b/set", "a/front", json!([secure]));
    stage.secret("certs/s", "x.com", None);
    let grant = |kind: &str, namespace: &str| {
        let from = json!([{"group": "gateway.networking.k8s.io", "kind": kind, "namespace": namespace}]);
        json!({"from": from, "to": [{"group": "", "kind": "Secret"}]})
    };
    for (kind, namespace) in [("Gateway", "a"), ("Gateway", "b"), ("ListenerSet", "a")] {
        stage.apply(Kind::ReferenceGrant, "certs/g", grant(kind, namespace));
        let shown = stage.shown(Kind::ListenerSet, "b/set", "l");
        assert_eq!(shown[3], "ResolvedRefs False RefNotPermitted", "{kind} {namespace}");
        assert_eq!(stage.shown(Kind::ListenerSet, "b/set", ""), NOT_VALID);
    }
    stage.apply(Kind::ReferenceGrant, "certs/g", grant("ListenerSet", "b"));
    stage.listen();
    assert_eq!(stage.shown(Kind::ListenerSet, "b/set", "l"), OPEN);
    assert_eq!(stage.shown(Kind::ListenerSet, "b/set", ""), ACCEPTED);
    stage.delete(Kind::ReferenceGrant, "certs/g");
    assert_eq!(stage.shown(Kind::ListenerSet, "b/set", ""), NOT_VALID);
    assert_eq!(stage.served("a/front"), ["Gateway/a/front/own 80 HTTP"]);
}

#[test]
fn a_route_reaches_the_listeners_of_the_parent_it_names_and_no_others() {
    let mut stage = stage();
    stage.set(
        1,
        "b/set",
        "a/front",
        json!([listener("l", "HTTP", 81), listener("m", "HTTP", 82)]),
    );
    stage.service("a/web", json!([{"port": 80}]));
    stage.service("b/web", json!([{"port": 80}]));
    let set = json!({"kind": "ListenerSet", "namespace": "b", "name": "set"});
    stage.apply(Kind::HttpRoute, "a/gateway", route(json!({"name": "front"})));
    stage.apply(Kind::HttpRoute, "b/set", route(set.clone()));
    stage.apply(
        Kind::HttpRoute,
        "b/section",
        route(with(set.clone(), json!({"sectionName": "m"}))),
    );
    stage.apply(Kind::HttpRoute, "b/port", route(with(set.clone(), json!({"port": 81}))));
    stage.apply(
        Kind::HttpRoute,
        "a/guess",
        route(json!({"name": "front", "sectionName": "l"})),
    );
    stage.apply(
        Kind::HttpRoute,
        "b/wrong",
        route(with(set.clone(), json!({"sectionName": "own"}))),
    );
    stage.apply(Kind::HttpRoute, "a/foreign", route(set));
    let attached = |stage: &Stage| {
        let set = |name| stage.attached(Kind::ListenerSet, "b/set", name);
        (stage.attached(Kind::Gateway, "a/front", "own"), set("l"), set("m"))
    };
    assert_eq!(attached(&stage), (1, 2, 2));
    let first = |name: &str| stage.shown(Kind::HttpRoute, name, "0")[0].clone();
    for name in ["a/gateway", "b/set", "b/section", "b/port"] {
        assert_eq!(first(name), "Accepted True Accepted", "{name}");
    }
    assert_eq!(
        first("a/guess"),
        "Accepted False NoMatchingParent",
        "a set's listener is not the Gateway's"
    );
    assert_eq!(first("b/wrong"), "Accepted False NoMatchingParent");
    assert_eq!(
        first("a/foreign"),
        "Accepted False NotAllowedByListeners",
        "`Same` means the namespace of the set"
    );
}

#[test]
fn a_route_with_two_parents_is_judged_for_each_of_them_apart() {
    let mut stage = stage();
    stage.set(1, "a/set", "a/front", json!([listener("l", "HTTP", 81)]));
    stage.service("a/web", json!([{"port": 80}]));
    let parents =
        json!([{"name": "front", "sectionName": "l"}, {"kind": "ListenerSet", "name": "set", "sectionName": "l"}]);
    let spec = json!({"parentRefs": parents, "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]});
    stage.apply(Kind::HttpRoute, "a/r", spec);
    assert_eq!(
        stage.shown(Kind::HttpRoute, "a/r", "0")[0],
        "Accepted False NoMatchingParent"
    );
    assert_eq!(stage.shown(Kind::HttpRoute, "a/r", "1")[0], "Accepted True Accepted");
    assert_eq!(
        stage.entries("a/front", "ListenerSet/a/set/l"),
        ["* HTTPRoute/a/r a/web:80=1"]
    );
    assert!(stage.entries("a/front", "Gateway/a/front/own").is_empty());
}

#[test]
fn a_set_that_moves_takes_its_routes_along_and_one_that_goes_leaves_them_dangling() {
    let mut stage = stage();
    stage.gateway("b/back", json!([listener("own", "HTTP", 90)]), allow("All"));
    stage.set(1, "a/set", "a/front", json!([listener("l", "HTTP", 81)]));
    stage.service("a/web", json!([{"port": 80}]));
    stage.apply(
        Kind::HttpRoute,
        "a/r",
        route(json!({"kind": "ListenerSet", "name": "set"})),
    );
    stage.listen();
    let serves = |stage: &Stage, gateway: &str| {
        stage
            .served(gateway)
            .contains(&"ListenerSet/a/set/l 81 HTTP".to_owned())
    };
    assert!(serves(&stage, "a/front") && !serves(&stage, "b/back"));
    stage.set(1, "a/set", "b/back", json!([listener("l", "HTTP", 81)]));
    stage.listen();
    assert!(!serves(&stage, "a/front") && serves(&stage, "b/back"));
    assert!(stage.ir("a/front").clusters.is_empty());
    assert_eq!(stage.entries("b/back", "ListenerSet/a/set/l").len(), 1);
    assert_eq!((stage.attached_sets("a/front"), stage.attached_sets("b/back")), (0, 1));
    stage.set(1, "a/set", "a/gone", json!([listener("l", "HTTP", 81)]));
    assert_eq!(
        stage.status(Kind::ListenerSet, "a/set"),
        None,
        "nobody knows whose it is"
    );
    assert_eq!(stage.status(Kind::HttpRoute, "a/r"), None);
    stage.set(1, "a/set", "b/back", json!([listener("l", "HTTP", 81)]));
    assert!(serves(&stage, "b/back"));
    stage.delete(Kind::ListenerSet, "a/set");
    let Some(Status::Route(shown)) = stage.status(Kind::HttpRoute, "a/r") else {
        panic!("the route shows nothing")
    };
    assert_eq!((shown.parents.len(), shown.dangling.len()), (0, 1));
    assert!(stage.ir("b/back").clusters.is_empty());
    assert_eq!(stage.attached_sets("b/back"), 0);
}

#[test]
fn sets_that_change_places_in_the_order_keep_their_own_routes() {
    let mut stage = stage();
    for (day, name) in [(1, "one"), (2, "two")] {
        stage.set(day, &format!("a/{name}"), "a/front", json!([listener("l", "HTTP", 81)]));
    }
    stage.service("a/web", json!([{"port": 80}]));
    stage.apply(
        Kind::HttpRoute,
        "a/r",
        route(json!({"kind": "ListenerSet", "name": "two"})),
    );
    assert!(stage.entries("a/front", "ListenerSet/a/one/l").is_empty());
    stage.set(3, "a/one", "a/front", json!([listener("l", "HTTP", 81)]));
    assert_eq!(
        stage.entries("a/front", "ListenerSet/a/two/l"),
        ["* HTTPRoute/a/r a/web:80=1"],
        "it is the older one now"
    );
    assert_eq!(stage.attached(Kind::ListenerSet, "a/one", "l"), 0);
}

#[test]
fn a_set_of_a_gateway_that_is_not_accepted_says_so() {
    let mut stage = Stage::new();
    let odd = json!({"addresses": [{"type": "Hostname", "value": "x"}]});
    stage.gateway("a/front", json!([listener("own", "HTTP", 80)]), with(allow("All"), odd));
    stage.set(1, "a/set", "a/front", json!([listener("l", "HTTP", 81)]));
    let shown = stage.shown(Kind::ListenerSet, "a/set", "");
    assert_eq!(
        shown,
        ["Accepted False ParentNotAccepted", "Programmed False ParentNotAccepted"]
    );
    assert_eq!(stage.attached_sets("a/front"), 0);
}

#[test]
fn a_set_is_programmed_when_its_own_listeners_are_open() {
    let mut stage = stage();
    stage.listen();
    stage.set(1, "a/set", "a/front", json!([listener("l", "HTTP", 81)]));
    let pending = ["Accepted True Accepted", "Programmed False Pending"];
    assert_eq!(stage.shown(Kind::ListenerSet, "a/set", ""), pending);
    let gateway = stage.shown(Kind::Gateway, "a/front", "");
    assert_eq!(gateway[1], "Programmed True Programmed", "its own listener is open");
    stage.listen();
    assert_eq!(stage.shown(Kind::ListenerSet, "a/set", ""), ACCEPTED);
}

#[test]
fn kinds_that_do_not_fit_are_refused_on_listeners_of_sets_too() {
    let mut stage = stage();
    let odd = with(
        listener("l", "TLS", 443),
        json!({"tls": {"mode": "Passthrough"}, "allowedRoutes": {"kinds": [{"kind": "HTTPRoute"}]}}),
    );
    stage.set(1, "a/set", "a/front", json!([odd]));
    assert_eq!(
        stage.shown(Kind::ListenerSet, "a/set", "l")[3],
        "ResolvedRefs False InvalidRouteKinds"
    );
}
