use serde_json::{Value, json};

use super::definitions;
use crate::{GATEWRIGHT_GROUP, Kind};

fn spec_of(plural: &str) -> Value {
    let name = format!("{plural}.{GATEWRIGHT_GROUP}");
    let all = definitions().unwrap();
    let found = all
        .iter()
        .find(|definition| definition["metadata"]["name"] == name.as_str());
    found.unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
}

#[test]
fn every_kind_of_our_group_has_a_definition() {
    let ours: Vec<&str> = Kind::ALL
        .iter()
        .filter(|kind| kind.group() == GATEWRIGHT_GROUP)
        .map(|kind| kind.as_str())
        .collect();
    let all = definitions().unwrap();
    let defined: Vec<&str> = all
        .iter()
        .map(|definition| definition["spec"]["names"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(defined, ours);
}

#[test]
fn limits_of_the_checks_are_limits_of_the_schema() {
    let spec = spec_of("gatewayconfigs");
    let at = |path: &str| spec.pointer(path).cloned().unwrap_or_default();
    assert_eq!(at("/properties/http/properties/maxHeaderBytes/minimum"), json!(1024));
    assert_eq!(
        at("/properties/http/properties/maxHeaderBytes/maximum"),
        json!(1_048_576)
    );
    assert_eq!(at("/properties/http/properties/maxConnections/minimum"), json!(1));
    assert_eq!(
        at("/properties/http/properties/maxConnections/maximum"),
        json!(u32::MAX)
    );
    assert_eq!(at("/properties/http/properties/maxStreams/maximum"), json!(10_000));
    assert_eq!(at("/properties/host/properties/addresses/maxItems"), json!(256));
    assert_eq!(
        at("/properties/host/properties/addresses/x-kubernetes-list-type"),
        json!("set")
    );
    let address = json!([{ "rule": "isIP(self)", "message": "must be an IP address" }]);
    assert_eq!(
        at("/properties/host/properties/addresses/items/x-kubernetes-validations"),
        address
    );
    assert_eq!(at("/properties/http/properties/drainTimeout/maxLength"), json!(24));
}

#[test]
fn not_to_wait_is_a_way_to_drain_but_no_other_time_may_be_zero() {
    let spec = spec_of("gatewayconfigs");
    let http = &spec["properties"]["http"]["properties"];
    assert_eq!(http["drainTimeout"]["pattern"], http["idleTimeout"]["pattern"]);
    assert_eq!(http["drainTimeout"].get("x-kubernetes-validations"), None);
    assert_eq!(
        http["idleTimeout"]["x-kubernetes-validations"][0]["rule"],
        json!("self.matches('[1-9]')")
    );
}

#[test]
fn a_field_is_described_by_what_it_is_for() {
    let spec = spec_of("gatewayconfigs");
    let description = "Which data plane serves the traffic. Default: `Builtin`.";
    assert_eq!(spec["properties"]["dataPlane"]["description"], json!(description));
}

#[test]
fn rules_over_several_fields_are_stated_at_the_spec() {
    let spec = spec_of("gatewayconfigs");
    let rules = spec["x-kubernetes-validations"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["message"].is_string()), "{rules:?}");
    let messages: Vec<&str> = rules.iter().filter_map(|rule| rule["message"].as_str()).collect();
    assert!(
        messages.contains(&"SSH and Portal need dataPlane Builtin"),
        "{messages:?}"
    );
}

/// The API server counts what a rule may cost before it takes a definition: a list under a rule needs an end.
#[test]
fn every_list_and_text_under_a_rule_is_bounded() {
    fn walk(schema: &Value, place: &str, unbounded: &mut Vec<String>) -> bool {
        let below = schema["properties"].as_object().into_iter().flatten();
        let mut has_rule = schema.get("x-kubernetes-validations").is_some() && place != ".spec";
        for (name, property) in below {
            has_rule |= walk(property, &format!("{place}.{name}"), unbounded);
        }
        if let Some(items) = schema.get("items") {
            has_rule |= walk(items, &format!("{place}[]"), unbounded);
            if has_rule && schema.get("maxItems").is_none() {
                unbounded.push(place.to_owned());
            }
        }
        if has_rule && schema["type"] == "string" && schema.get("maxLength").is_none() && schema.get("enum").is_none() {
            unbounded.push(place.to_owned());
        }
        has_rule
    }
    for definition in definitions().unwrap() {
        let mut unbounded = Vec::new();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk(schema, "", &mut unbounded);
        assert!(unbounded.is_empty(), "{unbounded:?}");
    }
}
