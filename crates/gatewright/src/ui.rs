//! Everything the program prints, except its log.
//!
//! Commands hand in finished text: data goes to stdout, messages to stderr. Colour is stripped where a terminal does not
//! want it (`NO_COLOR`, pipes). A reader that went away ends nothing in an error: `gatewright status | head` is fine.

use std::{fmt::Write as _, io::Write as _};

use owo_colors::OwoColorize;

pub(crate) mod table;

/// Writes data to stdout; a missing final line end is added.
pub(crate) fn data(text: &str) {
    let mut out = anstream::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Writes an error and how to mend it to stderr.
pub(crate) fn error(message: &str, hint: Option<&str>) {
    let mut text = format!("{} {message}\n", "error:".red().bold());
    if let Some(hint) = hint {
        let _ = write!(text, "\n{} {hint}\n", "hint:".cyan().bold());
    }
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes a message that is no data to stderr.
pub(crate) fn note(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}\n");
}

/// A number with its noun: `1 file`, `2 files`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Text from elsewhere, without what would command a terminal.
pub(crate) fn printable(text: &str) -> String {
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
