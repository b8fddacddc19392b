use gatewright_api::Kind;
use serde_json::{Value, json};

use super::{fingerprint, has_ours, merge, patch};

const US: &str = "example.com/us";
const THEM: &str = "example.com/them";

fn entry(controller: &str, parent: &str, state: &str, time: &str) -> Value {
    json!({
        "controllerName": controller,
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": parent},
        "conditions": [{"type": "Accepted", "status": state, "reason": "R", "message": "m", "observedGeneration": 1,
                        "lastTransitionTime": time}],
    })
}

fn wanted(parents: &[(&str, &str)]) -> Value {
    let parents = parents
        .iter()
        .map(|(parent, state)| entry(US, parent, state, "1970-01-01T00:00:00Z"));
    json!({ "parents": parents.collect::<Vec<_>>() })
}

#[test]
fn entries_of_others_stay_where_they_are() {
    let shown = json!({"parents": [
        entry(THEM, "a", "True", "t1"), entry(US, "a", "True", "t2"), entry(THEM, "b", "False", "t3"),
        entry(US, "gone", "True", "t4"),
    ]});
    let merged = merge(
        Kind::HttpRoute,
        &shown,
        &wanted(&[("new", "True"), ("a", "False")]),
        US,
        "now",
    );
    let expected = json!({"parents": [
        entry(THEM, "a", "True", "t1"), entry(US, "a", "False", "now"), entry(THEM, "b", "False", "t3"),
        entry(US, "new", "True", "now"),
    ]});
    assert_eq!(merged, expected);
}

#[test]
fn a_condition_that_keeps_its_state_keeps_its_time() {
    let shown = json!({"parents": [entry(US, "a", "True", "then")]});
    let mut same = wanted(&[("a", "True")]);
    same["parents"][0]["conditions"][0]["reason"] = json!("Other");
    same["parents"][0]["conditions"][0]["observedGeneration"] = json!(2);
    let merged = merge(Kind::HttpRoute, &shown, &same, US, "now");
    assert_eq!(merged["parents"][0]["conditions"][0]["lastTransitionTime"], "then");
    assert_eq!(merged["parents"][0]["conditions"][0]["reason"], "Other");
}

#[test]
fn the_fingerprint_sees_ours_and_neither_times_nor_others() {
    let print = |status: &Value| fingerprint(Kind::HttpRoute, status, US);
    let shown = json!({"parents": [entry(THEM, "a", "True", "t1"), entry(US, "a", "True", "t2")]});
    assert_eq!(print(&shown), print(&wanted(&[("a", "True")])));
    assert_ne!(print(&shown), print(&wanted(&[("a", "False")])));
    assert_eq!(
        print(&json!({"parents": [entry(THEM, "a", "True", "t")]})),
        print(&Value::Null)
    );
    assert!(has_ours(Kind::HttpRoute, &shown, US));
    assert!(!has_ours(Kind::HttpRoute, &shown, "example.com/third"));
}

#[test]
fn a_gateway_keeps_conditions_of_types_that_are_not_ours() {
    let ours = json!({"type": "Accepted", "status": "True", "reason": "Accepted", "lastTransitionTime": "then"});
    let theirs = json!({"type": "example.com/Ready", "status": "True", "reason": "R", "lastTransitionTime": "t"});
    let shown = json!({"conditions": [theirs, ours], "addresses": [{"value": "10.0.0.1"}]});
    let wanted = json!({"conditions": [ours], "listeners": []});
    let merged = merge(Kind::Gateway, &shown, &wanted, US, "now");
    assert_eq!(merged["conditions"], json!([ours, theirs]));
    let print = |status: &Value| fingerprint(Kind::Gateway, status, US);
    assert_ne!(print(&shown), print(&wanted), "an address that is no longer there");
    assert_eq!(print(&merged), print(&wanted));
    assert_eq!(patch(&shown, merged)["addresses"], Value::Null, "removed by the patch");
}

#[test]
fn listeners_are_told_apart_by_name() {
    for kind in [Kind::Gateway, Kind::ListenerSet] {
        let listener = |name: &str, state: &str, time: &str| {
            json!({"name": name, "attachedRoutes": 1,
               "conditions": [{"type": "Programmed", "status": state, "lastTransitionTime": time}]})
        };
        let shown = json!({"listeners": [listener("a", "True", "t1"), listener("b", "True", "t2")]});
        let wanted = json!({"listeners": [listener("b", "True", "x"), listener("a", "False", "x")]});
        let merged = merge(kind, &shown, &wanted, US, "now");
        assert_eq!(
            merged["listeners"],
            json!([listener("b", "True", "t2"), listener("a", "False", "now")])
        );
    }
}

#[test]
fn a_policy_shows_our_ancestors_beside_those_of_others() {
    let ancestor = |controller: &str, name: &str, state: &str, time: &str| {
        let mut entry = entry(controller, name, state, time);
        let about = entry.as_object_mut().unwrap().remove("parentRef").unwrap();
        entry["ancestorRef"] = about;
        entry
    };
    for kind in [Kind::BackendTrafficPolicy, Kind::BackendTlsPolicy] {
        let shown = json!({"ancestors": [ancestor(THEM, "a", "True", "t1"), ancestor(US, "a", "True", "t2")]});
        assert!(has_ours(kind, &shown, US) && !has_ours(kind, &shown, "example.com/nobody"));
        let wanted = json!({"ancestors": [ancestor(US, "a", "True", "-"), ancestor(US, "b", "True", "-")]});
        let merged = merge(kind, &shown, &wanted, US, "now");
        let expected = json!({"ancestors": [
            ancestor(THEM, "a", "True", "t1"), ancestor(US, "a", "True", "t2"), ancestor(US, "b", "True", "now"),
        ]});
        assert_eq!(merged, expected);
        assert_eq!(fingerprint(kind, &merged, US), fingerprint(kind, &wanted, US));
        let without = merge(kind, &shown, &json!({"ancestors": []}), US, "now");
        assert_eq!(without, json!({"ancestors": [ancestor(THEM, "a", "True", "t1")]}));
    }
}
