use crate::{
    Key,
    desired::{ConditionKind, GatewayStatus, PolicyStatus, Reason, SetStatus},
};

use super::*;

const CONTROLLER: &str = "gatewright.dev/gateway-controller";

fn listener(name: &str) -> ListenerStatus {
    ListenerStatus {
        name: name.into(),
        attached: 2,
        kinds: vec!["TLSRoute", "TCPRoute"],
        conditions: vec![Condition::fails(
            ConditionKind::Accepted,
            Reason::HostnameConflict,
            "in the way",
        )],
    }
}

fn shown(status: &Status, time: &str) -> Value {
    let mut stamps = Stamps::default();
    stamps.update(status, time);
    render(status, CONTROLLER, &stamps)
}

#[test]
fn a_listener_set_shows_its_conditions_and_those_of_its_listeners() {
    let accepted = Condition::holds(ConditionKind::Accepted, Reason::ListenersNotValid, "one is not");
    let status = Status::ListenerSet(SetStatus {
        generation: 7,
        conditions: vec![accepted],
        listeners: vec![listener("tls")],
    });
    let expected = json!({
        "conditions": [{
            "type": "Accepted", "status": "True", "reason": "ListenersNotValid", "message": "one is not",
            "observedGeneration": 7, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
        "listeners": [{
            "name": "tls",
            "attachedRoutes": 2,
            "supportedKinds": [
                {"group": "gateway.networking.k8s.io", "kind": "TLSRoute"},
                {"group": "gateway.networking.k8s.io", "kind": "TCPRoute"},
            ],
            "conditions": [{
                "type": "Accepted", "status": "False", "reason": "HostnameConflict", "message": "in the way",
                "observedGeneration": 7, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        }],
    });
    assert_eq!(shown(&status, "2026-01-01T00:00:00Z"), expected);
}

#[test]
fn a_gateway_says_how_many_listener_sets_add_to_it() {
    let status = Status::Gateway(GatewayStatus {
        generation: 1,
        addresses: Vec::new(),
        attached_sets: 3,
        conditions: Vec::new(),
        listeners: Vec::new(),
    });
    assert_eq!(shown(&status, "2026-01-01T00:00:00Z")["attachedListenerSets"], 3);
}

#[test]
fn a_condition_of_a_listener_keeps_its_time_while_it_keeps_its_state() {
    let status = |names: &[&str]| {
        Status::ListenerSet(SetStatus {
            generation: 1,
            conditions: Vec::new(),
            listeners: names.iter().map(|name| listener(name)).collect(),
        })
    };
    let mut stamps = Stamps::default();
    stamps.update(&status(&["one"]), "2026-01-01T00:00:00Z");
    stamps.update(&status(&["one", "two"]), "2026-01-02T00:00:00Z");
    let rendered = render(&status(&["one", "two"]), CONTROLLER, &stamps);
    let time = |index: usize| rendered["listeners"][index]["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(
        (time(0), time(1)),
        (json!("2026-01-01T00:00:00Z"), json!("2026-01-02T00:00:00Z"))
    );
}

#[test]
fn a_policy_shows_the_same_for_each_gateway_that_sends_to_its_services() {
    let status = Status::Policy(PolicyStatus {
        generation: 2,
        gateways: [Key::new("a", "one"), Key::new("b", "two")].into(),
        conditions: [
            Condition::fails(ConditionKind::Accepted, Reason::NoValidCACertificate, "nobody is left"),
            Condition::fails(
                ConditionKind::ResolvedRefs,
                Reason::InvalidCACertificateRef,
                "it is gone",
            ),
        ]
        .into(),
    });
    let rendered = shown(&status, "2026-01-01T00:00:00Z");
    let ancestors = rendered["ancestors"].as_array().unwrap();
    assert_eq!(ancestors.len(), 2);
    let expected = json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "b", "name": "two"});
    assert_eq!(ancestors[1]["ancestorRef"], expected);
    for ancestor in ancestors {
        assert_eq!(ancestor["controllerName"], CONTROLLER);
        let reasons: Vec<&Value> = ancestor["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["reason"])
            .collect();
        assert_eq!(reasons, ["NoValidCACertificate", "InvalidCACertificateRef"]);
    }
}
