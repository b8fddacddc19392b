use serde_json::json;

use super::covers;

#[test]
fn defaults_and_fields_of_others_are_no_difference() {
    let found = json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [
        {"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080}
    ]}});
    let wanted = json!({"spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80}]}});
    assert!(covers(&found, &wanted));
}

#[test]
fn a_changed_missing_or_added_item_is_a_difference() {
    let wanted = json!({"spec": {"ports": [{"port": 80}]}});
    assert!(!covers(&json!({"spec": {"ports": [{"port": 81}]}}), &wanted));
    assert!(!covers(&json!({"spec": {"ports": []}}), &wanted));
    assert!(!covers(
        &json!({"spec": {"ports": [{"port": 80}, {"port": 81}]}}),
        &wanted
    ));
    assert!(!covers(&json!({"spec": {}}), &wanted));
}

#[test]
fn what_is_wanted_empty_may_be_left_out() {
    assert!(covers(&json!({"metadata": {}}), &json!({"metadata": {"labels": {}}})));
}

#[test]
fn owners_of_others_may_stand_beside_ours() {
    let ours = json!({"uid": "1", "controller": true});
    let found = json!({"ownerReferences": [{"uid": "2"}, {"uid": "1", "controller": true, "name": "a"}]});
    assert!(covers(&found, &json!({"ownerReferences": [ours]})));
    assert!(!covers(
        &json!({"ownerReferences": [{"uid": "2"}]}),
        &json!({"ownerReferences": [ours]})
    ));
}
