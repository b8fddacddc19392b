//! Every rule against a document that breaks it: `golden/validate/*.yaml`.
//!
//! The first document of a file is good. Each further one is a merge patch on it, preceded by a comment that says
//! what is wrong and followed by the findings as `#>` comments. `UPDATE_GOLDEN=1` writes the findings anew.

use std::{collections::BTreeSet, env, fmt::Write as _, fs, path::Path};

use serde_json::{Value, json};

use super::{Code, FieldPath, Step, admit, complete, facts, formats, validate};
use crate::{Kind, Object};

fn parse(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// RFC 7386, which in short: objects are merged, null removes, all else replaces.
fn patch(target: &mut Value, with: Value) {
    let Value::Object(with) = with else {
        *target = with;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let entries = target.as_object_mut().unwrap();
    for (key, value) in with {
        if value.is_null() {
            entries.remove(&key);
        } else {
            patch(entries.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// The text of a golden file with the findings as they are now.
fn rewrite(text: &str) -> String {
    let mut base: Option<(Kind, Value)> = None;
    let mut documents = Vec::new();
    for document in text.split("---\n") {
        let mut kept: String =
            document
                .lines()
                .filter(|line| !line.starts_with("#>"))
                .fold(String::new(), |mut kept, line| {
                    writeln!(kept, "{line}").unwrap();
                    kept
                });
        let written = parse(&kept);
        let (kind, value) = match &base {
            None => {
                let read = |field: &str| written[field].as_str().unwrap().to_owned();
                (Kind::of(&read("apiVersion"), &read("kind")).unwrap(), written)
            }
            Some((kind, base)) => {
                let mut value = base.clone();
                patch(&mut value, written);
                (*kind, value)
            }
        };
        let findings = validate(kind, &value);
        for finding in &findings {
            writeln!(kept, "#> {finding}").unwrap();
        }
        // What validation passes, the types must read.
        if !findings.iter().any(super::Finding::is_error) {
            let admission = admit(kind, value.clone());
            assert!(admission.object.is_some(), "{:?}\n{kept}", admission.findings);
        }
        if base.is_none() {
            assert!(findings.is_empty(), "the first document is good:\n{kept}");
            base = Some((kind, value));
        }
        documents.push(kept);
    }
    documents.join("---\n")
}

#[test]
fn every_document_has_the_findings_that_stand_below_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/validate");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut seen: BTreeSet<Code> = BTreeSet::new();
    for file in files {
        let written = fs::read_to_string(&file).unwrap();
        let now = rewrite(&written);
        seen.extend(
            Code::ALL
                .iter()
                .copied()
                .filter(|code| now.contains(&format!("[{code}]"))),
        );
        if env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, now).unwrap();
        } else {
            assert!(written == now, "{} should be:\n{now}", file.display());
        }
    }
    let unseen: Vec<_> = Code::ALL
        .iter()
        .filter(|code| code.as_str() < "GW11" && !seen.contains(code))
        .collect();
    assert!(unseen.is_empty(), "no document shows {unseen:?}");
}

#[test]
fn every_place_in_the_facts_exists() {
    let unresolved = [
        facts::build::<crate::GatewayClass>(super::gateway_class::facts).1,
        facts::build::<crate::Gateway>(super::gateway::facts).1,
        facts::build::<crate::HttpRoute>(super::http_route::facts).1,
        facts::build::<crate::GrpcRoute>(super::grpc_route::facts).1,
        facts::build::<crate::TlsRoute>(super::stream_route::tls_facts).1,
        facts::build::<crate::TcpRoute>(super::stream_route::facts).1,
        facts::build::<crate::UdpRoute>(super::stream_route::facts).1,
        facts::build::<crate::ListenerSet>(super::listener_set::facts).1,
        facts::build::<crate::BackendTlsPolicy>(super::backend_tls_policy::facts).1,
        facts::build::<crate::ReferenceGrant>(super::reference_grant::facts).1,
        facts::build::<crate::XBackendTrafficPolicy>(super::backend_traffic_policy::facts).1,
        facts::build::<crate::Service>(super::service::facts).1,
        facts::build::<crate::EndpointSlice>(super::endpoint_slice::facts).1,
        facts::build::<crate::Secret>(super::secret::secret_facts).1,
        facts::build::<crate::ConfigMap>(super::secret::config_map_facts).1,
        facts::build::<crate::Namespace>(super::metadata::namespace_facts).1,
        facts::build::<crate::GatewayConfig>(super::gateway_config::facts).1,
    ];
    assert_eq!(unresolved.concat(), Vec::<String>::new());
}

#[test]
fn every_expression_compiles_and_refuses_line_ends() {
    for format in formats::ALL {
        assert!(!(format.is_valid)("a\n"), "{}", format.noun);
    }
}

#[test]
fn codes_are_distinct_and_in_order() {
    assert!(Code::ALL.is_sorted_by(|left, right| left.as_str() < right.as_str()));
    assert!(Code::ALL.iter().all(|code| !code.title().is_empty()));
}

#[test]
fn paths_are_shown_as_fields_and_indexes() {
    let path = |steps: &[Step]| FieldPath(steps.to_vec()).to_string();
    assert_eq!(path(&[]), "");
    let steps = [
        "spec".into(),
        "rules".into(),
        0.into(),
        "matches".into(),
        1.into(),
        "path".into(),
        "value".into(),
    ];
    assert_eq!(path(&steps), "spec.rules[0].matches[1].path.value");
    assert_eq!(path(&["data".into(), "tls.crt".into()]), "data[\"tls.crt\"]");
}

#[test]
fn durations_are_read_as_the_api_reads_them() {
    let millis = |text| formats::duration(text).map(|duration| duration.as_millis());
    assert_eq!(millis("1h2m3s4ms"), Some(3_723_004));
    assert_eq!(millis("0s"), Some(0));
    assert_eq!(millis("10s500ms"), Some(10_500));
    for wrong in ["", "10", "1.5s", "-1s", "123456s", "1s1s1s1s1s", "1d", "s"] {
        assert_eq!(millis(wrong), None, "{wrong}");
    }
}

#[test]
fn a_hostile_document_yields_few_findings() {
    let unknown: serde_json::Map<String, Value> =
        (0..10_000).map(|number| (format!("field{number}"), json!(1))).collect();
    let findings = validate(Kind::ConfigMap, &Value::Object(unknown));
    assert!(findings.len() <= 100);
}

#[test]
fn any_value_of_any_type_anywhere_is_reported_and_never_fatal() {
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(""),
        json!([]),
        json!({}),
        json!([null]),
        json!({"": null}),
    ];
    for kind in Kind::ALL {
        for value in &wrong {
            admit(*kind, value.clone());
            for field in [
                "apiVersion",
                "kind",
                "metadata",
                "spec",
                "data",
                "endpoints",
                "ports",
                "type",
            ] {
                admit(*kind, json!({ (field): value }));
                admit(
                    *kind,
                    json!({"spec": {"rules": value, "listeners": value, "ports": value, "type": value}}),
                );
                admit(
                    *kind,
                    json!({"spec": {"rules": [value], "listeners": [value], "parentRefs": [value]}}),
                );
            }
        }
    }
}

#[test]
fn defaults_are_those_of_the_api() {
    let mut route = parse(
        "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: a}, spec: {parentRefs: [{name: edge}],
          rules: [{backendRefs: [{name: web, port: 80}], matches: [{headers: [{name: a, value: b}]}, {path: {value: /x}}],
                   filters: [{type: RequestRedirect, requestRedirect: {}}, {type: CORS, cors: {}}]},
                  {name: empty, backendRefs: null}]}}",
    );
    complete(Kind::HttpRoute, &mut route);
    let path = |value: &str| json!({"type": "PathPrefix", "value": value});
    let expected = json!({
        "parentRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}],
        "rules": [{
            "backendRefs": [{"group": "", "kind": "Service", "name": "web", "port": 80, "weight": 1}],
            "filters": [
                {"type": "RequestRedirect", "requestRedirect": {"statusCode": 302}},
                {"type": "CORS", "cors": {"maxAge": 5}},
            ],
            "matches": [
                {"headers": [{"name": "a", "type": "Exact", "value": "b"}], "path": path("/")},
                {"path": path("/x")},
            ],
        }, {"name": "empty", "matches": [{"path": path("/")}]}],
    });
    assert_eq!(route["spec"], expected);

    let mut gateway = parse(
        "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: g,
          addresses: [{value: 192.0.2.1}], listeners: [{name: a, port: 443, protocol: HTTPS,
          tls: {certificateRefs: [{name: c}]}, allowedRoutes: {kinds: [{kind: HTTPRoute}]}}]}}",
    );
    complete(Kind::Gateway, &mut gateway);
    let listener = json!({
        "name": "a", "port": 443, "protocol": "HTTPS",
        "allowedRoutes": {
            "kinds": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}],
            "namespaces": {"from": "Same"},
        },
        "tls": {"mode": "Terminate", "certificateRefs": [{"group": "", "kind": "Secret", "name": "c"}]},
    });
    assert_eq!(gateway["spec"]["listeners"][0], listener);
    assert_eq!(gateway["spec"]["addresses"][0]["type"], "IPAddress");

    let mut service = json!({"spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": "web"}]}});
    complete(Kind::Service, &mut service);
    let ports = json!([
        {"port": 80, "targetPort": 80, "protocol": "TCP"},
        {"port": 81, "targetPort": "web", "protocol": "TCP"},
    ]);
    assert_eq!(
        service["spec"],
        json!({"ports": ports, "type": "ClusterIP", "sessionAffinity": "None"})
    );

    let mut route = json!({"spec": {}});
    complete(Kind::HttpRoute, &mut route);
    assert_eq!(route, json!({"spec": {"rules": [{"matches": [{"path": path("/")}]}]}}));
}

#[test]
fn defaults_of_routes_of_connections_and_of_listener_sets_are_those_of_the_api() {
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"});
    for kind in [Kind::TlsRoute, Kind::TcpRoute, Kind::UdpRoute] {
        let mut route = parse("{spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: a, port: 1}]}]}}");
        complete(kind, &mut route);
        let backend = json!({"group": "", "kind": "Service", "name": "a", "port": 1, "weight": 1});
        let expected = json!({"parentRefs": [parent], "rules": [{"backendRefs": [backend]}]});
        assert_eq!(route["spec"], expected, "{kind}");
    }
    let mut set = parse("{spec: {parentRef: {name: edge}, listeners: [{name: a, port: 443, protocol: TLS, tls: {}}]}}");
    complete(Kind::ListenerSet, &mut set);
    let listener = json!({
        "name": "a", "port": 443, "protocol": "TLS",
        "allowedRoutes": {"namespaces": {"from": "Same"}}, "tls": {"mode": "Terminate"},
    });
    assert_eq!(set["spec"], json!({"parentRef": parent, "listeners": [listener]}));
}

#[test]
fn a_tls_route_without_hostnames_is_read_in_every_version_and_refused_in_new_files() {
    for (version, is_admitted) in [("v1", false), ("v1alpha3", false), ("v1alpha2", true)] {
        let route = json!({
            "apiVersion": format!("gateway.networking.k8s.io/{version}"), "kind": "TLSRoute", "metadata": {"name": "a"},
            "spec": {"rules": [{"backendRefs": [{"name": "a", "port": 1}]}]},
        });
        let Object::TlsRoute(read) = Object::from_value(Kind::TlsRoute, route.clone()).unwrap() else {
            unreachable!()
        };
        assert!(read.spec.hostnames.is_empty());
        assert_eq!(admit(Kind::TlsRoute, route).object.is_some(), is_admitted, "{version}");
    }
}

#[test]
fn completing_twice_changes_nothing() {
    for kind in Kind::ALL {
        let mut once =
            json!({"spec": {"listeners": [{"tls": {}}], "rules": [{}], "ports": [{"port": 1}]}, "ports": [{}]});
        complete(*kind, &mut once);
        let mut twice = once.clone();
        complete(*kind, &mut twice);
        assert_eq!(once, twice, "{kind}");
    }
}

#[test]
fn string_data_of_a_secret_becomes_data_and_wrapped_base64_is_read() {
    let secret = parse(
        "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: \"aGVs\\nbG8=\", b: eA==}, stringData: {b: new}}",
    );
    let admission = admit(Kind::Secret, secret);
    let Some(Object::Secret(secret)) = admission.object else {
        panic!("{:?}", admission.findings)
    };
    let data = secret.data.unwrap();
    assert_eq!(
        (data["a"].0.as_slice(), data["b"].0.as_slice()),
        (&b"hello"[..], &b"new"[..])
    );
    assert_eq!((secret.string_data, secret.type_.as_deref()), (None, Some("Opaque")));
}

#[test]
fn large_annotations_and_data_are_refused_without_showing_them() {
    let large = "x".repeat(2 * 1024 * 1024);
    let codes = |kind, value: Value| -> Vec<String> {
        let findings = validate(kind, &value);
        assert!(findings.iter().all(|finding| finding.to_string().len() < 200));
        findings
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.path))
            .collect()
    };
    let metadata = json!({"name": "a", "annotations": {"a": large}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": large}});
    assert_eq!(
        codes(Kind::ConfigMap, map),
        ["GW1011 data", "GW1011 metadata.annotations"]
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"a": large}});
    assert_eq!(codes(Kind::Secret, secret), ["GW1011 stringData"]);
}
