use gatewright_world::{
    Key,
    desired::{Condition, ConditionKind, GatewayStatus, PolicyStatus, Reason, Status},
};
use serde_json::json;

use super::{changes, event_name};

fn gateway(condition: Condition) -> Status {
    Status::Gateway(GatewayStatus {
        generation: 1,
        addresses: Vec::new(),
        attached_sets: 0,
        conditions: vec![condition],
        listeners: Vec::new(),
    })
}

fn shown(kind: &str, state: &str, reason: &str) -> serde_json::Value {
    json!({"conditions": [{"type": kind, "status": state, "reason": reason, "message": "why"}]})
}

#[test]
fn trouble_is_told_once_and_its_end_too() {
    let bad = gateway(Condition::fails(
        ConditionKind::Accepted,
        Reason::InvalidParameters,
        "why",
    ));
    let good = gateway(Condition::holds(ConditionKind::Accepted, Reason::Accepted, "why"));
    let (was_bad, was_good) = (
        shown("Accepted", "False", "InvalidParameters"),
        shown("Accepted", "True", "Accepted"),
    );
    let told = changes(&bad, &was_good, &was_bad, "us");
    assert_eq!(told.len(), 1);
    assert!(told[0].is_warning && told[0].reason == "InvalidParameters" && told[0].note == "why");
    assert_eq!(changes(&bad, &was_bad, &was_bad, "us"), vec![]);
    let told = changes(&good, &was_bad, &was_good, "us");
    assert!(told.len() == 1 && !told[0].is_warning, "{told:?}");
}

#[test]
fn a_gateway_that_begins_to_serve_is_told_and_one_that_waits_is_not() {
    let waits = gateway(Condition::fails(ConditionKind::Programmed, Reason::Pending, "why"));
    let serves = gateway(Condition::holds(ConditionKind::Programmed, Reason::Programmed, "why"));
    let (waiting, serving) = (
        shown("Programmed", "False", "Pending"),
        shown("Programmed", "True", "Programmed"),
    );
    assert_eq!(changes(&waits, &json!({}), &waiting, "us"), vec![]);
    assert_eq!(changes(&serves, &waiting, &serving, "us").len(), 1);
    assert_eq!(
        changes(&serves, &shown("Programmed", "Unknown", "Pending"), &serving, "us").len(),
        1
    );
}

#[test]
fn a_policy_that_is_in_conflict_is_told_with_its_ancestor() {
    let conflicted = Condition::fails(ConditionKind::Accepted, Reason::Conflicted, "why");
    let status = Status::Policy(PolicyStatus {
        generation: 1,
        gateways: Box::new([Key::new("infra", "edge")]),
        conditions: Box::new([conflicted]),
    });
    let shown = |controller: &str, state: &str, reason: &str| {
        json!({"ancestors": [{"controllerName": controller, "ancestorRef": {"name": "edge"},
               "conditions": [{"type": "Accepted", "status": state, "reason": reason, "message": "why"}]}]})
    };
    let (before, after) = (shown("us", "True", "Accepted"), shown("us", "False", "Conflicted"));
    let told = changes(&status, &before, &after, "us");
    assert_eq!(told.len(), 1);
    assert!(told[0].is_warning && told[0].note == "ancestor edge: why", "{told:?}");
    assert_eq!(changes(&status, &after, &after, "us"), vec![]);
    assert_eq!(
        changes(&status, &before, &shown("them", "False", "Conflicted"), "us"),
        vec![]
    );
}

#[test]
fn the_name_of_an_event_is_legal_for_the_longest_object() {
    let name = event_name(&format!("{}-b", "a".repeat(219)), jiff::Timestamp::UNIX_EPOCH);
    assert!(name.len() <= 253 && !name.contains("-."), "{name}");
    let name = event_name(&"a".repeat(253), jiff::Timestamp::now());
    assert!(name.len() <= 253, "{name}");
}
