use gatewright_api::Object;
use serde_json::{Value, json};

use super::*;

fn target(name: &str, port: Option<&str>) -> Value {
    json!({"group": "", "kind": "Service", "name": name, "sectionName": port})
}

fn reduce(targets: &Value, validation: &Value, options: &Value) -> TlsPolicy {
    let mut validation = validation.clone();
    if validation.get("hostname").is_none() {
        validation["hostname"] = json!("a.example.com");
    }
    let value = json!({
        "metadata": {"namespace": "a", "name": "p", "generation": 3},
        "spec": {"targetRefs": targets, "validation": validation, "options": options},
    });
    match Object::from_value(Kind::BackendTlsPolicy, value).unwrap() {
        Object::BackendTlsPolicy(policy) => TlsPolicy::reduce(&policy, &mut Interner::default()),
        other => panic!("{other:?} is no BackendTLSPolicy"),
    }
}

fn validated(validation: &Value) -> TlsPolicy {
    reduce(&json!([target("web", None)]), validation, &Value::Null)
}

fn refused(policy: &TlsPolicy) -> Vec<&str> {
    policy.refusals.iter().map(|refusal| &*refusal.field).collect()
}

#[test]
fn targets_are_services_and_their_ports_each_once() {
    let targets = json!([
        target("web", Some("https")),
        target("web", None),
        target("api", None),
        target("web", None)
    ]);
    let policy = reduce(&targets, &json!({"wellKnownCACertificates": "System"}), &Value::Null);
    let targets: Vec<_> = policy
        .targets
        .iter()
        .map(|one| (&*one.service, one.port.as_deref()))
        .collect();
    assert_eq!(targets, [("api", None), ("web", None), ("web", Some("https"))]);
    assert_eq!(policy.meta.generation, 3);
    assert!(policy.refusals.is_empty());
}

#[test]
fn a_target_that_is_no_service_refuses_the_policy_for_the_others_as_well() {
    let targets = json!([target("web", None), {"group": "x.com", "kind": "Y", "name": "z"}]);
    let policy = reduce(&targets, &json!({"wellKnownCACertificates": "System"}), &Value::Null);
    assert_eq!(policy.targets.len(), 1);
    assert_eq!(refused(&policy), ["spec.targetRefs[1]"]);
}

#[test]
fn whom_to_believe_is_the_system_or_config_maps_of_the_own_namespace() {
    let system = validated(&json!({"wellKnownCACertificates": "System"}));
    assert!(system.trusts_system && system.authorities.is_empty());
    let given = validated(&json!({"caCertificateRefs": [
        {"group": "", "kind": "ConfigMap", "name": "ca"}, {"group": "x.com", "kind": "Y", "name": "z"},
    ]}));
    assert!(!given.trusts_system);
    let authorities = given.authorities.iter();
    let authorities: Vec<_> = authorities
        .map(|one| (&*one.group, &*one.kind, one.namespace.as_deref(), &*one.name))
        .collect();
    assert_eq!(
        authorities,
        [("", "ConfigMap", None, "ca"), ("x.com", "Y", None, "z")],
        "which kinds can be had is for the planner to say"
    );
    assert!(given.refusals.is_empty());
}

#[test]
fn the_hostname_is_in_small_letters_and_names_count_as_they_are() {
    let policy = validated(&json!({
        "hostname": "A.Example.com", "wellKnownCACertificates": "System",
        "subjectAltNames": [
            {"type": "Hostname", "hostname": "b.example.com"},
            {"type": "Hostname", "hostname": "*.example.com"},
            {"type": "URI", "uri": "spiffe://a.example.com/Test"},
        ],
    }));
    assert_eq!(&*policy.hostname, "a.example.com");
    let expected = [
        SubjectName::Dns(HostPattern::Exact("b.example.com".into())),
        SubjectName::Dns(HostPattern::Wildcard("example.com".into())),
        SubjectName::Uri("spiffe://a.example.com/Test".into()),
    ];
    assert_eq!(*policy.names, expected);
    assert!(policy.refusals.is_empty());
}

#[test]
fn what_would_leave_a_backend_less_known_than_was_asked_for_is_refused() {
    let system = |more: Value| {
        let mut validation = json!({"wellKnownCACertificates": "System"});
        validation
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        validation
    };
    let names = |name: Value| system(json!({"subjectAltNames": [name]}));
    let table = [
        (system(json!({"hostname": ""})), "spec.validation.hostname"),
        (system(json!({"hostname": "*.example.com"})), "spec.validation.hostname"),
        (system(json!({"hostname": "10.0.0.1"})), "spec.validation.hostname"),
        (
            json!({"wellKnownCACertificates": "example.com/own"}),
            "spec.validation.wellKnownCACertificates",
        ),
        (
            names(json!({"type": "Hostname"})),
            "spec.validation.subjectAltNames[0].hostname",
        ),
        (
            names(json!({"type": "Hostname", "hostname": "bad_host"})),
            "spec.validation.subjectAltNames[0].hostname",
        ),
        (
            names(json!({"type": "URI", "uri": "no-uri"})),
            "spec.validation.subjectAltNames[0].uri",
        ),
        (names(json!({"type": "URI"})), "spec.validation.subjectAltNames[0].uri"),
    ];
    for (validation, field) in table {
        assert_eq!(refused(&validated(&validation)), [field], "{validation}");
    }
    let options = json!({"example.com/minimum": "1.3"});
    let policy = reduce(&json!([target("web", None)]), &system(json!({})), &options);
    assert_eq!(refused(&policy), ["spec.options"]);
}
