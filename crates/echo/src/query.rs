//! The query parameters that steer an answer.
//!
//! Called by the HTTP paths. Reads one parameter at a time from the raw query: requests carry few of them.

use std::{borrow::Cow, str::FromStr, time::Duration};

use crate::duration;

#[cfg(test)]
mod tests;

/// The raw query of a request.
#[derive(Clone, Copy)]
pub(crate) struct Query<'request>(&'request str);

/// A parameter that cannot be read, in words for the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadParameter(pub(crate) String);

impl<'request> Query<'request> {
    pub(crate) fn of(uri: &'request http::Uri) -> Self {
        Self(uri.query().unwrap_or_default())
    }

    /// The decoded value of a parameter; an empty one counts as absent.
    pub(crate) fn text(self, name: &str) -> Option<String> {
        self.0
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .find(|(key, _)| decode(key) == name)
            .map(|(_, value)| decode(value).into_owned())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn number<N: FromStr>(self, name: &str) -> Result<Option<N>, BadParameter> {
        self.read(name, "number", |text| text.parse().ok())
    }

    pub(crate) fn duration(self, name: &str) -> Result<Option<Duration>, BadParameter> {
        self.read(name, "duration such as 300ms", duration::parse)
    }

    pub(crate) fn flag(self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value == "true" || value == "1")
    }

    fn read<T>(self, name: &str, kind: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, BadParameter> {
        match self.text(name) {
            None => Ok(None),
            Some(text) => parse(&text)
                .map(Some)
                .ok_or_else(|| BadParameter(format!("query parameter {name}={text} is not a {kind}"))),
        }
    }
}

fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, beyond @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high * 16 + low);
                    rest = beyond;
                }
                _ => bytes.push(b'%'),
            },
            (byte, _) => bytes.push(*byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
