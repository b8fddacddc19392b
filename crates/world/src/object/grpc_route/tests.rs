use gatewright_api::{Kind, Object};
use gatewright_ir::{Field, Pattern, TextMatch};
use serde_json::{Value, json};

use super::*;
use crate::object::RefusalCause;

fn reduce(spec: &Value) -> Route {
    let value = json!({"metadata": {"namespace": "a", "name": "r"}, "spec": spec});
    match Object::from_value(Kind::GrpcRoute, value).unwrap() {
        Object::GrpcRoute(route) => Route::of_grpc(&route, &mut Interner::default()),
        other => panic!("{other:?} is no GRPCRoute"),
    }
}

fn rule(rule: &Value) -> RouteRule {
    reduce(&json!({ "rules": [rule] })).rules[0].clone()
}

#[test]
fn methods_become_paths_that_rank_by_service_and_method() {
    let pattern = |text: &str| PathMatch::Pattern(Pattern::new(text).unwrap());
    let table = [
        (json!({}), PathMatch::Prefix("/".into()), (0, 0)),
        (
            json!({"method": {"service": "a.B", "method": "Get"}}),
            PathMatch::Exact("/a.B/Get".into()),
            (3, 3),
        ),
        (
            json!({"method": {"service": "a.B"}}),
            PathMatch::Prefix("/a.B".into()),
            (3, 0),
        ),
        (json!({"method": {"method": "Get"}}), pattern("/[^/]+/Get"), (0, 3)),
        (
            json!({"method": {"type": "RegularExpression", "service": "a|b", "method": "G.*"}}),
            pattern("/(?:a|b)/(?:G.*)"),
            (3, 3),
        ),
        (
            json!({"method": {"type": "RegularExpression", "method": "G.*"}}),
            pattern("/[^/]+/(?:G.*)"),
            (0, 3),
        ),
    ];
    for (matches, path, (service, method)) in table {
        let rule = rule(&json!({ "matches": [matches] }));
        assert!(rule.refusals.is_empty(), "{:?}", rule.refusals);
        let grpc = Some(GrpcMatch { service, method });
        let expected = Match {
            path,
            grpc,
            ..Match::everything()
        };
        assert_eq!(*rule.matches, [expected], "{matches}");
    }
}

#[test]
fn a_rule_without_matches_takes_every_call_and_nothing_else() {
    let [every] = &*rule(&json!({})).matches else {
        panic!("one match")
    };
    assert_eq!(every.grpc, Some(GrpcMatch::default()));
}

#[test]
fn headers_are_read_like_those_of_http() {
    let rule = rule(&json!({"matches": [{"headers": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}]}]}));
    let expected = Field {
        name: "x-a".into(),
        value: TextMatch::Exact("1".into()),
    };
    assert_eq!(*rule.matches[0].headers, [expected]);
}

#[test]
fn what_no_call_can_have_is_refused_where_it_stands() {
    let table = [
        (json!({"service": "a/b"}), "service"),
        (json!({"method": "Get*"}), "method"),
        (json!({"type": "RegularExpression", "service": "("}), "service"),
        (
            json!({"type": "RegularExpression", "service": "a)/(b", "method": "c"}),
            "service",
        ),
    ];
    for (method, field) in table {
        let rule = rule(&json!({ "matches": [{ "method": method }] }));
        assert_eq!(rule.refusals.len(), 1, "{method}");
        assert_eq!(
            (&*rule.refusals[0].field, rule.refusals[0].cause),
            (
                format!("spec.rules[0].matches[0].method.{field}").as_str(),
                RefusalCause::Invalid
            )
        );
    }
}

#[test]
fn parents_filters_backends_and_sessions_are_read_like_those_of_http() {
    let route = reduce(&json!({
        "parentRefs": [{"name": "gw", "sectionName": "https"}],
        "hostnames": ["grpc.example.com"],
        "rules": [{
            "filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "X-A", "value": "1"}]}},
                {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copy", "port": 80}, "percent": 5}},
            ],
            "backendRefs": [{"name": "web", "port": 80, "weight": 3, "filters": [
                {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["x-b"]}}]}],
            "sessionPersistence": {"type": "Header", "sessionName": "X-Session"},
        }],
    }));
    assert_eq!(route.kind, RouteKind::Grpc);
    assert_eq!(route.parents[0].section.as_deref(), Some("https"));
    let rule = &route.rules[0];
    assert!(rule.refusals.is_empty(), "{:?}", rule.refusals);
    let filters = rule.filters.as_ref().unwrap();
    assert!(filters.plain.request_headers.is_some() && filters.mirrors.len() == 1);
    assert_eq!(rule.backends[0].weight, 3);
    assert!(
        rule.backends[0]
            .filters
            .as_ref()
            .unwrap()
            .plain
            .response_headers
            .is_some()
    );
    assert_eq!(&*rule.session.as_ref().unwrap().name, "x-session");
}
