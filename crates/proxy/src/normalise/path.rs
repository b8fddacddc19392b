//! The normal form of a path.
//!
//! | in the request | becomes | because |
//! |---|---|---|
//! | `/a/./b`, `/a/../b`, also as `%2e` | `/a/b`, `/b` | a backend would resolve them after the rules were applied |
//! | `//` | `/` | most backends take both for the same; merged before dots are resolved, as file systems do |
//! | `%61`, an escaped letter, digit or `-._~` | `a` | RFC 3986 calls both the same, so rules must see one form |
//! | a byte above 127 | `%C3` | raw bytes are no URI, but clients send them; the escaped form is what rules can name |
//! | `%2f`, `%5c` | refused, or kept when the listener says so | backends disagree about whether these separate segments |
//! | `\`, `#`, space, control characters, `%00`, half an escape | refused | no honest client sends them |
//! | everything else, `;x` and overlong UTF-8 included | itself | it has no other meaning to us |

use std::borrow::Cow;

use super::Refusal;
use crate::query::escaped;

/// The normal form of a path, which must begin with a slash. A path that is normal already is not copied.
pub(crate) fn normalise_path(path: &[u8], keep_escaped_slashes: bool) -> Result<Cow<'_, str>, Refusal> {
    if path.first() != Some(&b'/') {
        return Err(Refusal::Form);
    }
    let is_normal = inspect(path, keep_escaped_slashes)?;
    match std::str::from_utf8(path) {
        Ok(text) if is_normal => Ok(Cow::Borrowed(text)),
        _ => Ok(Cow::Owned(rebuild(path))),
    }
}

/// Refuses what is not allowed in a path; says whether the rest is normal.
fn inspect(path: &[u8], keep_escaped_slashes: bool) -> Result<bool, Refusal> {
    let mut is_normal = true;
    let mut before = 0;
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'/' if before == b'/' => is_normal = false,
            b'.' if before == b'/' => is_normal &= !matches!(after, [] | [b'/', ..] | [b'.'] | [b'.', b'/', ..]),
            b'%' => match escaped(after).ok_or(Refusal::Escape)?.0 {
                0 => return Err(Refusal::Null),
                b'/' | b'\\' if !keep_escaped_slashes => return Err(Refusal::EscapedSlash),
                byte => is_normal &= !is_unreserved(byte),
            },
            b'#' => return Err(Refusal::Fragment),
            0..=b' ' | b'\\' | 0x7f => return Err(Refusal::Character),
            0x80.. => is_normal = false,
            _ => {}
        }
        before = byte;
        rest = after;
    }
    Ok(is_normal)
}

/// Builds the normal form of a path that passed inspection.
fn rebuild(path: &[u8]) -> String {
    let mut normal = String::with_capacity(path.len() + 16);
    let mut ends_open = false;
    for segment in path.split(|byte| *byte == b'/') {
        let start = normal.len();
        normal.push('/');
        push_segment(&mut normal, segment);
        ends_open = false;
        match normal.get(start..) {
            Some("/" | "/.") => {
                normal.truncate(start);
                ends_open = true;
            }
            Some("/..") => {
                normal.truncate(start);
                normal.truncate(normal.rfind('/').unwrap_or(0));
                ends_open = true;
            }
            _ => {}
        }
    }
    if ends_open {
        normal.push('/');
    }
    normal
}

fn push_segment(normal: &mut String, segment: &[u8]) {
    let mut rest = segment;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => match escaped(after) {
                Some((decoded, after)) if is_unreserved(decoded) => {
                    normal.push(char::from(decoded));
                    rest = after;
                }
                _ => normal.push('%'),
            },
            0x80.. => push_escaped(normal, byte),
            _ => normal.push(char::from(byte)),
        }
    }
}

/// Writes a byte as `%` and two digits.
pub(crate) fn push_escaped(text: &mut String, byte: u8) {
    let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'A' + value - 10 });
    text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
}

/// The characters that mean the same whether escaped or not.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}
