use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use super::*;
use crate::object::RefusalCause;

fn reduce(spec: &Value) -> HttpRoute {
    let value = json!({"metadata": {"namespace": "a", "name": "r"}, "spec": spec});
    match Object::from_value(Kind::HttpRoute, value).unwrap() {
        Object::HttpRoute(route) => HttpRoute::reduce(&route, &mut Interner::default()),
        other => panic!("{other:?} is no HTTPRoute"),
    }
}

fn rule(rule: &Value) -> RouteRule {
    reduce(&json!({ "rules": [rule] })).rules[0].clone()
}

/// The fields of what is refused, with their causes.
fn refused(refusals: &[Refusal]) -> Vec<(&str, RefusalCause)> {
    refusals
        .iter()
        .map(|refusal| (&*refusal.field, refusal.cause))
        .collect()
}

#[test]
fn a_parent_that_says_little_is_a_gateway_in_the_route_s_namespace() {
    let route = reduce(&json!({"parentRefs": [
        {"name": "gw"},
        {"name": "gw", "namespace": "b", "sectionName": "http", "port": 80},
        {"name": "web", "group": "", "kind": "Service"},
    ]}));
    let [plain, full, service] = &*route.parents else {
        panic!("three parents")
    };
    assert!(plain.is_gateway() && full.is_gateway() && !service.is_gateway());
    assert_eq!((&plain.namespace, &plain.section, plain.port), (&None, &None, None));
    assert_eq!(
        (full.namespace.as_deref(), full.section.as_deref(), full.port),
        (Some("b"), Some("http"), Some(80))
    );
}

#[test]
fn hostnames_that_are_refused_never_make_a_route_for_all_hosts() {
    // hostnames, hosts that are left, whether it is for no host
    let table = [
        (json!([]), vec![], false),
        (json!(["A.Example.com"]), vec!["a.example.com"], false),
        (json!(["*.x.com", "10.0.0.1"]), vec!["*.x.com"], false),
        (json!(["10.0.0.1", "fd00::1"]), vec![], true),
    ];
    for (hostnames, expected, is_hostless) in table {
        let route = reduce(&json!({ "hostnames": hostnames }));
        let hosts: Vec<String> = route.hostnames.iter().map(ToString::to_string).collect();
        assert_eq!(
            (hosts, route.is_hostless),
            (expected.into_iter().map(str::to_owned).collect(), is_hostless)
        );
    }
}

#[test]
fn only_the_wish_for_default_gateways_is_refused() {
    let refusals = |scope: Value| reduce(&json!({ "useDefaultGateways": scope })).refusals;
    assert_eq!(
        refused(&refusals(json!("All"))),
        [("spec.useDefaultGateways", RefusalCause::Unsupported)]
    );
    assert!(refusals(json!("None")).is_empty() && refusals(Value::Null).is_empty());
}

#[test]
fn a_rule_without_matches_matches_everything() {
    for matches in [json!(null), json!([]), json!([{}]), json!([{"path": {}}])] {
        assert_eq!(
            *rule(&json!({ "matches": matches })).matches,
            [Match::everything()],
            "{matches}"
        );
    }
}

#[test]
fn every_kind_of_match_is_read() {
    let rule = rule(&json!({"matches": [{
        "path": {"type": "Exact", "value": "/a"},
        "method": "PATCH",
        "headers": [
            {"name": "X-One", "value": "1"},
            {"name": "x-one", "value": "2"},
            {"name": "x-two", "type": "RegularExpression", "value": "a+"},
        ],
        "queryParams": [{"name": "Q", "value": "1"}, {"name": "q", "value": "2"}, {"name": "Q", "value": "3"}],
    }]}));
    let field = |name: &str, value: &str| Field {
        name: name.into(),
        value: TextMatch::Exact(value.into()),
    };
    let pattern = Field {
        name: "x-two".into(),
        value: TextMatch::Pattern(Pattern::new("a+").unwrap()),
    };
    let expected = Match {
        path: PathMatch::Exact("/a".into()),
        method: Some(Method::Patch),
        // Of equal names the first counts; those of headers compare without case, those of parameters with it.
        headers: [field("x-one", "1"), pattern].into(),
        query: [field("Q", "1"), field("q", "2")].into(),
    };
    assert_eq!(*rule.matches, [expected]);
}

#[test]
fn a_pattern_that_does_not_compile_takes_only_its_match_along() {
    let table = [
        (
            json!({"path": {"type": "RegularExpression", "value": "("}}),
            "path.value",
        ),
        (
            json!({"headers": [{"name": "a", "type": "RegularExpression", "value": "("}]}),
            "headers[0].value",
        ),
        (
            json!({"queryParams": [{"name": "a", "value": "1"}, {"name": "b", "type": "RegularExpression", "value": "("}]}),
            "queryParams[1].value",
        ),
    ];
    for (bad, field) in table {
        let rule = rule(&json!({"matches": [{"path": {"value": "/good"}}, bad]}));
        assert_eq!(rule.matches.len(), 1);
        let field = format!("spec.rules[0].matches[1].{field}");
        assert_eq!(refused(&rule.refusals), [(field.as_str(), RefusalCause::Invalid)]);
    }
}

#[test]
fn backends_keep_their_weight_and_default_to_services() {
    let rule = rule(&json!({"backendRefs": [
        {"name": "a", "port": 80},
        {"name": "b", "namespace": "x", "port": 81, "weight": 0},
        {"name": "c", "group": "example.com", "kind": "Bucket", "weight": 1_000_000},
    ]}));
    let read: Vec<_> = rule
        .backends
        .iter()
        .map(|backend| (&*backend.group, &*backend.kind, backend.port, backend.weight))
        .collect();
    let expected = [
        ("", "Service", Some(80), 1),
        ("", "Service", Some(81), 0),
        ("example.com", "Bucket", None, 1_000_000),
    ];
    assert_eq!(read, expected);
    assert_eq!(rule.backends[1].namespace.as_deref(), Some("x"));
}

#[test]
fn timeouts_of_zero_are_no_limits_and_other_texts_are_refused() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let table = [
        (
            json!({"request": "1m30s", "backendRequest": "10s"}),
            seconds(90),
            seconds(10),
        ),
        (json!({"request": "0s"}), None, None),
        (
            json!({"backendRequest": "500ms"}),
            None,
            Some(Duration::from_millis(500)),
        ),
    ];
    for (timeouts, request, backend_request) in table {
        let rule = rule(&json!({ "timeouts": timeouts }));
        assert_eq!(
            (rule.timeouts, rule.refusals.len()),
            (
                Timeouts {
                    request,
                    backend_request
                },
                0
            )
        );
    }
    let bad = rule(&json!({"timeouts": {"request": "soon"}}));
    assert_eq!(
        refused(&bad.refusals),
        [("spec.rules[0].timeouts.request", RefusalCause::Invalid)]
    );
}

#[test]
fn what_a_rule_asks_for_and_does_not_get_is_refused() {
    let mirror = json!([{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "a", "port": 80}}}]);
    let rewrite = json!([{"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}}]);
    let table = [
        (json!({"retry": {"attempts": 2}}), "retry"),
        (json!({"sessionPersistence": {}}), "sessionPersistence"),
        (json!({ "filters": mirror }), "filters[0]"),
        (
            json!({"backendRefs": [{"name": "a", "port": 80}, {"name": "b", "port": 80, "filters": rewrite}]}),
            "backendRefs[1].filters",
        ),
    ];
    for (value, field) in table {
        let field = format!("spec.rules[0].{field}");
        assert_eq!(
            refused(&rule(&value).refusals),
            [(field.as_str(), RefusalCause::Unsupported)]
        );
    }
}
