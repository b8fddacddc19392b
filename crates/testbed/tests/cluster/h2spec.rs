//! HTTP/2 as h2spec judges it, ours beside Envoy's.

use gatewright_testbed::{h2spec, say};

use crate::world::GATEWRIGHT;

/// What h2spec 2.6.0 has at least.
const CASES: usize = 146;

/// Bytes that are no preface of HTTP/2 are a request of HTTP/1.1 where both are spoken, and a bad one, which is answered with 400
/// before the connection is closed. h2spec cannot read that answer. Envoy gives the same.
const NO_PREFACE: (&str, &str) = ("http2/3.5", "Sends invalid connection preface");

#[test]
fn http2_is_spoken_no_worse_than_by_envoy() {
    let folder = tempfile::tempdir().unwrap();
    for comparison in h2spec::judge(&GATEWRIGHT, folder.path()).unwrap() {
        let h2spec::Comparison { security, ours, envoy } = &comparison;
        say(format_args!(
            "h2spec, {}: Gatewright: {}",
            security.label(),
            ours.tally()
        ));
        say(format_args!(
            "h2spec, {}: Envoy:      {}",
            security.label(),
            envoy.tally()
        ));
        let explain = |case: &&h2spec::Case| format!("{case}\n{:?}", ours.outcome(case));
        let worse: Vec<String> = comparison.worse().iter().map(explain).collect();
        assert!(worse.is_empty(), "Envoy passes what we do not: {worse:#?}");
        assert!(ours.failed().len() <= envoy.failed().len());
        assert!(ours.cases().count() >= CASES && ours.cases().eq(envoy.cases()));
        // More than was asked for, because it is so and should stay so.
        let is_known = |case: &h2spec::Case| {
            *security == h2spec::Security::Cleartext && (case.section.as_str(), case.title.as_str()) == NO_PREFACE
        };
        let failed: Vec<String> = ours
            .cases()
            .filter(|case| !ours.passed(case) && !is_known(case))
            .map(|case| explain(&case))
            .collect();
        assert!(failed.is_empty(), "{}: {failed:#?}", security.label());
    }
}
