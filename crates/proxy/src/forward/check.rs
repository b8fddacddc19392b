//! `envoy.service.auth.v3.Authorization/Check`, as far as a gateway speaks it: the request is encoded and the response
//! decoded by hand, because the few fields in use need no generated code.

use std::{
    str,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use gatewright_ir::Scheme;
use http::{HeaderName, HeaderValue};

use super::{
    Changes, Reason,
    aside::Heard,
    ask::{Asking, Ruling, is_settable},
    decide::Denied,
    request_fields,
};
use crate::matching::{HeaderChanges, Passed, RequestView};

/// The method.
pub(super) const METHOD: &str = "/envoy.service.auth.v3.Authorization/Check";

/// A message in the making.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number > 127 {
            // The low seven bits with the mark that more follow.
            self.0.push(u8::try_from(number & 127).unwrap_or_default() | 128);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or_default());
    }

    fn number(&mut self, field: u64, number: u64) {
        self.varint(field << 3);
        self.varint(number);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// An entry of a map from text to text.
    fn entry(&mut self, field: u64, name: &str, value: &str) {
        self.message(field, |entry| {
            entry.bytes(1, name.as_bytes());
            entry.bytes(2, value.as_bytes());
        });
    }
}

/// The request, framed for gRPC.
pub(super) fn request(asking: &Asking<'_>) -> Option<Bytes> {
    let headers = headers(asking)?;
    let mut message = Message::default();
    message.message(1, |context| {
        context.message(1, |source| {
            source.message(1, |address| {
                address.message(1, |socket| {
                    socket.bytes(2, asking.peer.ip().to_canonical().to_string().as_bytes());
                    socket.number(3, u64::from(asking.peer.port()));
                });
            });
        });
        context.message(4, |request| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            request.message(1, |time| time.number(1, since.as_secs()));
            request.message(2, |http| write_http(http, asking, headers));
        });
    });
    let mut framed = vec![0];
    framed.extend_from_slice(&u32::try_from(message.0.len()).unwrap_or(u32::MAX).to_be_bytes());
    framed.extend_from_slice(&message.0);
    Some(framed.into())
}

/// The headers that are sent along, each name once. None when the request may not pass at all.
fn headers(asking: &Asking<'_>) -> Option<Vec<(String, String)>> {
    let mut sent: Vec<(String, String)> = Vec::new();
    request_fields(asking.request, asking.sender, Changes::default(), |name, value| {
        if !asking.auth.request_headers.has(name) {
            return;
        }
        let name = name.to_ascii_lowercase();
        let value = String::from_utf8_lossy(value);
        match sent.iter_mut().find(|(known, _)| *known == name) {
            Some((_, joined)) => {
                joined.push(',');
                joined.push_str(&value);
            }
            None => sent.push((name, value.into_owned())),
        }
    })
    .ok()?;
    Some(sent)
}

fn write_http(http: &mut Message, asking: &Asking<'_>, mut sent: Vec<(String, String)>) {
    let request = asking.request;
    let mut path = request.path().to_owned();
    if let Some(query) = request.query() {
        path.push('?');
        path.push_str(query);
    }
    let scheme = match request.scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    http.bytes(2, request.method.as_bytes());
    if matches!(asking.auth.request_headers, Passed::All) {
        for (name, value) in [
            (":authority", request.authority_text()),
            (":method", request.method),
            (":path", &path),
            (":scheme", scheme),
        ] {
            sent.push((name.to_owned(), value.to_owned()));
        }
    }
    for (name, value) in &sent {
        http.entry(3, name, value);
    }
    http.bytes(4, path.as_bytes());
    http.bytes(5, request.authority_text().as_bytes());
    http.bytes(6, scheme.as_bytes());
    if !asking.body.is_empty() {
        http.number(9, asking.body.len() as u64);
        // A text field must be UTF-8; other bodies go where bytes may.
        let field = if str::from_utf8(asking.body).is_ok() { 11 } else { 12 };
        http.bytes(field, asking.body);
    }
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a kind that nothing here reads.
    Other,
}

/// The fields of a message; ends with None where the message is malformed.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 127) << shift;
            if byte & 128 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }

    /// Visits all fields. None when the message is malformed.
    fn each(mut self, mut visit: impl FnMut(u64, Value<'a>) -> Option<()>) -> Option<()> {
        while !self.0.is_empty() {
            let (number, value) = self.field()?;
            visit(number, value)?;
        }
        Some(())
    }
}

/// What the response means. A call that failed grants nothing.
pub(super) fn response(heard: &Heard) -> Result<Ruling, Reason> {
    let in_head = heard
        .fields
        .iter()
        .find(|(name, _)| name == "grpc-status")
        .map(|(_, value)| value);
    let status = heard
        .trailers
        .as_ref()
        .and_then(|trailers| trailers.get("grpc-status"))
        .or(in_head);
    if heard.status != 200 || status.is_none_or(|status| status != "0") {
        return Err(Reason::AuthUnavailable);
    }
    match heard.body.as_slice() {
        [0, a, b, c, d, message @ ..] if message.len() as u64 == u64::from(u32::from_be_bytes([*a, *b, *c, *d])) => {
            ruling(message).ok_or(Reason::AuthUnavailable)?
        }
        _ => Err(Reason::AuthUnavailable),
    }
}

fn ruling(message: &[u8]) -> Option<Result<Ruling, Reason>> {
    let mut code = 0;
    let mut denied = None;
    let mut request = HeaderChanges::default();
    let mut response = HeaderChanges::default();
    Fields(message).each(|number, value| {
        match (number, value) {
            (1, Value::Bytes(status)) => Fields(status).each(|number, value| {
                if let (1, Value::Number(number)) = (number, value) {
                    code = number;
                }
                Some(())
            })?,
            (2, Value::Bytes(refusal)) => denied = Some(read_denied(refusal)?),
            (3, Value::Bytes(granted)) => read_granted(granted, &mut request, &mut response)?,
            _ => {}
        }
        Some(())
    })?;
    Some(match (code, denied) {
        (0, None) => Ok(Ruling::Granted {
            request: Box::new(request),
            response: (!response.is_empty()).then(|| Box::new(response)),
        }),
        (_, Some(denied)) => Ok(Ruling::Denied(Box::new(denied))),
        (_, None) => Err(Reason::AuthDenied),
    })
}

fn read_denied(message: &[u8]) -> Option<Denied> {
    let mut denied = Denied {
        status: 403,
        fields: Vec::new(),
        body: Bytes::new(),
    };
    Fields(message).each(|number, value| {
        match (number, value) {
            (1, Value::Bytes(status)) => Fields(status).each(|number, value| {
                if let (1, Value::Number(number)) = (number, value) {
                    // A refusal that looks like success is none.
                    denied.status = u16::try_from(number)
                        .ok()
                        .filter(|code| (300..600).contains(code))
                        .unwrap_or(403);
                }
                Some(())
            })?,
            (2, Value::Bytes(option)) => {
                let (name, value, _) = read_option(option)?;
                if is_settable(&name) {
                    denied.fields.push((name, value));
                }
            }
            (3, Value::Bytes(body)) => denied.body = Bytes::copy_from_slice(body),
            _ => {}
        }
        Some(())
    })?;
    Some(denied)
}

fn read_granted(message: &[u8], request: &mut HeaderChanges, response: &mut HeaderChanges) -> Option<()> {
    let mut change = [HeaderLists::default(), HeaderLists::default()];
    let [on_request, on_response] = &mut change;
    Fields(message).each(|number, value| {
        match (number, value) {
            (2, Value::Bytes(option)) => on_request.add(read_option(option)?),
            (5, Value::Bytes(name)) => {
                let name = HeaderName::from_bytes(name).ok()?;
                on_request.remove.extend(is_settable(&name).then_some(name));
            }
            (6, Value::Bytes(option)) => on_response.add(read_option(option)?),
            _ => {}
        }
        Some(())
    })?;
    let [on_request, on_response] = change;
    *request = on_request.into();
    *response = on_response.into();
    Some(())
}

#[derive(Default)]
struct HeaderLists {
    set: Vec<(HeaderName, HeaderValue)>,
    add: Vec<(HeaderName, HeaderValue)>,
    remove: Vec<HeaderName>,
}

impl HeaderLists {
    fn add(&mut self, (name, value, is_appended): (HeaderName, HeaderValue, bool)) {
        if is_settable(&name) {
            let list = if is_appended { &mut self.add } else { &mut self.set };
            list.push((name, value));
        }
    }
}

impl From<HeaderLists> for HeaderChanges {
    fn from(lists: HeaderLists) -> Self {
        Self {
            set: lists.set.into(),
            add: lists.add.into(),
            remove: lists.remove.into(),
        }
    }
}

/// A `HeaderValueOption`: name, value, and whether it joins what is there.
fn read_option(message: &[u8]) -> Option<(HeaderName, HeaderValue, bool)> {
    let mut name = None;
    let mut text: &[u8] = b"";
    let mut is_appended = false;
    Fields(message).each(|number, value| {
        match (number, value) {
            (1, Value::Bytes(header)) => Fields(header).each(|number, value| {
                match (number, value) {
                    (1, Value::Bytes(key)) => name = Some(HeaderName::from_bytes(key).ok()?),
                    (2 | 3, Value::Bytes(value)) if !value.is_empty() => text = value,
                    _ => {}
                }
                Some(())
            })?,
            (2, Value::Bytes(flag)) => Fields(flag).each(|number, value| {
                is_appended |= (number, value) == (1, Value::Number(1));
                Some(())
            })?,
            _ => {}
        }
        Some(())
    })?;
    Some((name?, HeaderValue::from_bytes(text).ok()?, is_appended))
}

#[cfg(test)]
mod tests;
