//! Which headers go out, in which order: hygiene first, then the changes that rules and backends make.
//!
//! Written once for all codecs: each gives a function that writes one header in its own form.

use crate::{
    forward::{RequestParts, ResponseView},
    hygiene::{
        ConnectionOptions, Fate, Hop, RequestHygiene, forwardable_upgrade, forwarded_headers, request_header,
        response_header,
    },
    matching::{CompiledFilters, HeaderChanges},
};

/// The filters of a rule and of the backend that it chose, in the order in which they apply.
#[derive(Clone, Copy, Default)]
pub(crate) struct Changes<'a> {
    /// The rule's.
    pub(crate) rule: Option<&'a CompiledFilters>,
    /// The backend's.
    pub(crate) backend: Option<&'a CompiledFilters>,
}

impl<'a> Changes<'a> {
    fn request(self) -> [Option<&'a HeaderChanges>; 2] {
        [self.rule, self.backend].map(|filters| filters.map(|filters| &filters.request_headers))
    }

    fn response(self) -> [Option<&'a HeaderChanges>; 2] {
        [self.rule, self.backend].map(|filters| filters.map(|filters| &filters.response_headers))
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender<'a> {
    /// The peer's address as text.
    pub(crate) peer: &'a str,
    /// Whether the peer is a proxy whose word about the client counts.
    pub(crate) is_trusted: bool,
    /// Whether header names with underscores pass.
    pub(crate) allows_underscores: bool,
}

/// The request breaks a rule about headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Writes the headers of a request, except those that frame it or name its recipient.
pub(crate) fn request_fields(
    request: &RequestParts<'_, '_>,
    sender: Sender<'_>,
    changes: Changes<'_>,
    mut write: impl FnMut(&str, &[u8]),
) -> Result<(), Refused> {
    let connection = connection_options(request.fields.iter().map(|field| (field.name, field.value)));
    if connection.is_excessive {
        return Err(Refused);
    }
    let hygiene = RequestHygiene {
        connection: &connection,
        is_trusted: sender.is_trusted,
        allows_underscores: sender.allows_underscores,
        is_upgrade: request.facts.wants_upgrade,
    };
    let changes = changes.request();
    let is_replaced = |name: &str, changes: &[Option<&HeaderChanges>]| {
        changes
            .iter()
            .flatten()
            .any(|changes| changes.replaces(name.as_bytes()))
    };
    for field in request.fields {
        let value = match request_header(field.name.as_bytes(), field.value, &hygiene) {
            Fate::Forward => field.value,
            Fate::Replace(value) => value.as_bytes(),
            Fate::Drop | Fate::Codec => continue,
            Fate::Refuse => return Err(Refused),
        };
        if !is_replaced(field.name, &changes) {
            write(field.name, value);
        }
    }
    let hop = Hop {
        peer: sender.peer,
        is_trusted: sender.is_trusted,
        scheme: request.scheme,
        authority: request.authority_text(),
    };
    let received = request.fields.iter().map(|field| (field.name.as_bytes(), field.value));
    forwarded_headers(hop, received, |name, value| {
        if !is_replaced(name, &changes) {
            write(name, value);
        }
    });
    write_additions(changes, write);
    Ok(())
}

/// Writes the headers of a response, except those that frame it.
pub(crate) fn response_fields(
    response: &ResponseView<'_>,
    changes: Changes<'_>,
    is_upgrade: bool,
    mut write: impl FnMut(&str, &[u8]),
) {
    let connection = connection_options(response.fields.iter().map(|field| (field.name, field.value)));
    let changes = changes.response();
    for field in response.fields {
        let name = field.name.as_bytes();
        if response_header(name, &connection, is_upgrade) == Fate::Forward
            && !changes.iter().flatten().any(|changes| changes.replaces(name))
        {
            write(field.name, field.value);
        }
    }
    write_additions(changes, write);
}

/// Writes the headers that a rule and its backend add to an answer of our own.
pub(crate) fn added_response_fields(changes: Changes<'_>, write: impl FnMut(&str, &[u8])) {
    write_additions(changes.response(), write);
}

/// What a rule adds is subject to what its backend changes.
fn write_additions([rule, backend]: [Option<&HeaderChanges>; 2], mut write: impl FnMut(&str, &[u8])) {
    for (name, value) in rule.into_iter().flat_map(HeaderChanges::additions) {
        if !backend.is_some_and(|backend| backend.replaces(name.as_str().as_bytes())) {
            write(name.as_str(), value.as_bytes());
        }
    }
    for (name, value) in backend.into_iter().flat_map(HeaderChanges::additions) {
        write(name.as_str(), value.as_bytes());
    }
}

/// Whether a request asks for an upgrade that can be passed on.
pub(crate) fn is_forwardable_upgrade<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> bool {
    let mut protocols = fields.filter(|(name, _)| name.eq_ignore_ascii_case("upgrade"));
    let first = protocols.next().and_then(|(_, value)| forwardable_upgrade(value));
    first.is_some() && protocols.next().is_none()
}

fn connection_options<'a>(fields: impl Iterator<Item = (&'a str, &'a [u8])>) -> ConnectionOptions<'a> {
    let values = fields.filter(|(name, _)| name.len() == 10 && name.eq_ignore_ascii_case("connection"));
    ConnectionOptions::parse(values.map(|(_, value)| value))
}
