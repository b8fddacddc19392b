//! `docs/codes.md`: every diagnostic code with its meaning and remedy, made from the enums that define them.
//!
//! A new code appears here by itself; what it means and what to do stands where it is defined and in [`crate::remedy`].

use std::fmt::Write as _;

use gatewright_api::validate::Code;
use gatewright_world::desired::Reason;

use crate::{advice::Advice, finding::Severity, remedy};

const INTRODUCTION: &str = "# Diagnostic codes

Every problem that `gatewright check`, `gatewright status`, the log and `/status` report has a code that keeps its number and its
meaning. This page is made by `gatewright docs codes`.

";

/// The page.
pub(super) fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    let objects = Code::ALL.iter().filter(|code| code.as_str().starts_with("GW10"));
    let files = Code::ALL.iter().filter(|code| code.as_str().starts_with("GW11"));
    section(
        &mut page,
        "GW10xx: an object is not valid",
        "Objects are checked as an API server checks them. An error keeps the object from being used; an unknown field is a warning.",
        objects.map(|code| (code.as_str(), code.title(), code.title(), remedy::of_code(*code))),
    );
    section(
        &mut page,
        "GW11xx: a file cannot be used",
        "A file with an error keeps its last good objects in use.",
        files.map(|code| (code.as_str(), code.title(), code.title(), remedy::of_code(*code))),
    );
    section(
        &mut page,
        "GW20xx: reasons of conditions",
        "The reason stands in the `status` of the object, in Gateway API's own words wherever it has one. Codes GW2000 to GW2003 tell that all is well.",
        Reason::ALL.iter().map(|reason| {
            (
                reason.code(),
                reason.as_str(),
                reason.title(),
                remedy::of_reason(*reason),
            )
        }),
    );
    section(
        &mut page,
        "GW30xx: advice",
        "What no condition says, because nobody is responsible for the object in Kubernetes.",
        Advice::ALL.iter().map(|advice| {
            let severity = match advice.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            (advice.code(), severity, advice.title(), advice.remedy())
        }),
    );
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn section<'t>(
    page: &mut String,
    title: &str,
    text: &str,
    rows: impl Iterator<Item = (&'t str, &'t str, &'t str, &'t str)>,
) {
    let _ = write!(page, "## {title}\n\n{text}\n\n");
    for (code, name, meaning, remedy) in rows {
        let _ = write!(page, "### {code}\n\n");
        if name == meaning {
            let _ = write!(page, "{}.", capitalised(meaning));
        } else {
            let _ = write!(page, "`{name}`: {meaning}");
        }
        let _ = write!(page, "\n\nWhat to do: {remedy}.\n\n");
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}
