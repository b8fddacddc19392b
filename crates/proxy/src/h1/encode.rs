//! Writes heads: requests to backends, responses to clients, and the answers that the proxy gives itself.

use std::io::Write;

use super::{head::BodyLength, write::Encoding};
use crate::forward::{
    Changes, Content, RequestFacts, RequestParts, ResponseView, Sender, Wanted, added_response_fields, phrase,
    request_fields, response_fields,
};

/// Writes a request head for a backend and says how the body after it is delimited. `None` when a header is refused.
pub(crate) fn write_request(
    out: &mut Vec<u8>,
    request: &RequestParts<'_, '_>,
    wanted: &Wanted<'_>,
    facts: RequestFacts,
    sender: Sender<'_>,
    changes: Changes<'_>,
) -> Option<Encoding> {
    out.extend_from_slice(request.method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(wanted.path().as_bytes());
    if let Some(query) = wanted.query {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    field(out, "host", wanted.authority);
    request_fields(request, sender, changes, |name, value| field(out, name, value)).ok()?;
    let encoding = match facts.body {
        // A method that usually has a body says so when it has none.
        BodyLength::Known(0) if matches!(request.method, "POST" | "PUT" | "PATCH") => {
            out.extend_from_slice(b"content-length: 0\r\n");
            Encoding::Empty
        }
        BodyLength::Known(0) => Encoding::Empty,
        BodyLength::Known(length) => {
            length_field(out, length);
            Encoding::Length(length)
        }
        BodyLength::Chunked | BodyLength::UntilClose => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Encoding::Chunked
        }
    };
    if facts.expects_continue {
        out.extend_from_slice(b"expect: 100-continue\r\n");
    }
    if facts.wants_upgrade {
        out.extend_from_slice(b"connection: upgrade\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Some(encoding)
}

/// What the head of a response says about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manners {
    pub(super) is_http10: bool,
    pub(super) is_head: bool,
    /// Whether the connection ends after this response.
    pub(super) closes: bool,
}

/// Writes a response head for a client and says how the body after it is delimited.
pub(super) fn write_response(
    out: &mut Vec<u8>,
    response: &ResponseView<'_>,
    changes: Changes<'_>,
    manners: Manners,
) -> Encoding {
    status_line(out, response.status);
    response_fields(response, changes, false, |name, value| field(out, name, value));
    let has_no_body = manners.is_head || matches!(response.status, 204 | 304);
    let mut closes = manners.closes;
    let encoding = match response.body {
        _ if has_no_body => {
            // What the body would be is part of the answer to a HEAD request.
            if let Some(length) = response.stated_length.filter(|_| response.status != 204) {
                length_field(out, length);
            }
            Encoding::Empty
        }
        BodyLength::Known(length) => {
            length_field(out, length);
            Encoding::Length(length)
        }
        BodyLength::Chunked | BodyLength::UntilClose if manners.is_http10 => {
            closes = true;
            Encoding::UntilClose
        }
        BodyLength::Chunked | BodyLength::UntilClose => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Encoding::Chunked
        }
    };
    connection_field(out, manners.is_http10, closes);
    out.extend_from_slice(b"\r\n");
    encoding
}

/// Writes an interim response.
pub(super) fn write_interim(out: &mut Vec<u8>, response: &ResponseView<'_>) {
    status_line(out, response.status);
    if response.status != 100 {
        response_fields(response, Changes::default(), false, |name, value| {
            field(out, name, value);
        });
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes the response after which another protocol is spoken.
pub(super) fn write_switch(out: &mut Vec<u8>, response: &ResponseView<'_>, changes: Changes<'_>) {
    status_line(out, response.status);
    response_fields(response, changes, true, |name, value| field(out, name, value));
    out.extend_from_slice(b"connection: upgrade\r\n\r\n");
}

/// Writes an answer of our own, with its body.
pub(super) fn write_answer(out: &mut Vec<u8>, content: &Content, changes: Changes<'_>, manners: Manners) {
    let status = content.status();
    status_line(out, status);
    let text = match content {
        Content::Reason(reason) => {
            out.extend_from_slice(b"content-type: text/plain; charset=utf-8\r\n");
            reason.text().as_bytes()
        }
        Content::Redirect { location, .. } => {
            field(out, "location", location.as_bytes());
            b""
        }
        Content::Preflight => b"",
        Content::Denied(denied) => {
            for (name, value) in &denied.fields {
                field(out, name.as_str(), value.as_bytes());
            }
            &denied.body
        }
    };
    if status == 405 && !matches!(content, Content::Denied(_)) {
        out.extend_from_slice(b"allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
    }
    added_response_fields(changes, |name, value| field(out, name, value));
    // These never have a body, nor a length.
    let has_none = matches!(status, 204 | 304);
    if !has_none {
        length_field(out, text.len() as u64);
    }
    connection_field(out, manners.is_http10, manners.closes);
    out.extend_from_slice(b"\r\n");
    if !manners.is_head && !has_none {
        out.extend_from_slice(text);
    }
}

fn status_line(out: &mut Vec<u8>, status: u16) {
    if status == 200 {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    // Writing to memory does not fail.
    _ = write!(out, "HTTP/1.1 {status} {}\r\n", phrase(status));
}

fn connection_field(out: &mut Vec<u8>, is_http10: bool, closes: bool) {
    if closes {
        out.extend_from_slice(b"connection: close\r\n");
    } else if is_http10 {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
}

fn length_field(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"content-length: ");
    decimal(out, length);
    out.extend_from_slice(b"\r\n");
}

fn decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0_u8; 20];
    let mut left = number;
    let mut count = 0;
    for place in digits.iter_mut().rev() {
        // A remainder of ten is a digit.
        *place = b'0' + u8::try_from(left % 10).unwrap_or_default();
        left /= 10;
        count += 1;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(20 - count..).unwrap_or_default());
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
