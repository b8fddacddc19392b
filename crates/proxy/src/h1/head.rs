//! Reads the head of a request, strictly.
//!
//! `httparse` finds the tokens; everything that could make two parties disagree about where a request ends or whom it is
//! for is refused here, before anything is routed. Called by the connection loop. Knows nothing of routes.

use std::mem::MaybeUninit;

use httparse::{Error, Status};

use crate::forward::{Field, Reason};

/// Most headers of one message.
pub(crate) const MOST_FIELDS: usize = 100;

/// Room for the headers of one message, on the stack of whoever parses.
pub(crate) type Slots<'b> = [MaybeUninit<Field<'b>>; MOST_FIELDS];

/// An empty [`Slots`].
pub(crate) fn slots<'b>() -> Slots<'b> {
    [const { MaybeUninit::uninit() }; MOST_FIELDS]
}

/// A request head that passed every check.
#[derive(Debug)]
pub(crate) struct RequestHead<'h, 'b> {
    /// The method.
    pub(crate) method: &'b str,
    /// The request target as it was sent.
    pub(crate) target: &'b str,
    /// The headers as they were sent.
    pub(crate) fields: &'h [Field<'b>],
    /// How many bytes the head takes.
    pub(crate) length: usize,
    /// What the head says about the connection and the body.
    pub(crate) framing: RequestFraming,
    /// The only `Host`, absent in HTTP/1.0 only.
    pub(crate) host: Option<&'b [u8]>,
}

/// What a request's head says about the connection and the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts that a head states")]
pub(crate) struct RequestFraming {
    /// How long the body is.
    pub(crate) body: BodyLength,
    /// Whether the client speaks HTTP/1.0.
    pub(crate) is_http10: bool,
    /// Whether the client will send more requests on this connection.
    pub(crate) is_persistent: bool,
    /// Whether the client waits for `100 Continue`.
    pub(crate) expects_continue: bool,
    /// Whether the client asks for another protocol.
    pub(crate) wants_upgrade: bool,
}

impl RequestFraming {
    /// What holds before any head was read.
    pub(super) const UNKNOWN: Self = Self {
        body: BodyLength::Known(0),
        is_http10: false,
        is_persistent: false,
        expects_continue: false,
        wants_upgrade: false,
    };
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// So many bytes.
    Known(u64),
    /// As many as the chunks hold.
    Chunked,
    /// Until the connection ends; only responses can be so.
    UntilClose,
}

impl BodyLength {
    /// Whether there is nothing to read.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::Known(0)
    }
}

/// Parses a request head. `None` when it is not complete.
pub(crate) fn parse_request<'h, 'b>(
    bytes: &'b [u8],
    slots: &'h mut Slots<'b>,
    allow_underscores: bool,
) -> Result<Option<RequestHead<'h, 'b>>, Reason> {
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(bytes, slots) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(Error::TooManyHeaders) => return Err(Reason::HeadTooLarge),
        Err(Error::Version) if names_other_version(bytes) => return Err(Reason::UnsupportedVersion),
        Err(_) => return Err(Reason::MalformedHead),
    };
    if has_bare_line_feed(bytes.get(..length).unwrap_or_default()) {
        return Err(Reason::MalformedHead);
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version) else {
        return Err(Reason::MalformedHead);
    };
    let fields: &'h [Field<'b>] = request.headers;
    let mut facts = Facts::new(minor == 0);
    for field in fields {
        if !allow_underscores && field.name.contains('_') {
            return Err(Reason::Underscore);
        }
        facts.note(field)?;
    }
    Ok(Some(RequestHead {
        method,
        target,
        fields,
        length,
        host: facts.host,
        framing: facts.framing()?,
    }))
}

/// What is collected while walking over the headers.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts that a head states")]
struct Facts<'b> {
    is_http10: bool,
    host: Option<&'b [u8]>,
    length: Option<u64>,
    is_chunked: bool,
    says_close: bool,
    says_keep_alive: bool,
    says_upgrade: bool,
    names_protocol: bool,
    expects_continue: bool,
}

impl<'b> Facts<'b> {
    fn new(is_http10: bool) -> Self {
        Self {
            is_http10,
            host: None,
            length: None,
            is_chunked: false,
            says_close: false,
            says_keep_alive: false,
            says_upgrade: false,
            names_protocol: false,
            expects_continue: false,
        }
    }

    fn note(&mut self, field: &Field<'b>) -> Result<(), Reason> {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") && self.host.replace(field.value).is_some() => return Err(Reason::BadHost),
            6 if is("expect") => {
                if !field.value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Reason::UnknownExpectation);
                }
                self.expects_continue = !self.is_http10;
            }
            7 if is("upgrade") => self.names_protocol = true,
            10 if is("connection") => {
                for token in tokens(field.value) {
                    self.says_close |= token.eq_ignore_ascii_case(b"close");
                    self.says_keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                    self.says_upgrade |= token.eq_ignore_ascii_case(b"upgrade");
                }
            }
            14 if is("content-length") => {
                let length = parse_length(field.value).ok_or(Reason::AmbiguousLength)?;
                if self.length.replace(length).is_some() {
                    return Err(Reason::AmbiguousLength);
                }
            }
            17 if is("transfer-encoding") => {
                if self.is_http10 {
                    return Err(Reason::TransferEncodingInHttp10);
                }
                if !field.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Reason::UnknownTransferEncoding);
                }
                if std::mem::replace(&mut self.is_chunked, true) {
                    return Err(Reason::AmbiguousLength);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn framing(&self) -> Result<RequestFraming, Reason> {
        let body = match (self.length, self.is_chunked) {
            (Some(_), true) => return Err(Reason::AmbiguousLength),
            (Some(length), false) => BodyLength::Known(length),
            (None, true) => BodyLength::Chunked,
            (None, false) => BodyLength::Known(0),
        };
        if self.host.is_none() && !self.is_http10 {
            return Err(Reason::BadHost);
        }
        Ok(RequestFraming {
            body,
            is_http10: self.is_http10,
            is_persistent: !self.says_close && (!self.is_http10 || self.says_keep_alive),
            expects_continue: self.expects_continue,
            wants_upgrade: self.says_upgrade && self.names_protocol && !self.is_http10,
        })
    }
}

/// A plain number: digits only, no sign, no list, not too large.
pub(crate) fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    value.iter().try_fold(0_u64, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0'))
    })
}

/// The members of a comma-separated list.
pub(crate) fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Whether a line ends without a carriage return, which some parsers take for a line end and others do not.
pub(crate) fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at.checked_sub(1).and_then(|before| head.get(before)) != Some(&b'\r'))
}

/// Whether the request line is well formed except for its version.
fn names_other_version(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
    let words = (words.next(), words.next(), words.next(), words.next());
    let (Some(_), Some([_, ..]), Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor]), None) = words else {
        return false;
    };
    major.is_ascii_digit() && minor.is_ascii_digit()
}

#[cfg(test)]
mod tests;
