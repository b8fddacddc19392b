//! No field of what is planned is ignored in silence: whatever it says is obeyed, or refused with a condition.
//!
//! Every field of the schemas is found in an example below and given another value; the plan must then be another one, be it
//! in what data planes do or in what the object shows. A field that a new version of the API adds fails this test until it
//! is in an example, and planned.

mod gateway;

use std::{collections::BTreeMap, sync::LazyLock};

use gatewright_api::{
    BackendTlsPolicy, CustomResourceExt, GrpcRoute, HttpRoute, Kind, ListenerSet, Object, TcpRoute, TlsRoute, UdpRoute,
};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::{
    World,
    desired::{Stamps, render},
};
use serde_json::{Value, json};

#[test]
fn every_field_of_an_http_route_makes_a_difference() {
    let schema = serde_json::to_value(HttpRoute::crd()).unwrap();
    let examples: Vec<Value> = http_rules().iter().map(spec).collect();
    every_field_makes_a_difference(Kind::HttpRoute, &schema, &examples, 40);
}

#[test]
fn every_field_of_a_grpc_route_makes_a_difference() {
    let schema = serde_json::to_value(GrpcRoute::crd()).unwrap();
    let examples: Vec<Value> = grpc_rules().iter().map(spec).collect();
    every_field_makes_a_difference(Kind::GrpcRoute, &schema, &examples, 40);
}

#[test]
fn every_field_of_a_route_of_connections_or_datagrams_makes_a_difference() {
    let rule = json!({"name": "one", "backendRefs": [with(backend("web"), &json!({"weight": 1}))]});
    let tls = spec(&rule);
    let mut other = tls.clone();
    other.as_object_mut().unwrap().remove("hostnames");
    let schema = |definition| serde_json::to_value(definition).unwrap();
    every_field_makes_a_difference(Kind::TlsRoute, &schema(TlsRoute::crd()), &[tls], 14);
    every_field_makes_a_difference(
        Kind::TcpRoute,
        &schema(TcpRoute::crd()),
        std::slice::from_ref(&other),
        13,
    );
    every_field_makes_a_difference(Kind::UdpRoute, &schema(UdpRoute::crd()), &[other], 13);
}

#[test]
fn every_field_of_a_listener_set_makes_a_difference() {
    let selector = json!({
        "matchLabels": {"team": "red"},
        "matchExpressions": [{"key": "team", "operator": "In", "values": ["red"]}],
    });
    let kinds = json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}]);
    let plain = json!({
        "name": "l", "port": 81, "protocol": "HTTP", "hostname": "a.example.com",
        "allowedRoutes": {"kinds": kinds, "namespaces": {"from": "Selector", "selector": selector}},
    });
    let reference = json!({"group": "", "kind": "Secret", "namespace": "a", "name": "s"});
    let secure = |mode: &str, options: Value| {
        let tls = json!({"mode": mode, "certificateRefs": [reference], "options": options});
        json!({"name": "m", "port": 443, "protocol": "TLS", "tls": tls})
    };
    let parent = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "a", "name": "front"});
    let mut narrow = plain.clone();
    narrow["allowedRoutes"]["namespaces"]["selector"] = json!({"matchLabels": {"team": "blue"}});
    let listeners = [
        json!([plain]),
        json!([narrow]),
        json!([secure("Terminate", json!({}))]),
        json!([secure("Passthrough", json!({"example.com/own": "x"}))]),
    ];
    let examples = listeners.map(|listeners| json!({"parentRef": parent, "listeners": listeners}));
    let schema = serde_json::to_value(ListenerSet::crd()).unwrap();
    every_field_makes_a_difference(Kind::ListenerSet, &schema, &examples, 19);
}

#[test]
fn every_field_of_a_backend_tls_policy_makes_a_difference() {
    let targets = json!([{"group": "", "kind": "Service", "name": "web", "sectionName": "one"}]);
    let names = json!([{"type": "URI", "uri": "spiffe://a"}, {"type": "Hostname", "hostname": "b.com"}]);
    let system = json!({"hostname": "a.com", "wellKnownCACertificates": "System", "subjectAltNames": names});
    let given = json!({"hostname": "a.com", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}]});
    let examples = [system, given].map(|validation| {
        let options = json!({"example.com/own": "x"});
        [
            json!({"targetRefs": targets, "validation": validation}),
            json!({"targetRefs": targets, "validation": validation, "options": options}),
        ]
    });
    let schema = serde_json::to_value(BackendTlsPolicy::crd()).unwrap();
    every_field_makes_a_difference(Kind::BackendTlsPolicy, &schema, examples.as_flattened(), 12);
}

fn every_field_makes_a_difference(kind: Kind, definition: &Value, examples: &[Value], least: usize) {
    every_field_matters(kind, definition, examples, least, |spec| plan(kind, spec));
}

fn every_field_matters(
    kind: Kind,
    definition: &Value,
    examples: &[Value],
    least: usize,
    plan: impl Fn(&Value) -> String,
) {
    let schema = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .unwrap();
    let mut fields = BTreeMap::new();
    leaves(schema, String::new(), &mut fields);
    assert!(fields.len() >= least, "{} has only {} fields", kind, fields.len());
    let plans: Vec<String> = examples.iter().map(&plan).collect();
    let mut wrong = Vec::new();
    for (field, schema) in fields {
        let mut found = false;
        let mut matters = false;
        for (example, before) in examples.iter().zip(&plans) {
            for place in places(example, &field) {
                found = true;
                let mut changed = example.clone();
                let value = changed.pointer_mut(&place).unwrap();
                *value = another(value, schema);
                matters |= plan(&changed) != *before;
            }
        }
        if !found {
            wrong.push(format!("no example has spec{field}"));
        } else if !matters {
            wrong.push(format!("spec{field} makes no difference"));
        }
    }
    assert!(wrong.is_empty(), "{kind}:\n{}", wrong.join("\n"));
}

/// The fields below a schema that hold a value, with `[]` for the items of a list.
fn leaves<'s>(schema: &'s Value, place: String, into: &mut BTreeMap<String, &'s Value>) {
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        for (name, field) in fields {
            leaves(field, format!("{place}.{name}"), into);
        }
    } else if let Some(items) = schema.get("items") {
        leaves(items, format!("{place}[]"), into);
    } else {
        into.insert(place, schema);
    }
}

/// Where a field stands in an example, as JSON pointers.
fn places(example: &Value, field: &str) -> Vec<String> {
    let mut places = vec![String::new()];
    let steps = field.replace("[]", ".[]");
    for step in steps.split('.').filter(|step| !step.is_empty()) {
        places = places
            .into_iter()
            .flat_map(|place| match (step, example.pointer(&place)) {
                ("[]", Some(Value::Array(items))) => (0..items.len()).map(|index| format!("{place}/{index}")).collect(),
                (name, Some(Value::Object(fields))) if fields.contains_key(name) => vec![format!("{place}/{name}")],
                _ => Vec::new(),
            })
            .collect();
    }
    places
}

/// Another value of the same type.
fn another(value: &Value, schema: &Value) -> Value {
    let choices = schema.get("enum").and_then(Value::as_array);
    if let Some(other) = choices.into_iter().flatten().find(|choice| *choice != value) {
        return other.clone();
    }
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        // A time stays a time; another text is just longer.
        Value::String(text) if text.ends_with('s') && text.starts_with(char::is_numeric) => json!(format!("1{text}")),
        Value::String(text) => json!(format!("{text}x")),
        // A map of texts gets one more, at its beginning.
        Value::Object(texts) => {
            let mut texts = texts.clone();
            texts.insert("a.example.com/a".to_owned(), json!("x"));
            Value::Object(texts)
        }
        other => panic!("{other} is no value"),
    }
}

static AUTHORITY: LazyLock<String> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["authority".to_owned()]).unwrap();
    made.cert.pem()
});

fn plan(kind: Kind, spec: &Value) -> String {
    let mut world = World::default();
    let (protocol, tls) = match kind {
        Kind::TlsRoute => ("TLS", json!({"mode": "Passthrough"})),
        Kind::TcpRoute => ("TCP", Value::Null),
        Kind::UdpRoute => ("UDP", Value::Null),
        _ => ("HTTP", Value::Null),
    };
    let transport = if kind == Kind::UdpRoute { "UDP" } else { "TCP" };
    let listeners = json!([{"name": "http", "port": 80, "protocol": protocol, "tls": tls}]);
    let gateway = |name: &str, scope: &str| {
        json!({"metadata": {"namespace": "a", "name": name}, "spec": {
            "gatewayClassName": "c", "listeners": listeners, "defaultScope": scope,
            "allowedListeners": {"namespaces": {"from": "All"}}}})
    };
    let mut objects = vec![
        (
            Kind::GatewayClass,
            json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}}),
        ),
        (Kind::Gateway, gateway("front", "None")),
        (Kind::Gateway, gateway("spare", "All")),
        (kind, json!({"metadata": {"namespace": "a", "name": "r"}, "spec": spec})),
    ];
    for name in ["web", "copy", "guard"] {
        let ports = json!([
            {"name": "one", "port": 80, "protocol": transport}, {"name": "two", "port": 81, "protocol": transport},
        ]);
        objects.push((
            Kind::Service,
            json!({"metadata": {"namespace": "a", "name": name}, "spec": {"ports": ports}}),
        ));
    }
    if matches!(kind, Kind::ListenerSet | Kind::BackendTlsPolicy) {
        // Whatever a set or a policy changes shows on a route.
        let parents = json!([{"name": "front"}, {"kind": "ListenerSet", "name": "r"}]);
        let spec = json!({"parentRefs": parents, "rules": [{"backendRefs": [backend("web")]}]});
        objects.push((
            Kind::HttpRoute,
            json!({"metadata": {"namespace": "a", "name": "route"}, "spec": spec}),
        ));
        objects.push((
            Kind::Namespace,
            json!({"metadata": {"name": "a", "labels": {"team": "red"}}}),
        ));
        objects.push((
            Kind::ConfigMap,
            json!({"metadata": {"namespace": "a", "name": "ca"}, "data": {"ca.crt": *AUTHORITY}}),
        ));
    }
    for (kind, value) in objects {
        world.apply(&Object::from_value(kind, value).unwrap());
    }
    shown(&world, PlanSettings::default())
}

/// Everything that is planned, as text.
fn shown(world: &World, settings: PlanSettings) -> String {
    let mut planner = Planner::new(settings);
    planner.update(world, &world.everything());
    let ir: Vec<_> = planner.gateways().values().collect();
    let statuses = planner.statuses().into_iter().map(|(key, status)| {
        let shown = render(&status, "gatewright.dev/gateway-controller", &Stamps::default());
        format!("{key:?} {shown}")
    });
    let statuses: Vec<String> = statuses.collect();
    let owned: Vec<Value> = planner.owned().filter_map(|(_, owned)| owned.to_value()).collect();
    format!(
        "{}{}{owned:?}",
        serde_saphyr::to_string(&ir).unwrap(),
        statuses.join("\n")
    )
}

fn spec(rule: &Value) -> Value {
    json!({
        "parentRefs": [{
            "group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "a", "name": "front",
            "sectionName": "http", "port": 80,
        }],
        "hostnames": ["a.example.com"],
        "useDefaultGateways": "None",
        "rules": [rule],
    })
}

fn backend(name: &str) -> Value {
    json!({"group": "", "kind": "Service", "namespace": "a", "name": name, "port": 80})
}

fn with(mut value: Value, more: &Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

/// Each list of filters once for the rule and once for its backend.
fn filtered(lists: &[Value]) -> Vec<Value> {
    let rules = lists.iter().flat_map(|filters| {
        let filters = json!({ "filters": filters });
        let rule = json!({"backendRefs": [with(backend("web"), &json!({"weight": 1}))]});
        let backend = with(backend("web"), &filters);
        [with(rule, &filters), json!({ "backendRefs": [backend] })]
    });
    rules.collect()
}

fn headers(name: &str) -> Value {
    let change = json!({
        "set": [{"name": "x-a", "value": "1"}], "add": [{"name": "x-b", "value": "1"}], "remove": ["x-c"],
    });
    let field = format!("{}{}", name[..1].to_lowercase(), &name[1..]);
    json!({"type": name, field: change})
}

fn sessions() -> [Value; 2] {
    let cookie = json!({
        "sessionName": "s", "absoluteTimeout": "1s", "idleTimeout": "1s", "type": "Cookie",
        "cookieConfig": {"lifetimeType": "Permanent"},
    });
    let header = json!({"sessionName": "s", "type": "Header"});
    [cookie, header].map(|session| json!({"sessionPersistence": session, "backendRefs": [backend("web")]}))
}

fn common_filters() -> Vec<Value> {
    let mirror = |share: Value| {
        let mirror = with(json!({ "backendRef": backend("copy") }), &share);
        json!({"type": "RequestMirror", "requestMirror": mirror})
    };
    vec![
        json!([headers("RequestHeaderModifier")]),
        json!([headers("ResponseHeaderModifier")]),
        json!([mirror(json!({"percent": 5}))]),
        json!([mirror(json!({"fraction": {"numerator": 1, "denominator": 3}}))]),
        json!([{"type": "ExtensionRef", "extensionRef": {"group": "x.com", "kind": "Y", "name": "z"}}]),
    ]
}

fn http_rules() -> Vec<Value> {
    let path = |kind: &str| {
        let field = format!("{}{}", kind[..1].to_lowercase(), &kind[1..]);
        json!({"type": kind, field: "/y"})
    };
    let redirect = |kind: &str| {
        json!({"type": "RequestRedirect", "requestRedirect": {
            "scheme": "https", "hostname": "b.com", "port": 81, "statusCode": 301, "path": path(kind)}})
    };
    let rewrite = |kind: &str| json!({"type": "URLRewrite", "urlRewrite": {"hostname": "b.com", "path": path(kind)}});
    let cors = json!({"type": "CORS", "cors": {
        "allowOrigins": ["https://a.com"], "allowMethods": ["GET"], "allowHeaders": ["x-a"], "exposeHeaders": ["x-b"],
        "allowCredentials": false, "maxAge": 10}});
    let auth = |protocol: &str, settings: Value| {
        let auth = json!({"protocol": protocol, "backendRef": backend("guard"), "forwardBody": {"maxSize": 5}});
        json!({"type": "ExternalAuth", "externalAuth": with(auth, &settings)})
    };
    let mut filters = common_filters();
    filters.extend([
        json!([redirect("ReplaceFullPath")]),
        json!([redirect("ReplacePrefixMatch")]),
        json!([rewrite("ReplaceFullPath")]),
        json!([rewrite("ReplacePrefixMatch")]),
        json!([cors]),
        json!([auth("GRPC", json!({"grpc": {"allowedHeaders": ["x-a"]}}))]),
        json!([auth(
            "HTTP",
            json!({"http": {
            "path": "/check", "allowedHeaders": ["x-a"], "allowedResponseHeaders": ["x-b"]}})
        )]),
    ]);
    let mut rules = filtered(&filters);
    let field = json!({"type": "Exact", "name": "n", "value": "v"});
    let condition = json!({
        "path": {"type": "Exact", "value": "/a"}, "method": "GET", "headers": [field], "queryParams": [field],
    });
    rules.push(json!({
        "name": "one",
        "matches": [condition],
        "timeouts": {"request": "5s", "backendRequest": "1s"},
        "retry": {"codes": [500], "attempts": 1, "backoff": "1s"},
        "backendRefs": [backend("web")],
    }));
    rules.extend(sessions());
    rules
}

fn grpc_rules() -> Vec<Value> {
    let mut rules = filtered(&common_filters());
    let condition = json!({
        "method": {"type": "Exact", "service": "a.B", "method": "Get"},
        "headers": [{"type": "Exact", "name": "n", "value": "v"}],
    });
    rules.push(json!({"name": "one", "matches": [condition], "backendRefs": [backend("web")]}));
    rules.extend(sessions());
    rules
}
