use serde_json::json;

use super::replacement;

#[test]
fn a_list_is_replaced_and_its_good_items_keep_what_the_server_added() {
    let found = json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [
        {"name": "extra", "port": 81, "nodePort": 30081}, {"name": "web", "port": 80, "nodePort": 30080},
    ]}});
    let wanted =
        json!({"spec": {"type": "LoadBalancer", "ports": [{"name": "web", "port": 80}, {"name": "tls", "port": 443}]}});
    let expected = json!({"spec": {"ports": [
        {"name": "web", "port": 80, "nodePort": 30080}, {"name": "tls", "port": 443},
    ]}});
    assert_eq!(replacement(&found, &wanted), expected);
}

#[test]
fn what_is_as_wanted_is_left_alone() {
    let found = json!({"metadata": {"labels": {"a": "b", "c": "d"}}, "data": {"k": "v"}});
    assert_eq!(
        replacement(&found, &json!({"metadata": {"labels": {"a": "b"}}, "data": {"k": "v"}})),
        json!({})
    );
    assert_eq!(
        replacement(&found, &json!({"data": {"k": "w"}})),
        json!({"data": {"k": "w"}})
    );
}
