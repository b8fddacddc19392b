//! BackendTLSPolicies: which one counts for a port of a Service, what is refused, and what each shows.

use gatewright_api::Kind;
use gatewright_ir::{Security, SubjectName, Trust};
use gatewright_world::desired::Status;
use serde_json::{Value, json};

use crate::stage::{Stage, listener, with};

const IN_FORCE: [&str; 2] = ["Accepted True Accepted", "ResolvedRefs True ResolvedRefs"];

fn target(port: Option<&str>) -> Value {
    json!({"group": "", "kind": "Service", "name": "web", "sectionName": port})
}

fn system(hostname: &str) -> Value {
    json!({"hostname": hostname, "wellKnownCACertificates": "System"})
}

fn given(kind: &str, names: &[&str]) -> Value {
    let references: Vec<Value> = names
        .iter()
        .map(|name| json!({"group": if kind == "InvalidKind" { "invalid.io" } else { "" }, "kind": kind, "name": name}))
        .collect();
    json!({"hostname": "a.x.com", "caCertificateRefs": references})
}

fn policy(stage: &mut Stage, day: u8, name: &str, targets: &Value, validation: Value) {
    let spec = json!({"targetRefs": targets, "validation": validation});
    stage.apply_at(day, Kind::BackendTlsPolicy, name, json!({ "spec": spec }));
}

/// A Gateway whose route sends to both ports of a Service.
fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.gateway("a/front", json!([listener("l", "HTTP", 80)]), json!({}));
    stage.service(
        "a/web",
        json!([{"name": "one", "port": 443}, {"name": "two", "port": 444}]),
    );
    stage.apply(Kind::HttpRoute, "a/r", route(&["front"]));
    stage
}

fn route(gateways: &[&str]) -> Value {
    let parents: Vec<Value> = gateways.iter().map(|name| json!({ "name": name })).collect();
    json!({"parentRefs": parents, "rules": [{"backendRefs": [{"name": "web", "port": 443}, {"name": "web", "port": 444}]}]})
}

/// How each port of the Service is protected: the name asked for, or `clear`, or `refused`.
fn protection(stage: &Stage) -> Vec<String> {
    let clusters = stage.ir("a/front").clusters.values();
    clusters
        .map(|cluster| match &cluster.security {
            Security::Clear => "clear".to_owned(),
            Security::Refused => "refused".to_owned(),
            Security::Tls(tls) => tls.hostname.to_string(),
        })
        .collect()
}

fn shown(stage: &Stage, name: &str) -> Vec<String> {
    stage.shown(Kind::BackendTlsPolicy, name, "a/front")
}

#[test]
fn a_policy_protects_all_ports_of_its_service_as_soon_as_it_is_there() {
    let mut stage = stage();
    assert_eq!(protection(&stage), ["clear", "clear"]);
    policy(&mut stage, 1, "a/p", &json!([target(None)]), system("a.x.com"));
    assert_eq!(protection(&stage), ["a.x.com", "a.x.com"]);
    assert_eq!(shown(&stage, "a/p"), IN_FORCE);
    stage.delete(Kind::BackendTlsPolicy, "a/p");
    assert_eq!(protection(&stage), ["clear", "clear"]);
    assert_eq!(stage.status(Kind::BackendTlsPolicy, "a/p"), None);
}

#[test]
fn a_policy_for_a_port_counts_there_before_one_for_the_whole_service_whatever_their_age() {
    let mut stage = stage();
    policy(&mut stage, 1, "a/all", &json!([target(None)]), system("all.x.com"));
    policy(
        &mut stage,
        2,
        "a/one",
        &json!([target(Some("one"))]),
        system("one.x.com"),
    );
    assert_eq!(protection(&stage), ["one.x.com", "all.x.com"]);
    assert_eq!(shown(&stage, "a/all"), IN_FORCE);
    assert_eq!(shown(&stage, "a/one"), IN_FORCE);
    stage.delete(Kind::BackendTlsPolicy, "a/all");
    assert_eq!(protection(&stage), ["one.x.com", "clear"]);
}

#[test]
fn of_two_policies_for_the_same_the_older_counts_then_the_first_by_name() {
    let mut stage = stage();
    policy(&mut stage, 2, "a/young", &json!([target(None)]), system("young.x.com"));
    policy(&mut stage, 1, "a/old", &json!([target(None)]), system("old.x.com"));
    policy(&mut stage, 1, "a/older", &json!([target(None)]), system("older.x.com"));
    assert_eq!(protection(&stage), ["old.x.com", "old.x.com"]);
    assert_eq!(shown(&stage, "a/old"), IN_FORCE);
    for name in ["a/young", "a/older"] {
        assert_eq!(
            shown(&stage, name),
            ["Accepted False Conflicted", "ResolvedRefs True ResolvedRefs"],
            "{name}"
        );
    }
    assert_eq!(
        stage.told(Kind::BackendTlsPolicy, "a/young", "a/front", "Accepted"),
        "BackendTLSPolicy a/old is older and for Service a/web as well"
    );
    stage.delete(Kind::BackendTlsPolicy, "a/old");
    assert_eq!(shown(&stage, "a/older"), IN_FORCE);
    assert_eq!(protection(&stage), ["older.x.com", "older.x.com"]);
}

#[test]
fn a_policy_that_cannot_be_honoured_lets_nothing_through_also_where_a_younger_one_could() {
    let odd = with(
        system("a.x.com"),
        json!({"subjectAltNames": [{"type": "URI", "uri": "no-uri"}]}),
    );
    let refused = "ResolvedRefs True ResolvedRefs";
    let table = [
        (
            given("ConfigMap", &["none"]),
            [
                "Accepted False NoValidCACertificate",
                "ResolvedRefs False InvalidCACertificateRef",
            ],
        ),
        (
            given("ConfigMap", &["empty"]),
            [
                "Accepted False NoValidCACertificate",
                "ResolvedRefs False InvalidCACertificateRef",
            ],
        ),
        (
            given("InvalidKind", &["ca"]),
            ["Accepted False NoValidCACertificate", "ResolvedRefs False InvalidKind"],
        ),
        (
            given("Secret", &["ca"]),
            ["Accepted False NoValidCACertificate", "ResolvedRefs False InvalidKind"],
        ),
        (system("bad_host"), ["Accepted False Invalid", refused]),
        (odd, ["Accepted False Invalid", refused]),
        (
            json!({"hostname": "a.x.com", "wellKnownCACertificates": "Other"}),
            ["Accepted False Invalid", refused],
        ),
    ];
    for (validation, expected) in table {
        let mut stage = stage();
        stage.authority("a/ca");
        stage.apply_at(1, Kind::ConfigMap, "a/empty", json!({"data": {}}));
        policy(&mut stage, 1, "a/p", &json!([target(None)]), validation.clone());
        policy(&mut stage, 2, "a/young", &json!([target(None)]), system("young.x.com"));
        assert_eq!(shown(&stage, "a/p"), expected, "{validation}");
        assert_eq!(protection(&stage), ["refused", "refused"], "{validation}");
        let route = stage.shown(Kind::HttpRoute, "a/r", "0");
        assert_eq!(
            route,
            ["Accepted True Accepted", "ResolvedRefs True ResolvedRefs"],
            "{validation}"
        );
    }
}

#[test]
fn authorities_that_come_and_go_open_and_close_the_way_to_the_service() {
    let mut stage = stage();
    policy(
        &mut stage,
        1,
        "a/p",
        &json!([target(None)]),
        given("ConfigMap", &["ca"]),
    );
    let broken = [
        "Accepted False NoValidCACertificate",
        "ResolvedRefs False InvalidCACertificateRef",
    ];
    assert_eq!(
        (shown(&stage, "a/p"), protection(&stage)[0].as_str()),
        (broken.map(String::from).to_vec(), "refused")
    );
    stage.authority("a/ca");
    assert_eq!(shown(&stage, "a/p"), IN_FORCE);
    assert_eq!(protection(&stage), ["a.x.com", "a.x.com"]);
    stage.apply_at(1, Kind::ConfigMap, "a/ca", json!({"data": {"ca.crt": ""}}));
    assert_eq!(shown(&stage, "a/p"), broken);
    assert_eq!(protection(&stage), ["refused", "refused"]);
    stage.authority("a/ca");
    assert_eq!(shown(&stage, "a/p"), IN_FORCE);
    stage.delete(Kind::ConfigMap, "a/ca");
    assert_eq!(protection(&stage), ["refused", "refused"]);
}

#[test]
fn one_authority_of_two_is_enough_and_the_other_is_told() {
    let mut stage = stage();
    stage.authority("a/ca");
    policy(
        &mut stage,
        1,
        "a/p",
        &json!([target(None)]),
        given("ConfigMap", &["none", "ca"]),
    );
    let partly = ["Accepted True Accepted", "ResolvedRefs False InvalidCACertificateRef"];
    assert_eq!(shown(&stage, "a/p"), partly);
    let cluster = stage.ir("a/front").clusters.values().next().unwrap();
    let Security::Tls(tls) = &cluster.security else {
        panic!("{:?} is no TLS", cluster.security)
    };
    assert!(matches!(&tls.trust, Trust::Given(authorities) if authorities.len() == 1));
}

#[test]
fn names_that_count_instead_of_the_hostname_reach_the_data_plane() {
    let mut stage = stage();
    let names = json!([{"type": "URI", "uri": "spiffe://x.com/me"}, {"type": "Hostname", "hostname": "b.x.com"}]);
    policy(
        &mut stage,
        1,
        "a/p",
        &json!([target(None)]),
        with(system("a.x.com"), json!({"subjectAltNames": names})),
    );
    let cluster = stage.ir("a/front").clusters.values().next().unwrap();
    let Security::Tls(tls) = &cluster.security else {
        panic!("{:?} is no TLS", cluster.security)
    };
    assert_eq!(tls.trust, Trust::System);
    assert_eq!((&*tls.hostname, tls.names.len()), ("a.x.com", 2));
    assert_eq!(tls.names[0], SubjectName::Uri("spiffe://x.com/me".into()));
}

#[test]
fn a_port_that_speaks_https_needs_a_policy_and_has_one_as_soon_as_it_comes() {
    let mut stage = stage();
    let ports = json!([{"name": "one", "port": 443, "appProtocol": "HTTPS"}, {"name": "two", "port": 444}]);
    stage.service("a/web", ports);
    let route = |stage: &Stage| stage.shown(Kind::HttpRoute, "a/r", "0")[1].clone();
    assert_eq!(route(&stage), "ResolvedRefs False UnsupportedProtocol");
    assert!(
        stage
            .told(Kind::HttpRoute, "a/r", "0", "ResolvedRefs")
            .contains("a BackendTLSPolicy must say how it is known")
    );
    assert_eq!(protection(&stage), ["clear"], "only the other port has a cluster");
    policy(&mut stage, 1, "a/p", &json!([target(Some("one"))]), system("a.x.com"));
    assert_eq!(route(&stage), "ResolvedRefs True ResolvedRefs");
    assert_eq!(protection(&stage), ["a.x.com", "clear"]);
    stage.delete(Kind::BackendTlsPolicy, "a/p");
    assert_eq!(route(&stage), "ResolvedRefs False UnsupportedProtocol");
}

#[test]
fn a_policy_is_shown_for_every_gateway_that_sends_to_its_service_and_for_no_other() {
    let mut stage = stage();
    for (name, port) in [("back", 81), ("idle", 82)] {
        stage.gateway(&format!("a/{name}"), json!([listener("l", "HTTP", port)]), json!({}));
    }
    policy(&mut stage, 1, "a/p", &json!([target(None)]), system("a.x.com"));
    let gateways = |stage: &Stage| -> Vec<String> {
        match stage.status(Kind::BackendTlsPolicy, "a/p") {
            Some(Status::Policy(status)) => status.gateways.iter().map(ToString::to_string).collect(),
            None => Vec::new(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(gateways(&stage), ["a/front"]);
    stage.apply(Kind::HttpRoute, "a/r", route(&["front", "back"]));
    assert_eq!(gateways(&stage), ["a/back", "a/front"]);
    stage.delete(Kind::Gateway, "a/front");
    assert_eq!(gateways(&stage), ["a/back"]);
    stage.delete(Kind::HttpRoute, "a/r");
    assert!(gateways(&stage).is_empty());
}

#[test]
fn a_policy_counts_for_connections_and_not_for_datagrams() {
    let mut stage = Stage::new();
    stage.gateway(
        "a/front",
        json!([listener("tcp", "TCP", 80), listener("udp", "UDP", 80)]),
        json!({}),
    );
    stage.service(
        "a/web",
        json!([{"name": "one", "port": 53}, {"name": "two", "port": 53, "protocol": "UDP"}]),
    );
    let spec = json!({"parentRefs": [{"name": "front"}], "rules": [{"backendRefs": [{"name": "web", "port": 53}]}]});
    stage.apply(Kind::TcpRoute, "a/r", spec.clone());
    stage.apply(Kind::UdpRoute, "a/r", spec);
    policy(&mut stage, 1, "a/p", &json!([target(None)]), system("a.x.com"));
    assert_eq!(protection(&stage), ["a.x.com", "clear"]);
}
