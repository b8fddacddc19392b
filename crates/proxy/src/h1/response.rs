//! Reads the head of a backend's response.
//!
//! A backend that is not clear about where its response ends is answered for with 502, and its connection is not used
//! again. Called by the HTTP/1.1 upstream. Knows nothing of clients.

use httparse::Status;

use super::head::{BodyLength, Slots, parse_length, tokens};
use crate::forward::Field;

/// A response head that passed every check.
#[derive(Debug)]
pub(crate) struct ResponseHead<'h, 'b> {
    /// The status code.
    pub(crate) status: u16,
    /// The headers as they were sent.
    pub(crate) fields: &'h [Field<'b>],
    /// How many bytes the head takes.
    pub(crate) length: usize,
    /// How long the body is.
    pub(crate) body: BodyLength,
    /// The length that the head states, which for `HEAD` and 304 is not the body's.
    pub(crate) stated_length: Option<u64>,
    /// Whether the backend keeps the connection open.
    pub(crate) is_persistent: bool,
}

/// The response is not HTTP, or ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Parses a response head. `None` when it is not complete.
pub(crate) fn parse_response<'h, 'b>(
    bytes: &'b [u8],
    slots: &'h mut Slots<'b>,
    to_head_request: bool,
) -> Result<Option<ResponseHead<'h, 'b>>, Malformed> {
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, bytes, slots);
    let length = match parsed {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err(Malformed),
    };
    let (Some(status), Some(minor)) = (response.code, response.version) else {
        return Err(Malformed);
    };
    if status < 100 {
        return Err(Malformed);
    }
    let fields: &'h [Field<'b>] = response.headers;
    let mut stated_length = None;
    let mut is_chunked = false;
    let mut says_close = false;
    let mut says_keep_alive = false;
    for field in fields {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            10 if is("connection") => {
                for token in tokens(field.value) {
                    says_close |= token.eq_ignore_ascii_case(b"close");
                    says_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if is("content-length") => {
                let length = parse_length(field.value).ok_or(Malformed)?;
                if stated_length.replace(length).is_some_and(|before| before != length) {
                    return Err(Malformed);
                }
            }
            17 if is("transfer-encoding") => {
                let is_plain = field.value.eq_ignore_ascii_case(b"chunked");
                let is_repeated = std::mem::replace(&mut is_chunked, true);
                if is_repeated || !is_plain {
                    return Err(Malformed);
                }
            }
            _ => {}
        }
    }
    if is_chunked && (stated_length.is_some() || minor == 0) {
        return Err(Malformed);
    }
    let has_no_body = to_head_request || status < 200 || status == 204 || status == 304;
    let body = match stated_length {
        _ if has_no_body => BodyLength::Known(0),
        _ if is_chunked => BodyLength::Chunked,
        Some(length) => BodyLength::Known(length),
        None => BodyLength::UntilClose,
    };
    let is_persistent = !says_close && (minor == 1 || says_keep_alive) && body != BodyLength::UntilClose;
    Ok(Some(ResponseHead {
        status,
        fields,
        length,
        body,
        stated_length,
        is_persistent,
    }))
}

#[cfg(test)]
mod tests;
