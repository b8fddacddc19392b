//! The fields of a Gateway, planned on a host and in a cluster, with a ListenerSet, a route and what else it can refer to.

use gatewright_api::{CustomResourceExt, Gateway, config::Entry};

use super::*;

#[test]
fn every_field_of_a_gateway_makes_a_difference() {
    let selector = |team: &str| {
        json!({
            "matchLabels": {"team": team},
            "matchExpressions": [{"key": "team", "operator": "In", "values": [team]}],
        })
    };
    let from = |team: &str| json!({"from": "Selector", "selector": selector(team)});
    let kinds = json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}]);
    let plain = |team: &str| {
        json!({
            "name": "l", "port": 80, "protocol": "HTTP", "hostname": "a.example.com",
            "allowedRoutes": {"kinds": kinds, "namespaces": from(team)},
        })
    };
    let secret = json!({"group": "", "kind": "Secret", "namespace": "a", "name": "s"});
    let secure = |protocol: &str, mode: &str, options: Value| {
        let tls = json!({"mode": mode, "certificateRefs": [secret], "options": options});
        json!({"name": "m", "port": 443, "protocol": protocol, "tls": tls})
    };
    let authority = json!([{"group": "", "kind": "ConfigMap", "namespace": "a", "name": "ca"}]);
    let validation = json!({"validation": {"caCertificateRefs": authority, "mode": "AllowValidOnly"}});
    let frontend = json!({"default": {}, "perPort": [{"port": 443, "tls": validation}]});
    let parameters = json!({"group": "gatewright.dev", "kind": "GatewayConfig", "name": "config"});
    let gateway = |listener: Value, more: Value| {
        with(
            json!({"gatewayClassName": "c", "defaultScope": "None", "listeners": [listener]}),
            &more,
        )
    };
    let examples = [
        gateway(
            plain("red"),
            json!({
                "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}],
                "allowedListeners": {"namespaces": from("red")},
                "infrastructure": {"labels": {"b": "c"}, "annotations": {"d": "e"}, "parametersRef": parameters},
            }),
        ),
        gateway(plain("blue"), json!({"allowedListeners": {"namespaces": from("blue")}})),
        gateway(
            secure("HTTPS", "Terminate", json!({})),
            json!({"tls": {"frontend": frontend, "backend": {"clientCertificateRef": secret}}}),
        ),
        gateway(
            secure("HTTPS", "Terminate", json!({})),
            json!({"tls": {"frontend": {"default": validation}}}),
        ),
        gateway(secure("TLS", "Passthrough", json!({"example.com/own": "x"})), json!({})),
    ];
    let schema = serde_json::to_value(Gateway::crd()).unwrap();
    every_field_matters(Kind::Gateway, &schema, &examples, 45, |spec| {
        let host = shown(&world(World::default(), spec), PlanSettings::default());
        let settings = PlanSettings {
            default_entry: Entry::LoadBalancer,
            ..PlanSettings::default()
        };
        host + &shown(&world(World::in_cluster(), spec), settings)
    });
}

fn world(mut world: World, spec: &Value) -> World {
    let named = |name: &str| json!({"namespace": "a", "name": name});
    let (chain, key) = &*CERTIFICATE;
    let route = json!({"parentRefs": [{"name": "r"}], "useDefaultGateways": "All"});
    let listener = json!({"name": "l", "port": 82, "protocol": "HTTP"});
    let objects = [
        (
            Kind::GatewayClass,
            json!({"metadata": {"name": "c"}, "spec": {"controllerName": "gatewright.dev/gateway-controller"}}),
        ),
        (
            Kind::Namespace,
            json!({"metadata": {"name": "a", "labels": {"team": "red"}}}),
        ),
        (
            Kind::ConfigMap,
            json!({"metadata": named("ca"), "data": {"ca.crt": chain}}),
        ),
        (
            Kind::Secret,
            json!({"metadata": named("s"), "stringData": {"tls.crt": chain, "tls.key": key}}),
        ),
        (Kind::GatewayConfig, json!({"metadata": named("config"), "spec": {}})),
        (Kind::HttpRoute, json!({"metadata": named("route"), "spec": route})),
        (
            Kind::ListenerSet,
            json!({"metadata": named("set"), "spec": {"parentRef": {"name": "r"}, "listeners": [listener]}}),
        ),
        (Kind::Gateway, json!({"metadata": named("r"), "spec": spec})),
    ];
    for (kind, value) in objects {
        world.apply(&Object::from_value(kind, value).unwrap());
    }
    world
}

static CERTIFICATE: LazyLock<(String, String)> = LazyLock::new(|| {
    let made = rcgen::generate_simple_self_signed(vec!["a.example.com".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
});
