//! The report of `check`, for people and for machines. Both say the same.

use std::fmt::Write as _;

use owo_colors::OwoColorize;
use serde_json::json;

use super::folder::Report;
use crate::ui::count;

/// Findings one below the other, then a line that sums up.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let _ = write!(text, "{finding:#}\n\n");
    }
    if !report.passed_over.is_empty() {
        let _ = write!(
            text,
            "passed over, not of a kind that is read: {}\n\n",
            report.passed_over.join(", ")
        );
    }
    let read = format!("{}, {}", count(report.files, "file"), count(report.objects, "object"));
    let (errors, warnings) = (report.errors(), report.warnings());
    let _ = match (errors, warnings) {
        (0, 0) => writeln!(text, "{}: {read}", "fine".green().bold()),
        (0, _) => writeln!(
            text,
            "{}: {read}, {}",
            "fine".green().bold(),
            count(warnings, "warning")
        ),
        (_, 0) => writeln!(text, "{}: {read}, {}", "not fine".red().bold(), count(errors, "error")),
        (_, _) => writeln!(
            text,
            "{}: {read}, {}, {}",
            "not fine".red().bold(),
            count(errors, "error"),
            count(warnings, "warning")
        ),
    };
    text
}

/// The same as JSON.
pub(super) fn json(report: &Report) -> String {
    let document = json!({
        "findings": report.findings,
        "passedOver": report.passed_over,
        "summary": {
            "files": report.files,
            "objects": report.objects,
            "errors": report.errors(),
            "warnings": report.warnings(),
        },
    });
    format!("{document:#}\n")
}
