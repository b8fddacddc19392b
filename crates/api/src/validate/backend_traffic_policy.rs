//! Limits, defaults and rules of XBackendTrafficPolicy.

use std::{collections::HashMap, time::Duration};

use serde_json::{Value, json};

use super::{
    Code,
    facts::{Facts, Reference},
    formats::{DURATION_TEXT, duration},
    http_route,
    report::Report,
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.at("spec.targetRefs", &[Check::Items(1, 16)]);
    facts.rule("spec.targetRefs", targets_are_distinct);
    facts.reference("spec.targetRefs[]", Reference::default());
    let place = |field: &str| format!("spec.retryConstraint.{field}");
    facts.default(&place("budget"), json!({"percent": 20, "interval": "10s"}));
    facts.default(&place("budget.percent"), 20);
    facts.at(&place("budget.percent"), &[Check::Range(0, 100)]);
    facts.default(&place("budget.interval"), "10s");
    facts.default(&place("minRetryRate"), json!({"count": 10, "interval": "1s"}));
    facts.at(&place("minRetryRate.count"), &[Check::Range(1, 1_000_000)]);
    for interval in ["budget.interval", "minRetryRate.interval"] {
        facts.at(
            &place(interval),
            &[Check::Length(1, usize::MAX), Check::Format(&DURATION_TEXT)],
        );
    }
    facts.rule(&place("budget"), budget_interval_is_in_range);
    facts.rule(&place("minRetryRate"), rate_interval_is_in_range);
    http_route::session(facts, "spec.sessionPersistence");
}

fn targets_are_distinct(targets: &Value, report: &mut Report<'_>) {
    let mut seen = HashMap::new();
    for (index, target) in targets.as_array().into_iter().flatten().enumerate() {
        let part = |field: &str| target.get(field).and_then(Value::as_str).unwrap_or_default();
        if let Some(first) = seen.insert((part("group"), part("kind"), part("name")), index) {
            let message = format!("is the same as [{first}]");
            report.error_at(&[index.into()], Code::Duplicate, message, "remove one of the two");
        }
    }
}

fn budget_interval_is_in_range(budget: &Value, report: &mut Report<'_>) {
    interval_is_in_range(
        budget,
        Duration::from_secs(1),
        "between one second and one hour",
        report,
    );
}

fn rate_interval_is_in_range(rate: &Value, report: &mut Report<'_>) {
    interval_is_in_range(
        rate,
        Duration::from_millis(1),
        "more than no time and at most one hour",
        report,
    );
}

fn interval_is_in_range(holder: &Value, least: Duration, range: &str, report: &mut Report<'_>) {
    let interval = holder.get("interval").and_then(Value::as_str).and_then(duration);
    if interval.is_some_and(|interval| interval < least || interval > Duration::from_hours(1)) {
        let message = format!("the interval must be {range}");
        report.error_at(&["interval".into()], Code::OutOfRange, message, "use for example 10s");
    }
}
