//! Reads what the suite prints while it runs: which tests ended how, and what the failing ones said first.
//!
//! The suite is a Go test with `-test.v=test2json`, which marks the lines that are not a test's own with a control character.

use std::{collections::BTreeMap, time::Duration};

/// What Go puts in front of its own lines.
const MARK: char = '\u{16}';
/// The Go test whose parts are the suite's tests.
const ROOT: &str = "TestConformance";

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As it should.
    Passed,
    /// Otherwise.
    Failed,
    /// It was not run.
    Skipped,
}

/// What is known of a test that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How it ended.
    pub(super) verdict: Verdict,
    /// How long it took.
    pub(super) time: Duration,
    /// The part that failed first, if it has parts, and what it said.
    pub(super) complaint: Option<String>,
}

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The suite's test, and below it what part of it, that speaks now.
    speaker: String,
    /// The first failure of each test, as far as it can be told from other lines.
    complaints: BTreeMap<String, Complaint>,
    /// The last condition that the speaker waited for in vain: more telling than the failure that follows it.
    waited_for: Option<String>,
    pub(super) outcomes: BTreeMap<String, Outcome>,
    /// What was said outside of all tests, when the suite itself could not be set up.
    pub(super) setup_complaint: Option<String>,
}

/// A failure as testify prints it, over several lines.
#[derive(Debug, Default)]
struct Complaint {
    part: String,
    error: String,
    message: String,
    waited_for: Option<String>,
    is_in_error: bool,
}

impl Log {
    /// Takes a line. Returns the name of a test of the suite that ended with it.
    pub(super) fn read(&mut self, line: &str) -> Option<String> {
        let Some(place) = line.find(MARK) else {
            self.speak(line);
            return None;
        };
        let own = line.get(place + MARK.len_utf8()..).unwrap_or_default();
        if let Some(rest) = own.strip_prefix("=== ") {
            let name = rest.split_whitespace().nth(1).unwrap_or_default();
            if name != self.speaker {
                name.clone_into(&mut self.speaker);
                self.waited_for = None;
            }
            return None;
        }
        self.end(own.strip_prefix("--- ")?)
    }

    /// Takes the rest of a line that says how a test ended.
    fn end(&mut self, rest: &str) -> Option<String> {
        let (verdict, rest) = rest.split_once(": ")?;
        let (name, time) = rest.split_once(' ')?;
        let test = name.strip_prefix(ROOT)?.strip_prefix('/')?;
        if test.contains('/') {
            return None;
        }
        let verdict = match verdict {
            "PASS" => Verdict::Passed,
            "FAIL" => Verdict::Failed,
            _ => Verdict::Skipped,
        };
        let seconds = time.trim_matches(['(', ')', 's']).parse().unwrap_or_default();
        let complaint = self.complaints.remove(test).filter(|_| verdict == Verdict::Failed);
        let outcome = Outcome {
            verdict,
            time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
            complaint: complaint.map(|complaint| complaint.text(test)),
        };
        self.outcomes.insert(test.to_owned(), outcome);
        Some(test.to_owned())
    }

    /// Takes a line of a test.
    fn speak(&mut self, line: &str) {
        if let Some(seen) = mismatch(line) {
            self.waited_for = Some(seen);
        }
        let test = self.speaker.strip_prefix(ROOT).unwrap_or(&self.speaker);
        let test = test.trim_start_matches('/').split('/').next().unwrap_or_default();
        let trimmed = line.trim();
        if let Some(error) = trimmed.strip_prefix("Error:") {
            if self.complaints.contains_key(test) {
                return;
            }
            let complaint = Complaint {
                part: self.speaker.clone(),
                error: error.trim().to_owned(),
                waited_for: self.waited_for.take(),
                is_in_error: true,
                ..Complaint::default()
            };
            self.complaints.insert(test.to_owned(), complaint);
        } else if let Some(complaint) = self.complaints.get_mut(test) {
            if let Some(message) = trimmed.strip_prefix("Messages:") {
                if complaint.message.is_empty() {
                    message.trim().clone_into(&mut complaint.message);
                }
                complaint.is_in_error = false;
                if test.is_empty() && self.setup_complaint.is_none() {
                    self.setup_complaint = Some(complaint.text(test));
                }
            } else if trimmed.starts_with("Test:") {
                complaint.is_in_error = false;
            } else if complaint.is_in_error && complaint.error.len() < 300 {
                complaint.error.push(' ');
                complaint.error.push_str(trimmed);
            }
        }
    }
}

impl Complaint {
    fn text(&self, test: &str) -> String {
        let part = self
            .part
            .strip_prefix(ROOT)
            .unwrap_or(&self.part)
            .trim_start_matches('/');
        let part = part.strip_prefix(test).unwrap_or(part).trim_start_matches('/');
        let pieces = [
            part,
            &self.message,
            self.waited_for.as_deref().unwrap_or_default(),
            &self.error,
        ];
        let pieces: Vec<&str> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        pieces.join(": ")
    }
}

/// What a line says that was seen instead of what was waited for, without the time in front.
fn mismatch(line: &str) -> Option<String> {
    let tells = ["was not in conditions list", "not ready yet", "expected", "Expected"];
    if !tells.iter().any(|word| line.contains(word)) {
        return None;
    }
    let text = line.split_once("Z: ")?.1;
    Some(text.chars().take(600).collect())
}

#[cfg(test)]
mod tests;
