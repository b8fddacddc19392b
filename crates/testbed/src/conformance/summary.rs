//! What came of a run, for people: how many tests passed, and what the others complained about.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use serde::Deserialize;

use super::log::{Outcome, Verdict};

/// What came of a run.
#[derive(Debug)]
pub struct Summary {
    /// The sums of each profile, as the suite made them.
    pub(super) profiles: Vec<Profile>,
    pub(super) outcomes: BTreeMap<String, Outcome>,
    /// What a whole run lacks.
    pub(super) shortfalls: Vec<String>,
    /// How long the suite ran, without the start of the cluster.
    pub(super) time: Duration,
    /// Where the report is, if one was made, and what became of it.
    pub(super) report: Option<String>,
    /// Where logs are.
    pub(super) folder: PathBuf,
}

/// One profile of the suite's report.
#[derive(Debug, Deserialize)]
pub(super) struct Profile {
    pub(super) name: String,
    core: Status,
    #[serde(default)]
    extended: Option<Status>,
}

impl Profile {
    /// How many core and how many extended tests passed.
    pub(super) fn passed(&self) -> (u32, u32) {
        let extended = self.extended.as_ref().map(|extended| extended.statistics.passed);
        (self.core.statistics.passed, extended.unwrap_or_default())
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    statistics: Statistics,
    #[serde(default)]
    supported_features: Vec<String>,
    #[serde(default)]
    unsupported_features: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Statistics {
    passed: u32,
    failed: u32,
    skipped: u32,
}

#[derive(Deserialize)]
struct Report {
    profiles: Vec<Profile>,
}

/// Reads the sums of the suite's report.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Profile>> {
    let text = fs::read_to_string(path).with_context(|| format!("the suite wrote no {}", path.display()))?;
    let report: Report = serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(report.profiles)
}

impl Summary {
    /// Whether all that was to run did, and passed.
    pub fn is_success(&self) -> bool {
        self.shortfalls.is_empty() && self.count(Verdict::Passed) == self.outcomes.len()
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.outcomes
            .values()
            .filter(|outcome| outcome.verdict == verdict)
            .count()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for profile in &self.profiles {
            writeln!(formatter, "{}: core {}", profile.name, profile.core.statistics)?;
            if let Some(extended) = &profile.extended {
                let (claimed, others) = (extended.supported_features.len(), extended.unsupported_features.len());
                writeln!(
                    formatter,
                    "{}: extended {}; {claimed} of {} features claimed",
                    profile.name,
                    extended.statistics,
                    claimed + others
                )?;
            }
        }
        let failed = self
            .outcomes
            .iter()
            .filter(|(_, outcome)| outcome.verdict == Verdict::Failed);
        for (name, outcome) in failed {
            let complaint = outcome.complaint.as_deref().unwrap_or("it does not say why");
            writeln!(formatter, "FAILED {name}: {complaint}")?;
        }
        for shortfall in &self.shortfalls {
            writeln!(formatter, "MISSING {shortfall}")?;
        }
        writeln!(
            formatter,
            "{} passed, {} failed, {} skipped in {:.0} s; logs in {}",
            self.count(Verdict::Passed),
            self.count(Verdict::Failed),
            self.count(Verdict::Skipped),
            self.time.as_secs_f64(),
            self.folder.display()
        )?;
        if let Some(report) = &self.report {
            writeln!(formatter, "report: {report}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(formatter, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use super::{Outcome, Profile, Summary, Verdict};

    #[test]
    fn sums_failures_and_their_reasons_are_shown() {
        let profile = r#"{
            "name": "GATEWAY-HTTP",
            "core": { "result": "success", "statistics": { "Passed": 37, "Failed": 0, "Skipped": 0 } },
            "extended": {
                "result": "failure",
                "statistics": { "Passed": 1, "Failed": 1, "Skipped": 0 },
                "supportedFeatures": ["A", "B"],
                "unsupportedFeatures": ["C"]
            }
        }"#;
        let outcome = |verdict, complaint: Option<&str>| Outcome {
            verdict,
            time: Duration::from_secs(1),
            complaint: complaint.map(str::to_owned),
        };
        let summary = Summary {
            profiles: vec![serde_json::from_str::<Profile>(profile).unwrap()],
            outcomes: BTreeMap::from([
                ("Good".to_owned(), outcome(Verdict::Passed, None)),
                ("Bad".to_owned(), outcome(Verdict::Failed, Some("no answer"))),
            ]),
            shortfalls: vec!["GATEWAY-TLS: it is not in the report".to_owned()],
            time: Duration::from_secs(61),
            report: None,
            folder: "/logs".into(),
        };
        assert!(!summary.is_success());
        assert_eq!(
            summary.to_string(),
            "GATEWAY-HTTP: core 37 passed, 0 failed, 0 skipped\n\
             GATEWAY-HTTP: extended 1 passed, 1 failed, 0 skipped; 2 of 3 features claimed\n\
             FAILED Bad: no answer\n\
             MISSING GATEWAY-TLS: it is not in the report\n\
             1 passed, 1 failed, 0 skipped in 61 s; logs in /logs\n"
        );
    }
}
