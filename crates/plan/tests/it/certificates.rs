//! Certificates that listeners present, that clients must show, and that a Gateway shows to backends; and what time does
//! to them.

use gatewright_api::Kind;
use serde_json::{Value, json};

use crate::stage::{Stage, listener, with};

/// The 20th of January 2026, at its first second: the certificates that end on that day do so then.
const LAST: i64 = 1_768_867_200;

const OPEN: [&str; 4] = [
    "Accepted True Accepted",
    "Conflicted False NoConflicts",
    "Programmed True Programmed",
    "ResolvedRefs True ResolvedRefs",
];

fn https(name: &str, port: u16) -> Value {
    with(
        listener(name, "HTTPS", port),
        json!({"tls": {"certificateRefs": [{"name": "cert"}]}}),
    )
}

fn authority(kind: &str, name: &str, namespace: Option<&str>) -> Value {
    json!({"group": "", "kind": kind, "name": name, "namespace": namespace})
}

fn validation(authorities: &[Value]) -> Value {
    json!({"validation": {"caCertificateRefs": authorities}})
}

/// A Gateway with these listeners that asks for client certificates as said.
fn stage(listeners: Value, frontend: Value) -> Stage {
    let mut stage = Stage::new();
    stage.secret("a/cert", "x.com", None);
    stage.gateway("a/front", listeners, json!({"tls": {"frontend": frontend}}));
    stage
}

/// How many authorities a listener believes about its clients, and whether they may do without.
fn clients(stage: &Stage, origin: &str) -> Option<(usize, bool)> {
    let listener = stage.listener_ir("a/front", origin);
    let clients = listener.protocol.termination().unwrap().clients.as_ref()?;
    Some((clients.authorities.len(), clients.is_optional))
}

#[test]
fn client_certificates_are_asked_for_on_https_listeners_by_port() {
    let listeners = json!([
        https("default", 443),
        https("own", 8443),
        https("none", 9443),
        listener("http", "HTTP", 80),
        with(
            listener("tls", "TLS", 7443),
            json!({"tls": {"certificateRefs": [{"name": "cert"}]}})
        ),
    ]);
    let own = validation(&[
        authority("ConfigMap", "ca", None),
        authority("ConfigMap", "second", None),
    ]);
    let frontend = json!({
        "default": validation(&[authority("ConfigMap", "ca", None)]),
        "perPort": [{"port": 8443, "tls": own}, {"port": 9443, "tls": {}}, {"port": 80, "tls": own}],
    });
    let mut stage = stage(listeners, frontend);
    stage.authority("a/ca");
    stage.authority("a/second");
    stage.listen();
    for name in ["default", "own", "none", "http", "tls"] {
        assert_eq!(stage.shown(Kind::Gateway, "a/front", name), OPEN, "{name}");
    }
    assert_eq!(clients(&stage, "Gateway/a/front/default"), Some((1, false)));
    assert_eq!(clients(&stage, "Gateway/a/front/own"), Some((2, false)));
    assert_eq!(clients(&stage, "Gateway/a/front/none"), None);
    assert_eq!(
        clients(&stage, "Gateway/a/front/tls"),
        None,
        "that is a matter of HTTPS"
    );
    let shown = stage.shown(Kind::Gateway, "a/front", "");
    assert_eq!(shown, ["Accepted True Accepted", "Programmed True Programmed"]);
}

#[test]
fn a_listener_whose_clients_nobody_could_know_stays_closed_and_says_why() {
    let listeners = json!([
        https("fine", 443),
        https("missing", 7443),
        https("kind", 8443),
        https("foreign", 6443),
        https("empty", 5443),
        listener("http", "HTTP", 80),
    ]);
    let port = |port: u16, authority: Value| json!({"port": port, "tls": validation(&[authority])});
    let frontend = json!({
        "default": validation(&[authority("ConfigMap", "ca", None)]),
        "perPort": [
            port(7443, authority("ConfigMap", "none", None)),
            port(8443, authority("Service", "ca", None)),
            port(6443, authority("ConfigMap", "ca", Some("b"))),
            port(5443, authority("ConfigMap", "empty", None)),
            port(80, authority("ConfigMap", "none", None)),
        ],
    });
    let mut stage = stage(listeners, frontend);
    stage.authority("a/ca");
    stage.authority("b/ca");
    stage.apply_at(1, Kind::ConfigMap, "a/empty", json!({"data": {"ca.crt": ""}}));
    stage.listen();
    for name in ["fine", "http"] {
        assert_eq!(stage.shown(Kind::Gateway, "a/front", name), OPEN, "{name}");
    }
    let table = [
        ("missing", "InvalidCACertificateRef"),
        ("kind", "InvalidCACertificateKind"),
        ("foreign", "RefNotPermitted"),
        ("empty", "InvalidCACertificateRef"),
    ];
    for (name, reason) in table {
        let expected = [
            "Accepted False NoValidCACertificate".to_owned(),
            "Conflicted False NoConflicts".to_owned(),
            "Programmed False Invalid".to_owned(),
            format!("ResolvedRefs False {reason}"),
        ];
        assert_eq!(stage.shown(Kind::Gateway, "a/front", name), expected, "{name}");
    }
    let shown = stage.shown(Kind::Gateway, "a/front", "");
    assert_eq!(shown, ["Accepted True ListenersNotValid", "Programmed True Programmed"]);
    assert_eq!(
        stage.served("a/front"),
        ["Gateway/a/front/fine 443 HTTPS", "Gateway/a/front/http 80 HTTP"]
    );
    // What is missing comes, and what is foreign is granted.
    stage.authority("a/none");
    stage.apply(
        Kind::ReferenceGrant,
        "b/g",
        json!({
            "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "a"}],
            "to": [{"group": "", "kind": "ConfigMap"}],
        }),
    );
    stage.listen();
    for name in ["missing", "foreign"] {
        assert_eq!(stage.shown(Kind::Gateway, "a/front", name), OPEN, "{name}");
    }
    stage.delete(Kind::ReferenceGrant, "b/g");
    assert_eq!(
        stage.shown(Kind::Gateway, "a/front", "foreign")[3],
        "ResolvedRefs False RefNotPermitted"
    );
    assert!(!stage.served("a/front").iter().any(|one| one.contains("/foreign")));
}

#[test]
fn one_authority_of_two_is_enough_to_serve_and_the_other_is_told() {
    let both = [authority("ConfigMap", "ca", None), authority("ConfigMap", "none", None)];
    let mut stage = stage(json!([https("l", 443)]), json!({"default": validation(&both)}));
    stage.authority("a/ca");
    stage.listen();
    let shown = stage.shown(Kind::Gateway, "a/front", "l");
    assert_eq!(shown[0], "Accepted True Accepted");
    assert_eq!(shown[3], "ResolvedRefs False InvalidCACertificateRef");
    assert_eq!(clients(&stage, "Gateway/a/front/l"), Some((1, false)));
}

#[test]
fn letting_everybody_in_is_done_and_shown() {
    let mut optional = validation(&[authority("ConfigMap", "ca", None)]);
    optional["validation"]["mode"] = json!("AllowInsecureFallback");
    let mut stage = stage(json!([https("l", 443)]), json!({ "default": optional }));
    stage.authority("a/ca");
    stage.listen();
    assert_eq!(clients(&stage, "Gateway/a/front/l"), Some((1, true)));
    let shown = stage.shown(Kind::Gateway, "a/front", "");
    assert_eq!(
        shown,
        [
            "Accepted True Accepted",
            "Programmed True Programmed",
            "InsecureFrontendValidationMode True ConfigurationChanged",
        ]
    );
}

#[test]
fn a_listener_that_is_not_served_keeps_its_names_where_its_port_is_open() {
    let host = |name: &str, host: &str, certificate: &str| {
        let tls = json!({"certificateRefs": [{"name": certificate}]});
        with(listener(name, "HTTPS", 443), json!({"hostname": host, "tls": tls}))
    };
    let passthrough = with(
        listener("option", "TLS", 443),
        json!({"hostname": "c.x.com", "tls": {"mode": "Passthrough", "options": {"example.com/own": "x"}}}),
    );
    let mut stage = Stage::new();
    stage.secret("a/cert", "x.com", None);
    let listeners = json!([
        host("all", "*.x.com", "cert"),
        host("broken", "b.x.com", "none"),
        passthrough,
        https("alone", 8443)
    ]);
    stage.gateway("a/front", listeners, json!({}));
    let sealed = [
        "Gateway/a/front/all 443 HTTPS",
        "Gateway/a/front/broken 443 sealed",
        "Gateway/a/front/option 443 sealed",
        "Gateway/a/front/alone 8443 HTTPS",
    ];
    assert_eq!(stage.served("a/front"), sealed);
    stage.listen();
    let broken = stage.shown(Kind::Gateway, "a/front", "broken");
    assert_eq!(broken[2], "Programmed False Invalid");
    // The last one that serves goes, and with it the port.
    let listeners = json!([host("broken", "b.x.com", "none"), https("alone", 8443)]);
    stage.gateway("a/front", listeners, json!({}));
    assert_eq!(stage.served("a/front"), ["Gateway/a/front/alone 8443 HTTPS"]);
    // The Secret comes, and the listener serves.
    stage.secret("a/none", "b.x.com", None);
    assert_eq!(stage.served("a/front")[0], "Gateway/a/front/broken 443 HTTPS");
}

#[test]
fn listeners_in_conflict_have_no_names_to_keep() {
    let mut stage = Stage::new();
    stage.secret("a/cert", "x.com", None);
    let host = |name: &str, host: &str| with(https(name, 443), json!({ "hostname": host }));
    let listeners = json!([host("one", "a.x.com"), host("two", "a.x.com"), host("rest", "*.x.com")]);
    stage.gateway("a/front", listeners, json!({}));
    assert_eq!(stage.served("a/front"), ["Gateway/a/front/rest 443 HTTPS"]);
}

fn identity(stage: &mut Stage, reference: Value) {
    let tls = json!({"tls": {"backend": {"clientCertificateRef": reference}}});
    stage.gateway("a/front", json!([listener("l", "HTTP", 80)]), tls);
    stage.listen();
}

#[test]
fn the_certificate_for_backends_is_shown_as_resolved_or_why_not_and_the_gateway_serves() {
    let mut stage = Stage::new();
    stage.secret("a/cert", "x.com", None);
    stage.secret("b/cert", "x.com", None);
    stage.apply_at(1, Kind::Secret, "a/empty", json!({"type": "Opaque"}));
    let table = [
        (json!({"name": "cert"}), "ResolvedRefs True ResolvedRefs"),
        (
            json!({"name": "none"}),
            "ResolvedRefs False InvalidClientCertificateRef",
        ),
        (
            json!({"name": "empty"}),
            "ResolvedRefs False InvalidClientCertificateRef",
        ),
        (
            json!({"group": "x.com", "kind": "Secret", "name": "cert"}),
            "ResolvedRefs False InvalidClientCertificateRef",
        ),
        (
            json!({"kind": "ConfigMap", "name": "cert"}),
            "ResolvedRefs False InvalidClientCertificateRef",
        ),
        (
            json!({"name": "cert", "namespace": "b"}),
            "ResolvedRefs False RefNotPermitted",
        ),
    ];
    for (reference, expected) in table {
        identity(&mut stage, reference.clone());
        let shown = stage.shown(Kind::Gateway, "a/front", "");
        assert_eq!(
            shown,
            ["Accepted True Accepted", "Programmed True Programmed", expected],
            "{reference}"
        );
        assert_eq!(
            stage.ir("a/front").identity.is_some(),
            expected.contains("True"),
            "{reference}"
        );
        assert_eq!(stage.served("a/front").len(), 1);
    }
    stage.apply(
        Kind::ReferenceGrant,
        "b/g",
        json!({
            "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "a"}],
            "to": [{"group": "", "kind": "Secret", "name": "cert"}],
        }),
    );
    assert!(stage.ir("a/front").identity.is_some(), "it was granted");
    stage.delete(Kind::ReferenceGrant, "b/g");
    assert!(stage.ir("a/front").identity.is_none(), "the grant was revoked");
    identity(&mut stage, json!({"name": "cert"}));
    stage.delete(Kind::Secret, "a/cert");
    assert!(stage.ir("a/front").identity.is_none());
}

#[test]
fn an_expired_certificate_is_told_and_presented_all_the_same() {
    let mut stage = Stage::new();
    stage.secret("a/cert", "x.com", Some(20));
    let tls = json!({"tls": {"backend": {"clientCertificateRef": {"name": "cert"}}}});
    stage.gateway("a/front", json!([https("l", 443)]), tls);
    stage.listen();
    stage.time(LAST);
    assert_eq!(stage.shown(Kind::Gateway, "a/front", "l"), OPEN);
    let before = stage.ir("a/front").clone();
    stage.time(LAST + 1);
    let expired = [
        "Accepted True Accepted",
        "Conflicted False NoConflicts",
        "Programmed True Programmed",
        "ResolvedRefs False InvalidCertificateRef",
    ];
    assert_eq!(stage.shown(Kind::Gateway, "a/front", "l"), expired);
    assert_eq!(
        stage.shown(Kind::Gateway, "a/front", "")[2],
        "ResolvedRefs False InvalidClientCertificateRef"
    );
    assert_eq!(
        stage.told(Kind::Gateway, "a/front", "l", "ResolvedRefs"),
        "the certificate in Secret a/cert has expired on 2026-01-20T00:00:00Z; it is presented until there is another"
    );
    assert_eq!(*stage.ir("a/front"), before, "a data plane hears nothing of it");
    stage.time(1_767_225_600 - 1);
    assert!(
        stage
            .told(Kind::Gateway, "a/front", "l", "ResolvedRefs")
            .contains("is not valid before 2026-01-01T00:00:00Z")
    );
    stage.time(LAST + 1);
    stage.secret("a/cert", "x.com", None);
    assert_eq!(stage.shown(Kind::Gateway, "a/front", "l"), OPEN, "it was renewed");
    assert_ne!(*stage.ir("a/front"), before);
}
