use std::time::Duration;

use super::{Log, Outcome, Verdict};

/// Lines as the suite prints them, with its own marked as Go does.
const LINES: &str = "\
\u{16}=== RUN   TestConformance
    suite.go:382: 2026-01-01T00:00:00.000000001Z: Test Setup: Ensuring GatewayClass has been accepted
\u{16}=== RUN   TestConformance/Good
\u{16}=== RUN   TestConformance/Good/a_part
\u{16}--- PASS: TestConformance/Good/a_part (0.01s)
\u{16}=== NAME  TestConformance/Good
\u{16}--- PASS: TestConformance/Good (0.25s)
\u{16}=== RUN   TestConformance/Bad
\u{16}=== RUN   TestConformance/Bad/first
    helpers.go:821: 2026-01-01T00:00:00.000000001Z: Accepted was not in conditions list [[{Accepted False}]]
    helpers.go:300:
        \tError Trace:\t/somewhere/helpers.go:300
        \tError:      \tReceived unexpected error:
        \t            \tcontext deadline exceeded
        \tTest:       \tTestConformance/Bad/first
        \tMessages:   \tthe route was not accepted
\u{16}--- FAIL: TestConformance/Bad/first (60.00s)
\u{16}=== RUN   TestConformance/Bad/second
        \tError:      \tanother
        \tTest:       \tTestConformance/Bad/second
\u{16}--- FAIL: TestConformance/Bad/second (0.00s)
\u{16}=== NAME  TestConformance/Bad
\u{16}--- FAIL: TestConformance/Bad (60.50s)
\u{16}=== RUN   TestConformance/Left
a line without an end\u{16}--- SKIP: TestConformance/Left (0.00s)
\u{16}--- FAIL: TestConformance (61.00s)
";

#[test]
fn outcomes_times_and_first_complaints_are_read() {
    let mut log = Log::default();
    let ended: Vec<String> = LINES.lines().filter_map(|line| log.read(line)).collect();
    assert_eq!(ended, ["Good", "Bad", "Left"]);
    let outcome = |name: &str| log.outcomes.get(name).unwrap().clone();
    assert_eq!(
        outcome("Good"),
        Outcome {
            verdict: Verdict::Passed,
            time: Duration::from_millis(250),
            complaint: None
        }
    );
    let bad = outcome("Bad");
    assert_eq!(
        (bad.verdict, bad.time),
        (Verdict::Failed, Duration::from_millis(60_500))
    );
    assert_eq!(
        bad.complaint.unwrap(),
        "first: the route was not accepted: Accepted was not in conditions list [[{Accepted False}]]: \
         Received unexpected error: context deadline exceeded"
    );
    assert_eq!(outcome("Left").verdict, Verdict::Skipped);
    assert_eq!(log.setup_complaint, None);
}

#[test]
fn a_suite_that_cannot_be_set_up_says_why() {
    let lines = "\
\u{16}=== RUN   TestConformance
        \tError:      \tReceived unexpected error:
        \t            \tno CRDs
        \tTest:       \tTestConformance
        \tMessages:   \tthe suite cannot be set up
\u{16}--- FAIL: TestConformance (0.01s)
";
    let mut log = Log::default();
    lines.lines().for_each(|line| assert_eq!(log.read(line), None));
    assert!(log.outcomes.is_empty());
    assert_eq!(
        log.setup_complaint.as_deref(),
        Some("the suite cannot be set up: Received unexpected error: no CRDs")
    );
}
