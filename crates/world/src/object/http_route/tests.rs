use gatewright_api::{Kind, Object};
use serde_json::{Value, json};

use gatewright_ir::Carrier;

use super::*;
use crate::object::RefusalCause;

fn reduce(spec: &Value) -> Route {
    let value = json!({"metadata": {"namespace": "a", "name": "r"}, "spec": spec});
    match Object::from_value(Kind::HttpRoute, value).unwrap() {
        Object::HttpRoute(route) => Route::of_http(&route, &mut Interner::default()),
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
fn a_route_may_ask_for_default_gateways() {
    let uses_defaults = |scope: Value| reduce(&json!({ "useDefaultGateways": scope })).uses_defaults;
    assert!(uses_defaults(json!("All")));
    assert!(!uses_defaults(json!("None")) && !uses_defaults(Value::Null));
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
        grpc: None,
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
        .map(|backend| {
            let service = &backend.service;
            (&*service.group, &*service.kind, service.port, backend.weight)
        })
        .collect();
    let expected = [
        ("", "Service", Some(80), 1),
        ("", "Service", Some(81), 0),
        ("example.com", "Bucket", None, 1_000_000),
    ];
    assert_eq!(read, expected);
    assert_eq!(rule.backends[1].service.namespace.as_deref(), Some("x"));
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
fn retries_are_read_with_defaults_for_what_is_left_out() {
    let retry = |value: Value| rule(&json!({ "retry": value }));
    let full = retry(json!({"codes": [503, 500, 503], "attempts": 4, "backoff": "100ms"}));
    let expected = Retry {
        codes: [500, 503].into(),
        attempts: 4,
        backoff: Duration::from_millis(100),
    };
    assert_eq!((full.retry.as_deref(), full.refusals.len()), (Some(&expected), 0));
    let empty = Retry {
        codes: Box::new([]),
        attempts: DEFAULT_ATTEMPTS,
        backoff: DEFAULT_BACKOFF,
    };
    assert_eq!(retry(json!({})).retry.as_deref(), Some(&empty));
    for (value, field, cause) in [
        (json!({"codes": [500, 200]}), "codes[1]", RefusalCause::Invalid),
        (json!({"attempts": 101}), "attempts", RefusalCause::Unsupported),
        (json!({"backoff": "soon"}), "backoff", RefusalCause::Invalid),
    ] {
        let field = format!("spec.rules[0].retry.{field}");
        assert_eq!(refused(&retry(value).refusals), [(field.as_str(), cause)]);
    }
}

#[test]
fn sessions_are_read_and_have_a_name_of_their_own() {
    let session = |value: Value| rule(&json!({ "sessionPersistence": value }));
    let read = |value: Value| *session(value).session.unwrap();
    let hour = Some(Duration::from_hours(1));
    let cookie = read(json!({"sessionName": "Shop"}));
    assert_eq!(
        (cookie.carrier, &*cookie.name, cookie.absolute_timeout),
        (Carrier::SessionCookie, "Shop", None)
    );
    let lasting = json!({"absoluteTimeout": "1h", "type": "Cookie", "cookieConfig": {"lifetimeType": "Permanent"}});
    let lasting = read(lasting);
    assert_eq!(
        (lasting.carrier, lasting.absolute_timeout),
        (Carrier::PermanentCookie, hour)
    );
    let header = read(json!({"type": "Header", "sessionName": "X-Session"}));
    assert_eq!((header.carrier, &*header.name), (Carrier::Header, "x-session"));
    let both = reduce(&json!({"rules": [{"sessionPersistence": {}}, {"sessionPersistence": {}}]}));
    let names: Vec<_> = both
        .rules
        .iter()
        .map(|rule| rule.session.clone().unwrap().name)
        .collect();
    assert!(names[0] != names[1] && names[0].starts_with("gatewright-"), "{names:?}");
    for (value, field, cause) in [
        (json!({"sessionName": "a b"}), "sessionName", RefusalCause::Invalid),
        (
            json!({"type": "Header", "sessionName": "Host"}),
            "sessionName",
            RefusalCause::Unsupported,
        ),
        (
            json!({"absoluteTimeout": "0s"}),
            "absoluteTimeout",
            RefusalCause::Invalid,
        ),
        (
            json!({"cookieConfig": {"lifetimeType": "Permanent"}}),
            "absoluteTimeout",
            RefusalCause::Invalid,
        ),
    ] {
        let field = format!("spec.rules[0].sessionPersistence.{field}");
        assert_eq!(refused(&session(value).refusals), [(field.as_str(), cause)]);
    }
}

#[test]
fn everything_that_a_route_refers_to_is_known() {
    let mirror =
        |name: &str| json!({"type": "RequestMirror", "requestMirror": {"backendRef": {"name": name, "port": 80}}});
    let auth = json!({"type": "ExternalAuth", "externalAuth": {
        "protocol": "HTTP", "http": {}, "backendRef": {"name": "auth", "namespace": "x", "port": 80}}});
    let route = reduce(&json!({"rules": [{
        "filters": [mirror("one"), mirror("two"), auth],
        "backendRefs": [{"name": "web", "port": 80, "filters": [mirror("three")]}],
    }]}));
    let own = "a".into();
    let services: Vec<String> = route.services().map(|service| service.key(&own).to_string()).collect();
    assert_eq!(services, ["a/one", "a/two", "x/auth", "a/web", "a/three"]);
}
