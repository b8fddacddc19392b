//! The forms a request target can have in HTTP/1.1.

use std::borrow::Cow;

use super::{
    Refusal,
    host::Authority,
    path::{normalise_path, push_escaped},
};

/// A request target, taken apart and normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The authority of an absolute URI: it counts more than the `Host` header, and is forwarded in its place.
    pub(crate) authority: Option<Authority<'a>>,
    /// The normalised path, or the `*` of an OPTIONS request about the server itself.
    pub(crate) path: Cow<'a, str>,
    /// The query without its `?`, as it came except that bytes above 127 are escaped.
    pub(crate) query: Option<Cow<'a, str>>,
}

impl<'a> Target<'a> {
    /// Reads the target of a request line, or the `:path` of HTTP/2.
    pub(crate) fn parse(method: &str, target: &'a [u8], keep_escaped_slashes: bool) -> Result<Self, Refusal> {
        if method == "CONNECT" {
            return Err(Refusal::Connect);
        }
        match target {
            [b'/', ..] => Self::from_path_and_query(None, target, keep_escaped_slashes),
            b"*" if method == "OPTIONS" => Ok(Self {
                authority: None,
                path: Cow::Borrowed("*"),
                query: None,
            }),
            _ => {
                let rest = after_scheme(target).ok_or(Refusal::Form)?;
                let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
                let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
                let authority = Some(Authority::parse(authority)?);
                Self::from_path_and_query(authority, rest, keep_escaped_slashes)
            }
        }
    }

    fn from_path_and_query(
        authority: Option<Authority<'a>>,
        text: &'a [u8],
        keep_escaped_slashes: bool,
    ) -> Result<Self, Refusal> {
        let (path, query) = match text.iter().position(|byte| *byte == b'?') {
            Some(mark) => (text.get(..mark), text.get(mark + 1..)),
            None => (Some(text), None),
        };
        // Only an absolute URI can come without any path; that means the root.
        let path = path.filter(|path| !path.is_empty()).unwrap_or(b"/");
        Ok(Self {
            authority,
            path: normalise_path(path, keep_escaped_slashes)?,
            query: query.map(check_query).transpose()?,
        })
    }
}

/// What follows `http://` or `https://`.
fn after_scheme(target: &[u8]) -> Option<&[u8]> {
    ["http://", "https://"].iter().find_map(|scheme| {
        let (front, rest) = target.split_at_checked(scheme.len())?;
        front.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    })
}

/// A query may hold anything but what would end the line, or a fragment.
fn check_query(query: &[u8]) -> Result<Cow<'_, str>, Refusal> {
    for byte in query {
        match byte {
            b'#' => return Err(Refusal::Fragment),
            0..=b' ' | 0x7f => return Err(Refusal::Character),
            _ => {}
        }
    }
    match std::str::from_utf8(query) {
        Ok(text) if text.is_ascii() => Ok(Cow::Borrowed(text)),
        _ => {
            let mut escaped = String::with_capacity(query.len() * 2);
            for &byte in query {
                if byte.is_ascii() {
                    escaped.push(char::from(byte));
                } else {
                    push_escaped(&mut escaped, byte);
                }
            }
            Ok(Cow::Owned(escaped))
        }
    }
}
