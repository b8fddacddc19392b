//! A request head in the form that routing and forwarding read, whichever codec it came through.

use gatewright_ir::Scheme;

use crate::{
    h1::BodyLength,
    matching::RequestView,
    normalise::{Authority, Target},
};

/// A header: its name as it was sent, and its value.
pub(crate) type Field<'a> = httparse::Header<'a>;

/// A request head, borrowed from where it was read.
#[derive(Debug)]
pub(crate) struct RequestParts<'h, 'a> {
    /// The method.
    pub(crate) method: &'a str,
    /// The path and the query, normalised.
    pub(crate) target: Target<'a>,
    /// The host that the request is for; absent in HTTP/1.0 only.
    pub(crate) authority: Option<Authority<'a>>,
    /// The headers.
    pub(crate) fields: &'h [Field<'a>],
    /// How the request came to the listener.
    pub(crate) scheme: Scheme,
    /// What matters after the head is gone.
    pub(crate) facts: RequestFacts,
}

/// What an exchange must know about its request after the head is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts that a head states")]
pub(crate) struct RequestFacts {
    /// How long the body is; chunked stands for unknown.
    pub(crate) body: BodyLength,
    /// Whether the response has no body, whatever its head says.
    pub(crate) is_head: bool,
    /// Whether sending it twice does no harm.
    pub(crate) is_idempotent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
    /// Whether the client asks for another protocol.
    pub(crate) wants_upgrade: bool,
    /// Whether this is gRPC, whose calls may be silent for as long as they like.
    pub(crate) is_grpc: bool,
}

/// Whether RFC 9110 calls a method idempotent.
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
}

impl RequestParts<'_, '_> {
    /// The authority as it is sent on.
    pub(crate) fn authority_text(&self) -> &str {
        self.authority.as_ref().map_or("", |authority| authority.text)
    }
}

impl RequestView for RequestParts<'_, '_> {
    fn host(&self) -> &str {
        self.authority.as_ref().map_or("", |authority| &authority.host)
    }

    fn method(&self) -> &str {
        self.method
    }

    fn path(&self) -> &str {
        &self.target.path
    }

    fn query(&self) -> Option<&str> {
        self.target.query.as_deref()
    }

    fn header_values<'v>(&'v self, name: &'v str) -> impl Iterator<Item = &'v [u8]> + 'v {
        self.fields
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name))
            .map(|field| field.value)
    }
}

/// A response head, borrowed from where it was read.
#[derive(Debug)]
pub(crate) struct ResponseView<'a> {
    /// The status code.
    pub(crate) status: u16,
    /// The headers.
    pub(crate) fields: &'a [Field<'a>],
    /// How long the body is; chunked stands for unknown.
    pub(crate) body: BodyLength,
    /// The length that the head states, which for `HEAD` and 304 is not the body's.
    pub(crate) stated_length: Option<u64>,
}
