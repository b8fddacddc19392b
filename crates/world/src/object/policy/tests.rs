use gatewright_api::Object;
use serde_json::{Value, json};

use super::*;

fn reduce(spec: &Value) -> TrafficPolicy {
    let value = json!({"metadata": {"namespace": "a", "name": "p"}, "spec": spec});
    match Object::from_value(Kind::BackendTrafficPolicy, value).unwrap() {
        Object::BackendTrafficPolicy(policy) => TrafficPolicy::reduce(&policy, &mut Interner::default()),
        other => panic!("{other:?} is no policy"),
    }
}

#[test]
fn budgets_are_read_with_defaults_for_what_is_left_out() {
    let service = json!([{"group": "", "kind": "Service", "name": "web"}]);
    let read = |constraint: Value| reduce(&json!({"targetRefs": service, "retryConstraint": constraint})).budget;
    let default = RetryBudget {
        percent: 20,
        interval: Duration::from_secs(10),
        least: 10,
        least_interval: Duration::from_secs(1),
    };
    assert_eq!(read(json!({})), Some(default));
    let full = json!({"budget": {"percent": 5, "interval": "1m"}, "minRetryRate": {"count": 3, "interval": "2s"}});
    let expected = RetryBudget {
        percent: 5,
        interval: Duration::from_mins(1),
        least: 3,
        least_interval: Duration::from_secs(2),
    };
    assert_eq!(read(full), Some(expected));
    assert_eq!(read(Value::Null), None);
}

#[test]
fn what_cannot_be_honoured_is_refused_where_it_stands() {
    let service = json!({"group": "", "kind": "Service", "name": "web"});
    let table = [
        (
            json!({"targetRefs": [service, {"group": "x.com", "kind": "Y", "name": "z"}]}),
            "spec.targetRefs[1]",
        ),
        (
            json!({"targetRefs": [service], "sessionPersistence": {}}),
            "spec.sessionPersistence",
        ),
        (
            json!({"targetRefs": [service], "retryConstraint": {"budget": {"percent": 101}}}),
            "spec.retryConstraint.budget.percent",
        ),
        (
            json!({"targetRefs": [service], "retryConstraint": {"minRetryRate": {"interval": "0s"}}}),
            "spec.retryConstraint.minRetryRate.interval",
        ),
    ];
    for (spec, field) in table {
        let policy = reduce(&spec);
        assert_eq!(policy.refusals.len(), 1, "{spec}");
        assert_eq!(&*policy.refusals[0].field, field);
        assert_eq!(*policy.services, ["web".into()]);
    }
}
