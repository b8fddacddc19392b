use serde_json::{Value, json};

use super::*;

fn read(filters: Value) -> Result<Option<Box<Filters>>, Refusal> {
    let filters: Vec<Filter> = serde_json::from_value(filters).unwrap();
    reduce(&filters, "filters", &mut Interner::default())
}

fn headers(change: &Value) -> Result<HeaderChange, Refusal> {
    let filters = read(json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": change}]))?;
    Ok(filters.and_then(|filters| filters.request_headers).unwrap_or_default())
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
        Ok::<_, Refusal>(filters.and_then(|filters| filters.redirect))
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
    assert_eq!(filters.rewrite, Some(expected));
}

#[test]
fn a_filter_that_cannot_be_honoured_is_refused_where_it_stands() {
    let good = json!({"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}});
    let backend = json!({"name": "web", "port": 80});
    let table = [
        (
            json!({"type": "RequestMirror", "requestMirror": {"backendRef": backend}}),
            RefusalCause::Unsupported,
        ),
        (json!({"type": "CORS", "cors": {}}), RefusalCause::Unsupported),
        (
            json!({"type": "ExternalAuth", "externalAuth": {"protocol": "HTTP", "backendRef": backend, "http": {}}}),
            RefusalCause::Unsupported,
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
fn backends_change_headers_and_nothing_else() {
    let read = |filter: Value| {
        let filters: Vec<api::HttpRouteRulesBackendRefsFilters> = serde_json::from_value(json!([filter])).unwrap();
        reduce_for_backend(&filters, "filters", &mut Interner::default())
    };
    let change = json!({"set": [{"name": "X-A", "value": "1"}]});
    let filters = read(json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": change})).unwrap();
    let headers = filters.and_then(|filters| filters.response_headers).unwrap();
    assert_eq!(headers.set, pairs(&[("x-a", "1")]));
    let redirect = read(json!({"type": "RequestRedirect", "requestRedirect": {"hostname": "a.com"}}));
    assert_eq!(redirect.unwrap_err().cause, RefusalCause::Unsupported);
}
