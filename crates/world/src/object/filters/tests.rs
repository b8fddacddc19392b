use serde_json::{Value, json};

use gatewright_ir::{AuthProtocol, Listed, PathChange, Redirect, Rewrite, Scheme};

use super::*;

fn read(filters: Value) -> Result<Option<Box<RouteFilters>>, Refusal> {
    let filters: Vec<Filter> = serde_json::from_value(filters).unwrap();
    reduce(&filters, "filters", &mut Interner::default())
}

fn headers(change: &Value) -> Result<HeaderChange, Refusal> {
    let filters = read(json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": change}]))?;
    Ok(filters
        .and_then(|filters| filters.plain.request_headers)
        .unwrap_or_default())
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(Text, Text)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

#[test]
fn no_filters_are_none() {
    assert_eq!(read(json!([])), Ok(None));
}

#[test]
fn header_names_are_kept_in_lower_case_and_once() {
    let change = headers(&json!({
        "set": [{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}],
        "add": [{"name": "X-B", "value": "1, 2"}],
        "remove": ["X-C", "x-c", "X-D"],
    }));
    let expected = HeaderChange {
        set: pairs(&[("x-a", "1")]),
        add: pairs(&[("x-b", "1, 2")]),
        remove: vec!["x-c".into(), "x-d".into()],
    };
    assert_eq!(change, Ok(expected));
}

#[test]
fn a_header_that_is_changed_in_two_ways_is_refused() {
    let (set, remove) = (json!([{"name": "X-A", "value": "1"}]), json!(["x-a"]));
    let table = [
        json!({"set": set, "remove": remove}),
        json!({"add": set, "remove": remove}),
        json!({"set": set, "add": [{"name": "x-A", "value": "2"}]}),
    ];
    for change in table {
        let refusal = headers(&change).unwrap_err();
        assert_eq!(
            (refusal.cause, &*refusal.field),
            (RefusalCause::Invalid, "filters[0]"),
            "{change}"
        );
        assert!(refusal.message.contains("x-a"), "{}", refusal.message);
    }
}

#[test]
fn headers_that_frame_a_message_stay_the_proxy_s() {
    for name in ["Host", "content-length", "Transfer-Encoding", "Connection"] {
        for change in [
            json!({"set": [{"name": name, "value": "1"}]}),
            json!({ "remove": [name] }),
        ] {
            assert_eq!(headers(&change).unwrap_err().cause, RefusalCause::Unsupported, "{name}");
        }
    }
    let smuggled = headers(&json!({"set": [{"name": "X-A", "value": "1\r\nHost: b"}]}));
    assert_eq!(smuggled.unwrap_err().cause, RefusalCause::Invalid);
}

#[test]
fn redirects_are_read_with_their_defaults() {
    let redirect = |value: Value| {
        let filters = read(json!([{"type": "RequestRedirect", "requestRedirect": value}]))?;
        Ok::<_, Refusal>(filters.and_then(|filters| filters.plain.redirect))
    };
    let empty = Redirect {
        scheme: None,
        hostname: None,
        port: None,
        path: None,
        status: 302,
    };
    let table = [
        (json!({}), empty.clone()),
        (
            json!({"scheme": "https", "statusCode": 301}),
            Redirect {
                scheme: Some(Scheme::Https),
                status: 301,
                ..empty.clone()
            },
        ),
        (
            json!({"hostname": "a.com", "port": 8443}),
            Redirect {
                hostname: Some("a.com".into()),
                port: Some(8443),
                ..empty.clone()
            },
        ),
        (
            json!({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}),
            Redirect {
                path: Some(PathChange::Full("/x".into())),
                ..empty.clone()
            },
        ),
        (
            json!({"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": ""}}),
            Redirect {
                path: Some(PathChange::Prefix("".into())),
                ..empty
            },
        ),
    ];
    for (value, expected) in table {
        assert_eq!(redirect(value), Ok(Some(expected)));
    }
    assert!(redirect(json!({"statusCode": 200})).is_err() && redirect(json!({"port": 70000})).is_err());
    assert!(redirect(json!({"path": {"type": "ReplaceFullPath"}})).is_err());
}

#[test]
fn rewrites_are_read() {
    let rewrite = json!({"hostname": "a.com", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}});
    let filters = read(json!([{"type": "URLRewrite", "urlRewrite": rewrite}]))
        .unwrap()
        .unwrap();
    let expected = Rewrite {
        hostname: Some("a.com".into()),
        path: Some(PathChange::Prefix("/x".into())),
    };
    assert_eq!(filters.plain.rewrite, Some(expected));
}

#[test]
fn a_filter_that_cannot_be_honoured_is_refused_where_it_stands() {
    let good = json!({"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}});
    let backend = json!({"name": "web", "port": 80});
    let table = [
        (
            json!({"type": "RequestMirror", "requestMirror": {"backendRef": backend, "percent": 101}}),
            RefusalCause::Invalid,
        ),
        (
            json!({"type": "CORS", "cors": {"allowOrigins": ["www.a.com"]}}),
            RefusalCause::Invalid,
        ),
        (
            json!({"type": "ExternalAuth", "externalAuth": {
                "protocol": "HTTP", "backendRef": backend, "http": {"path": "/a/../b"}}}),
            RefusalCause::Invalid,
        ),
        (
            json!({"type": "ExtensionRef", "extensionRef": {"group": "example.com", "kind": "Limit", "name": "x"}}),
            RefusalCause::InvalidKind,
        ),
        (json!({"type": "RequestHeaderModifier"}), RefusalCause::Invalid),
    ];
    for (bad, cause) in table {
        let refusal = read(json!([good, bad])).unwrap_err();
        assert_eq!((refusal.cause, &*refusal.field), (cause, "filters[1]"), "{bad}");
    }
}

#[test]
fn a_rule_does_not_both_redirect_and_rewrite() {
    let both = json!([
        {"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}},
        {"type": "RequestRedirect", "requestRedirect": {"hostname": "b.com"}},
    ]);
    assert_eq!(read(both).unwrap_err().cause, RefusalCause::Invalid);
}

#[test]
fn backends_have_every_filter_of_a_rule() {
    let read = |filter: Value| {
        let filters: Vec<api::HttpRouteRulesBackendRefsFilters> = serde_json::from_value(json!([filter])).unwrap();
        *reduce_for_backend(&filters, "filters", &mut Interner::default())
            .unwrap()
            .unwrap()
    };
    let change = json!({"set": [{"name": "X-A", "value": "1"}]});
    let filters = read(json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": change}));
    assert_eq!(filters.plain.response_headers.unwrap().set, pairs(&[("x-a", "1")]));
    let filters = read(json!({"type": "RequestRedirect", "requestRedirect": {"hostname": "a.com"}}));
    assert_eq!(filters.plain.redirect.unwrap().hostname.as_deref(), Some("a.com"));
    let filters = read(json!({"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}}));
    assert_eq!(filters.plain.rewrite.unwrap().hostname.as_deref(), Some("a.com"));
}

#[test]
fn mirrors_are_read_one_by_one_with_their_share() {
    let mirror = |share: Value| {
        let mut mirror = json!({"backendRef": {"name": "copy", "port": 80}});
        mirror
            .as_object_mut()
            .unwrap()
            .extend(share.as_object().unwrap().clone());
        json!({"type": "RequestMirror", "requestMirror": mirror})
    };
    let filters = read(json!([
        mirror(json!({})),
        mirror(json!({"percent": 20})),
        mirror(json!({"fraction": {"numerator": 1, "denominator": 3}})),
        mirror(json!({"fraction": {"numerator": 7}})),
    ]));
    let shares: Vec<(u32, u32)> = filters
        .unwrap()
        .unwrap()
        .mirrors
        .iter()
        .map(|mirror| (mirror.share.numerator, mirror.share.denominator))
        .collect();
    assert_eq!(shares, [(1, 1), (20, 100), (1, 3), (7, 100)]);
}

#[test]
fn cross_origin_sharing_is_read_as_it_is_written() {
    let cors = |value: Value| {
        let filters = read(json!([{"type": "CORS", "cors": value}])).unwrap().unwrap();
        *filters.plain.cors.unwrap()
    };
    let full = cors(json!({
        "allowOrigins": ["https://www.foo.com", "https://*.bar.com"],
        "allowMethods": ["GET", "OPTIONS"],
        "allowHeaders": ["X-A", "x-b"],
        "exposeHeaders": ["*"],
        "allowCredentials": true,
        "maxAge": 3600,
    }));
    assert_eq!(full.origins.len(), 2);
    assert!(full.credentials && full.origins[1].matches("https://www.bar.com"));
    assert_eq!(full.methods, Listed::These(["GET".into(), "OPTIONS".into()].into()));
    assert_eq!(full.request_headers, Listed::These(["X-A".into(), "x-b".into()].into()));
    assert_eq!(full.exposed_headers, Listed::All);
    assert_eq!(full.max_age.as_secs(), 3600);
    let empty = cors(json!({}));
    assert!(empty.origins.is_empty() && !empty.credentials && empty.max_age.as_secs() == 5);
    assert_eq!(empty.methods, Listed::These(Box::new([])));
}

#[test]
fn external_authorisation_is_read_and_stands_alone() {
    let auth = |value: Value| json!({"type": "ExternalAuth", "externalAuth": value});
    let backend = json!({"name": "auth", "port": 80});
    let http = auth(
        json!({"protocol": "HTTP", "backendRef": backend, "forwardBody": {"maxSize": 100}, "http": {
        "path": "/check/", "allowedHeaders": ["X-B", "X-A"], "allowedResponseHeaders": ["X-User"]}}),
    );
    let filters = read(json!([http])).unwrap().unwrap();
    let expected = AuthProtocol::Http {
        path: "/check".into(),
        request_headers: ["x-a".into(), "x-b".into()].into(),
        response_headers: Some(["x-user".into()].into()),
    };
    let read_auth = filters.auth.unwrap();
    assert_eq!((read_auth.protocol, read_auth.max_body), (expected, Some(100)));
    let grpc =
        auth(json!({"protocol": "GRPC", "backendRef": backend, "grpc": {"allowedHeaders": []}, "forwardBody": {}}));
    let read_auth = read(json!([grpc])).unwrap().unwrap().auth.unwrap();
    let everything = AuthProtocol::Grpc { request_headers: None };
    assert_eq!((read_auth.protocol, read_auth.max_body), (everything, None));
    assert_eq!(read(json!([grpc, http])).unwrap_err().cause, RefusalCause::Unsupported);
}
