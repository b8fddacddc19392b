//! Bad input: it gets the condition that says so, and costs nobody else anything.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::{
    bed::shared,
    namespace::{CLASS, Namespace, condition, message, plain_gateway, plain_route, until_status},
    steady::{Steady, Style},
    web::{ask_secretly, get},
};

/// Listeners of which each two claim one port with two protocols. Kubernetes itself refuses those that differ in nothing.
fn conflicting(count: usize) -> Vec<Value> {
    let listener = |index: usize| {
        let is_plain = index.is_multiple_of(2);
        let mut listener = json!({
            "name": format!("l{index}"),
            "protocol": if is_plain { "HTTP" } else { "HTTPS" },
            "port": 8000,
            "hostname": format!("h{}.example.com", index / 2),
        });
        if !is_plain {
            listener["tls"] = json!({ "certificateRefs": [{ "name": "none" }] });
        }
        listener
    };
    (0..count).map(listener).collect()
}

fn gateway_of(name: &str, listeners: Vec<Value>) -> Value {
    let mut gateway = plain_gateway(name, CLASS);
    gateway["spec"]["listeners"] = Value::Array(listeners);
    gateway
}

#[test]
fn a_hundred_conflicting_listeners_are_told_and_disturb_nobody() {
    let namespace = Namespace::make(shared(), "conflicts");
    let others = Steady::start(namespace.served("others", CLASS), Style::Fresh);

    // Kubernetes takes 64 listeners of one Gateway, so a hundred are two Gateways.
    let refusal = shared().create(
        &namespace.path("gateway", ""),
        &gateway_of("too-many", conflicting(100)),
    );
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.code, 422, "{}", refusal.message);
    for (name, count) in [("many", 64), ("more", 36)] {
        namespace.create("gateway", &gateway_of(name, conflicting(count)));
    }
    for (name, count) in [("many", 64), ("more", 36)] {
        let gateway = namespace.until_gateway(name, "Accepted", ("False", "ListenersNotValid"));
        let conditions = &gateway["status"]["conditions"];
        assert_eq!(condition(conditions, "Programmed").0, "False");
        assert!(message(conditions, "Accepted").len() < 500, "{conditions}");
        let listeners = gateway["status"]["listeners"].as_array().unwrap();
        assert_eq!(listeners.len(), count);
        for listener in listeners {
            let found = condition(&listener["conditions"], "Conflicted");
            assert_eq!(found, ("True".to_owned(), "ProtocolConflict".to_owned()), "{listener}");
        }
    }
    // One good listener beside them is served.
    let mut listeners = conflicting(63);
    listeners.push(json!({ "name": "good", "protocol": "HTTP", "port": 80 }));
    namespace.create("gateway", &gateway_of("partly", listeners));
    namespace.route("partly", "partly", "others");
    let address = namespace.programmed("partly");
    until_status(SocketAddr::new(address, 80), "/", 200);
    others.stop().assert_sound("traffic beside conflicting listeners");
}

#[test]
fn what_the_schema_refuses_changes_nothing() {
    let namespace = Namespace::make(shared(), "schema");
    let address = namespace.served("good", CLASS);
    let others = Steady::start(address, Style::Fresh);
    let before = namespace.get("httproute", "good").unwrap();
    let mut route = plain_route("good", "good", "good");
    route["metadata"]["namespace"] = json!("schema");
    route["spec"]["rules"][0]["matches"] = json!([{ "path": { "type": "PathPrefix", "value": "no-slash" } }]);
    let refusal = shared().apply(&route.to_string()).unwrap_err();
    assert!(refusal.contains("must be an absolute path"), "{refusal}");
    route["metadata"]["name"] = json!("bad");
    shared().apply(&route.to_string()).unwrap_err();
    let after = namespace.get("httproute", "good").unwrap();
    assert_eq!(
        before["metadata"]["resourceVersion"],
        after["metadata"]["resourceVersion"]
    );
    assert_eq!(get(address, "/").unwrap().status, 200);
    others.stop().assert_sound("traffic beside refused routes");
}

#[test]
fn a_broken_certificate_costs_its_own_listener_only_until_it_is_mended() {
    let namespace = Namespace::make(shared(), "certificates");
    let others = Steady::start(namespace.served("others", CLASS), Style::Fresh);
    let secret = |certificate: &str, key: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "pair" }, "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": certificate, "tls.key": key },
        })
    };
    namespace.create("secret", &secret("-----BEGIN CERTIFICATE-----\nnonsense\n", "no key"));
    let listeners = vec![
        json!({ "name": "http", "protocol": "HTTP", "port": 80 }),
        json!({ "name": "https", "protocol": "HTTPS", "port": 443, "tls": { "certificateRefs": [{ "name": "pair" }] } }),
    ];
    namespace.create("gateway", &gateway_of("half", listeners));
    namespace.route("half", "half", "others");
    let gateway = namespace.until_gateway("half", "Accepted", ("True", "ListenersNotValid"));
    let broken = &gateway["status"]["listeners"][1];
    assert_eq!(broken["name"], "https");
    let found = condition(&broken["conditions"], "ResolvedRefs");
    assert_eq!(
        found,
        ("False".to_owned(), "InvalidCertificateRef".to_owned()),
        "{broken}"
    );
    assert_eq!(condition(&broken["conditions"], "Programmed").0, "False", "{broken}");
    let address = namespace.programmed("half");
    until_status(SocketAddr::new(address, 80), "/", 200);

    let demo = crate::quickstart::example("quickstart");
    let demo = demo.iter().find(|object| object["kind"] == "Secret").unwrap();
    let part = |name: &str| demo["stringData"][name].as_str().unwrap();
    let mended = secret(part("tls.crt"), part("tls.key"));
    namespace.patch("secret", "pair", &json!({ "stringData": mended["stringData"] }));
    namespace.until_gateway("half", "Accepted", ("True", "Accepted"));
    crate::bed::eventually("an answer with TLS", || {
        let response = ask_secretly(SocketAddr::new(address, 443), "/", &[], part("tls.crt"))?;
        crate::bed::holds(response.status == 200, format!("{response:?}"))
    });
    others.stop().assert_sound("traffic beside a broken certificate");
}
