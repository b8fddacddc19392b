//! What h2spec reports, case by case.
//!
//! The report is written as JUnit does, but is not always XML: what a case saw is put there as it is, bytes that XML knows
//! nothing of among them. So it is read by its tags, which no case writes.

use std::{collections::BTreeMap, fmt};

use anyhow::{Context, ensure};

#[cfg(test)]
mod tests;

/// A case: its section, and its place and words there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// As in `http2/5.1`.
    pub section: String,
    /// From one on, as h2spec counts.
    pub number: usize,
    /// What is done.
    pub title: String,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}: {}", self.section, self.number, self.title)
    }
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// It did not apply.
    Skipped,
    /// Otherwise: what would have been right, line by line, and last what was seen.
    Failed(String),
}

/// All cases of a run.
#[derive(Clone, Debug, Default)]
pub struct Report(BTreeMap<Case, Outcome>);

impl Report {
    /// Reads a report.
    pub(super) fn read(text: &str) -> anyhow::Result<Self> {
        ensure!(text.trim_end().ends_with("</testsuites>"), "it is not whole");
        let mut cases = BTreeMap::new();
        let mut numbers = BTreeMap::new();
        for part in text.split("<testcase ").skip(1) {
            let (head, rest) = part.split_once('>').context("a case has no end")?;
            let (body, _) = rest.split_once("</testcase>").context("a case has no end")?;
            let section = attribute(head, "package").context("a case has no section")?;
            let number = numbers.entry(section.clone()).or_insert(0);
            *number += 1;
            let case = Case {
                section,
                number: *number,
                title: attribute(head, "classname").context("a case has no title")?,
            };
            cases.insert(case, outcome(body));
        }
        Ok(Self(cases))
    }

    /// All cases.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.0.keys()
    }

    /// Whether a case was run and passed.
    pub fn passed(&self, case: &Case) -> bool {
        self.0.get(case) == Some(&Outcome::Passed)
    }

    /// How a case ended.
    pub fn outcome(&self, case: &Case) -> Option<&Outcome> {
        self.0.get(case)
    }

    /// The cases that failed.
    pub fn failed(&self) -> Vec<&Case> {
        let failed = self.0.iter();
        let failed = failed.filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_)));
        failed.map(|(case, _)| case).collect()
    }

    /// How many there are of each kind, in a few words.
    pub fn tally(&self) -> String {
        let passed = self.0.values().filter(|outcome| **outcome == Outcome::Passed).count();
        let failed = self.failed().len();
        let skipped = self.0.len() - passed - failed;
        format!(
            "{} cases, {passed} passed, {skipped} skipped, {failed} failed",
            self.0.len()
        )
    }
}

/// An attribute of a tag, with the marks that Go escapes in it.
fn attribute(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let marks = [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    let plain = marks
        .iter()
        .fold(value.to_owned(), |value, (escaped, mark)| value.replace(escaped, mark));
    Some(plain)
}

fn outcome(body: &str) -> Outcome {
    let within = |tag: &str| {
        let (_, rest) = body.split_once(&format!("<{tag}>"))?;
        rest.rsplit_once(&format!("</{tag}>")).map(|(text, _)| text.to_owned())
    };
    match within("error").or_else(|| within("failure")) {
        Some(seen) => Outcome::Failed(seen),
        None if within("skipped").is_some() => Outcome::Skipped,
        None => Outcome::Passed,
    }
}
