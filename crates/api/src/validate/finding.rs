//! What validation reports: a code, a place inside the document, a message and how to mend it.
//!
//! Made by [`super::report`], read by sources (which know the file and line behind the place) and by the command line.

use std::fmt;

use serde::Serialize;

use super::Code;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The object is used, but something in it has no effect.
    Warning,
    /// The object cannot be used.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// One thing found in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable code.
    pub code: Code,
    /// Whether the object can still be used.
    pub severity: Severity,
    /// Where in the document. For a missing field: where it should be.
    pub path: FieldPath,
    /// What is wrong; without the path, without a full stop.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
}

impl Finding {
    /// Whether the object cannot be used because of this.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}[{}]: ", self.severity, self.code)?;
        if !self.path.is_empty() {
            write!(out, "{}: ", self.path)?;
        }
        out.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(out, " (hint: {hint})")?;
        }
        Ok(())
    }
}

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Into a field or map key.
    Field(String),
    /// Into a list item, counted from zero.
    Index(usize),
}

impl From<&str> for Step {
    fn from(field: &str) -> Step {
        Step::Field(field.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}

/// A place inside a document, shown as `spec.rules[0].matches[1].path.value`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<Step>);

impl FieldPath {
    /// Whether this is the document itself.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The steps, outermost first.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(out, "[{index}]")?,
                // A map key with dots or slashes (an annotation, a Secret's `tls.crt`) would read like several fields.
                Step::Field(name) if name.contains(['.', '/', '[', ' ']) || name.is_empty() => {
                    write!(out, "[{name:?}]")?;
                }
                Step::Field(name) if position == 0 => out.write_str(name)?,
                Step::Field(name) => write!(out, ".{name}")?,
            }
        }
        Ok(())
    }
}
