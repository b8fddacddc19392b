//! Query parameters, as matching reads them.
//!
//! Called by the matcher, and only when a candidate has a condition on a parameter: most requests never have their query
//! taken apart. What is forwarded is the query as it came; decoding happens for comparison alone.

use std::{borrow::Cow, cell::OnceCell};

/// A query that is taken apart at most once, and not before somebody asks.
pub(crate) struct Parameters<'a> {
    raw: Option<&'a str>,
    pairs: OnceCell<Vec<(Cow<'a, str>, Cow<'a, str>)>>,
}

impl<'a> Parameters<'a> {
    /// The parameters of a query without its `?`.
    pub(crate) fn new(raw: Option<&'a str>) -> Self {
        Self {
            raw,
            pairs: OnceCell::new(),
        }
    }

    /// The value of a parameter. Of a repeated one the first counts, as Gateway API recommends.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        let raw = self.raw?;
        let pairs = self.pairs.get_or_init(|| pairs(raw).collect());
        let (_, value) = pairs.iter().find(|(candidate, _)| candidate == name)?;
        Some(value)
    }
}

/// The decoded parameters in order. A parameter without `=` has the empty value; empty pieces are no parameters.
pub(crate) fn pairs(raw: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    raw.split('&').filter(|piece| !piece.is_empty()).map(|piece| {
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        (decode(name), decode(value))
    })
}

/// Decodes `+` and percent escapes. Malformed escapes stand for themselves and bytes that are no UTF-8 become U+FFFD: a
/// query may contain anything, and a parameter that cannot be read simply meets no condition.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| matches!(byte, b'+' | b'%')) {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => match escaped(after) {
                Some((byte, after)) => {
                    rest = after;
                    byte
                }
                None => b'%',
            },
            _ => byte,
        });
    }
    Cow::Owned(match String::from_utf8(decoded) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The byte that the two digits after a `%` stand for, and what follows them.
pub(crate) fn escaped(after: &[u8]) -> Option<(u8, &[u8])> {
    let [high, low, rest @ ..] = after else { return None };
    Some((hex(*high)? << 4 | hex(*low)?, rest))
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
