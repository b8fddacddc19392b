//! Collects findings while a document is walked, and knows where in the document the walk stands.
//!
//! The place is kept as borrowed steps and becomes a [`FieldPath`] only when something is found, because nearly all
//! documents are fine and there may be a hundred thousand of them.

use super::{Code, FieldPath, Finding, Severity, Step};

/// So many findings of one document are kept: the first ones say enough, and a hostile document cannot fill memory.
const MOST_FINDINGS: usize = 100;

/// A borrowed [`Step`].
#[derive(Clone, Copy)]
pub(super) enum Segment<'a> {
    Field(&'a str),
    Index(usize),
}

pub(super) struct Report<'a> {
    place: Vec<Segment<'a>>,
    findings: Vec<Finding>,
}

impl<'a> Report<'a> {
    pub(super) fn new() -> Report<'a> {
        Report {
            place: Vec::with_capacity(16),
            findings: Vec::new(),
        }
    }

    pub(super) fn enter(&mut self, segment: Segment<'a>) {
        self.place.push(segment);
    }

    pub(super) fn leave(&mut self) {
        self.place.pop();
    }

    /// An error at the current place.
    pub(super) fn error(&mut self, code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.error_at(&[], code, message, hint);
    }

    /// An error at a place below the current one.
    pub(super) fn error_at(&mut self, below: &[Step], code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.push(below, code, Severity::Error, message.into(), hint.into());
    }

    /// A warning at a place below the current one.
    pub(super) fn warn_at(&mut self, below: &[Step], code: Code, message: impl Into<String>, hint: impl Into<String>) {
        self.push(below, code, Severity::Warning, message.into(), hint.into());
    }

    fn push(&mut self, below: &[Step], code: Code, severity: Severity, message: String, hint: String) {
        if self.findings.len() >= MOST_FINDINGS {
            return;
        }
        let here = self.place.iter().map(|segment| match *segment {
            Segment::Field(name) => Step::from(name),
            Segment::Index(index) => Step::Index(index),
        });
        let path = FieldPath(here.chain(below.iter().cloned()).collect());
        let hint = Some(hint).filter(|hint| !hint.is_empty());
        self.findings.push(Finding {
            code,
            severity,
            path,
            message,
            hint,
        });
    }

    pub(super) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}
