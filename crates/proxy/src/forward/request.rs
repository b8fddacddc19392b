//! A request head in the form that routing and forwarding read, whichever codec it came through.

use std::{borrow::Cow, time::Duration};

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
    /// How long the client of a gRPC call waits for it.
    pub(crate) grpc_timeout: Option<Duration>,
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

/// A request head that was copied from where it was read, because somebody has to be asked about it first.
#[derive(Debug)]
pub(crate) struct KeptHead {
    method: String,
    path: String,
    query: Option<String>,
    authority: Option<String>,
    host: String,
    port: Option<u16>,
    fields: Vec<(String, Vec<u8>)>,
    scheme: Scheme,
    /// What matters after the head is gone.
    pub(crate) facts: RequestFacts,
}

impl KeptHead {
    /// Copies a head.
    pub(crate) fn new(request: &RequestParts<'_, '_>) -> Self {
        let fields = request.fields.iter();
        Self {
            method: request.method.to_owned(),
            path: request.target.path.clone().into_owned(),
            query: request.target.query.clone().map(Cow::into_owned),
            authority: request.authority.as_ref().map(|authority| authority.text.to_owned()),
            host: request.host().to_owned(),
            port: request.authority.as_ref().and_then(|authority| authority.port),
            fields: fields
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
            scheme: request.scheme,
            facts: request.facts,
        }
    }

    /// The headers.
    pub(crate) fn fields(&self) -> Vec<Field<'_>> {
        let field = |(name, value)| Field { name, value };
        self.fields
            .iter()
            .map(|(name, value)| field((name.as_str(), value.as_slice())))
            .collect()
    }

    /// The head in the form that forwarding reads.
    pub(crate) fn parts<'h>(&'h self, fields: &'h [Field<'h>]) -> RequestParts<'h, 'h> {
        RequestParts {
            method: &self.method,
            target: Target {
                authority: None,
                path: Cow::Borrowed(&self.path),
                query: self.query.as_deref().map(Cow::Borrowed),
            },
            authority: self.authority.as_deref().map(|text| Authority {
                text,
                host: Cow::Borrowed(&self.host),
                port: self.port,
            }),
            fields,
            scheme: self.scheme,
            facts: self.facts,
        }
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
