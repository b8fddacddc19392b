//! Something wrong in the folder, with its place and how to mend it.
//!
//! Shown on stderr, in `/status` and by `gatewright check`. What a Secret holds appears in none of them.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use gatewright_api::{
    ObjectName,
    validate::{Code, Severity},
};
use serde::{Serialize, Serializer};

use super::split::Chunk;

/// Longest excerpt, in characters: enough to recognise the line.
const MOST_CHARACTERS: usize = 200;

/// Something wrong in the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// An error keeps the document or the file from being used; a warning does not.
    pub severity: Severity,
    /// The file or folder, as it was named by the user and from there on.
    #[serde(serialize_with = "as_text")]
    pub file: PathBuf,
    /// The line, counted from 1; 0 when the whole file is meant.
    pub line: u64,
    /// The column in characters, counted from 1; 0 when the whole file is meant.
    pub column: u64,
    /// The object, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectName>,
    /// What is wrong, with the field it is about.
    pub message: String,
    /// How to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The offending line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Whether the last good objects of the file are in use instead of what it says now.
    pub uses_last_good: bool,
}

/// File names need not be Unicode; one that is not must not keep the others from being shown.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Text that was found in a file, without what would command a terminal.
pub(super) fn printable(text: &str) -> String {
    let is_harmless = |character: char| !character.is_control() || character == '\t';
    text.chars()
        .map(|character| {
            if is_harmless(character) {
                character
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

/// A place in a file, with the text of its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) column: u64,
    pub(super) excerpt: Option<String>,
}

impl Problem {
    /// A problem of a file as a whole.
    pub(super) fn of_file(code: Code, file: &Path, message: String, hint: &str) -> Problem {
        Problem {
            code,
            severity: Severity::Error,
            file: file.to_owned(),
            line: 0,
            column: 0,
            object: None,
            message,
            hint: Some(hint.to_owned()).filter(|hint| !hint.is_empty()),
            excerpt: None,
            uses_last_good: false,
        }
    }

    pub(super) fn at(mut self, place: Place) -> Problem {
        let Place { line, column, excerpt } = place;
        self.line = line;
        self.column = column;
        self.excerpt = excerpt;
        self
    }

    /// Whether this keeps something from being used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl Place {
    /// A place in a document, by line and column of its file, with its excerpt. Of a document that may hold a Secret
    /// only the key of the line is shown.
    pub(super) fn new(chunk: Chunk<'_>, line: u64, column: u64, is_secret: bool) -> Place {
        let position = usize::try_from(line.saturating_sub(chunk.lines_before + 1)).unwrap_or(usize::MAX);
        let excerpt = chunk.text.lines().nth(position).map(|line| {
            let shown: String = line.trim_end().chars().take(MOST_CHARACTERS).collect();
            let mut shown = printable(&shown);
            if is_secret {
                let key_length = shown.find(':').map_or(0, |colon| colon + 1);
                shown.truncate(key_length);
                shown.push('…');
            }
            shown
        });
        Place { line, column, excerpt }
    }
}

/// What failed, then where with the line and a caret below it, then the hint.
impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}[{}]: ", self.severity, self.code)?;
        if let Some(object) = &self.object {
            write!(out, "{object}: ")?;
        }
        write!(out, "{}", self.message)?;
        let file = self.file.display();
        if self.line == 0 {
            write!(out, "\n  --> {file}")?;
        } else {
            write!(out, "\n  --> {file}:{}:{}", self.line, self.column)?;
        }
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
        if let Some(hint) = &self.hint {
            write!(out, "\nhint: {hint}")?;
        }
        Ok(())
    }
}
