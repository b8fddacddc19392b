//! One thing that someone should mend, as `check`, `status` and the admin API show it.
//!
//! Problems of files, conditions of the plan and the advice of [`crate::diagnose`] all become this one type, so that they
//! look alike everywhere and the same facts stand in the text and in the JSON.

use std::fmt;

use gatewright_api::ObjectName;
use gatewright_source::files::Problem;
use owo_colors::{OwoColorize, Style};
use serde::{Deserialize, Serialize};

use crate::ui::printable;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    Error,
    Warning,
}

/// Something to mend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) code: String,
    pub(crate) severity: Severity,
    /// The object, such as `HTTPRoute shop/cart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<String>,
    /// The part of the object, such as `listener https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<String>,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<Place>,
    /// Whether the last good objects of the file are in use instead of what it says now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) uses_last_good: bool,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    pub(crate) file: String,
    /// Counted from 1; 0 when the whole file is meant.
    pub(crate) line: u64,
    pub(crate) column: u64,
    /// The text of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) excerpt: Option<String>,
}

impl Finding {
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Whom it is about, for sorting and for whoever looks up the place.
    pub(crate) fn about(mut self, object: &ObjectName) -> Self {
        self.object = Some(object.to_string());
        self
    }
}

impl From<&Problem> for Finding {
    fn from(problem: &Problem) -> Self {
        let Problem {
            code,
            severity: _,
            file,
            line,
            column,
            object,
            message,
            hint,
            excerpt,
            uses_last_good,
        } = problem;
        Self {
            code: code.to_string(),
            severity: if problem.is_error() {
                Severity::Error
            } else {
                Severity::Warning
            },
            object: object.as_ref().map(|object| printable(&object.to_string())),
            part: None,
            message: printable(message),
            hint: hint.as_deref().map(printable),
            place: Some(Place {
                file: printable(&file.display().to_string()),
                line: *line,
                column: *column,
                excerpt: excerpt.as_deref().map(printable),
            }),
            uses_last_good: *uses_last_good,
        }
    }
}

/// What and who, then where with the line and a caret below it, then what to do. In colour with `{:#}`.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_colour = out.alternate();
        let (word, style) = match self.severity {
            Severity::Error => ("error", Style::new().red().bold()),
            Severity::Warning => ("warning", Style::new().yellow().bold()),
        };
        let styled = |style: Style| if in_colour { style } else { Style::new() };
        write!(out, "{}", format_args!("{word}[{}]:", self.code).style(styled(style)))?;
        match (&self.object, &self.part) {
            (Some(object), Some(part)) => write!(out, " {object}, {part}: ")?,
            (Some(object), None) => write!(out, " {object}: ")?,
            (None, _) => write!(out, " ")?,
        }
        out.write_str(&self.message)?;
        if let Some(place) = &self.place {
            write!(out, "\n{place}")?;
        }
        if self.uses_last_good {
            write!(out, "\nnote: the last good objects of this file stay in use")?;
        }
        if let Some(hint) = &self.hint {
            write!(out, "\n{} {hint}", "hint:".style(styled(Style::new().cyan().bold())))?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(out, "  --> {}", self.file);
        }
        write!(out, "  --> {}:{}:{}", self.file, self.line, self.column)?;
        if let Some(excerpt) = &self.excerpt {
            let number = self.line.to_string();
            let before = usize::try_from(self.column.saturating_sub(1)).unwrap_or(usize::MAX);
            // Tabs stay tabs below, so that the caret stands under its character however wide they are shown.
            let lead: String = excerpt
                .chars()
                .take(before)
                .map(|character| if character == '\t' { '\t' } else { ' ' })
                .collect();
            let margin = " ".repeat(number.len());
            write!(out, "\n{number} | {excerpt}\n{margin} | {lead}^")?;
        }
        Ok(())
    }
}
