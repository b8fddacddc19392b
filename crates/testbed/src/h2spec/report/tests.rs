//! Reports as h2spec writes them.

use super::{Outcome, Report};

const TEXT: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuites>
  <testsuite name=\"3.7. PING\" package=\"generic/3.7\" id=\"3.7\" tests=\"2\" skipped=\"1\" failures=\"0\" errors=\"0\">
    <testcase package=\"generic/3.7\" classname=\"Sends a &#34;PING&#34; frame\" time=\"0.0005\"></testcase>
    <testcase package=\"generic/3.7\" classname=\"Sends another\" time=\"0.0000\">
      <skipped></skipped>
    </testcase>
  </testsuite>
  <testsuite name=\"3.8. GOAWAY\" package=\"generic/3.8\" id=\"3.8\" tests=\"1\" skipped=\"0\" failures=\"0\" errors=\"1\">
    <testcase package=\"generic/3.8\" classname=\"Sends a GOAWAY frame\" time=\"2.0008\">
      <error>Connection closed
PING Frame (length:8, opaque_data:h2spec\0\0)
Timeout</error>
    </testcase>
  </testsuite>
</testsuites>";

#[test]
fn cases_are_known_by_section_number_and_title() {
    let report = Report::read(TEXT).unwrap();
    let cases: Vec<String> = report.cases().map(ToString::to_string).collect();
    assert_eq!(
        cases,
        [
            "generic/3.7/1: Sends a \"PING\" frame",
            "generic/3.7/2: Sends another",
            "generic/3.8/1: Sends a GOAWAY frame",
        ]
    );
}

#[test]
fn a_case_fails_by_what_it_saw_even_if_that_is_no_xml() {
    let report = Report::read(TEXT).unwrap();
    let outcomes: Vec<&Outcome> = report.cases().filter_map(|case| report.outcome(case)).collect();
    let seen = "Connection closed\nPING Frame (length:8, opaque_data:h2spec\0\0)\nTimeout";
    assert_eq!(
        outcomes,
        [&Outcome::Passed, &Outcome::Skipped, &Outcome::Failed(seen.to_owned())]
    );
    assert_eq!(report.tally(), "3 cases, 1 passed, 1 skipped, 1 failed");
}

#[test]
fn a_report_that_is_cut_off_is_none() {
    assert!(Report::read(TEXT.split_once("</testsuites>").unwrap().0).is_err());
}
