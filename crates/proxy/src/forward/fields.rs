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

/// Everything that changes the headers of a request and of its response.
#[derive(Clone, Copy, Default)]
pub(crate) struct Changes<'a> {
    /// The rule's filters.
    pub(crate) rule: Option<&'a CompiledFilters>,
    /// The filters of the backend that it chose.
    pub(crate) backend: Option<&'a CompiledFilters>,
    /// What an authoriser puts on the request.
    pub(crate) granted: Option<&'a HeaderChanges>,
    /// What CORS says on the response.
    pub(crate) cors: Option<&'a HeaderChanges>,
    /// What the response says so that the client comes back to its endpoint.
    pub(crate) session: Option<&'a HeaderChanges>,
}

impl<'a> Changes<'a> {
    fn request(self) -> Layers<'a, 3> {
        let [rule, backend] = [self.rule, self.backend].map(|filters| filters.map(|filters| &filters.request_headers));
        Layers::new([self.granted, rule, backend])
    }

    fn response(self) -> Layers<'a, 4> {
        let [rule, backend] = [self.rule, self.backend].map(|filters| filters.map(|filters| &filters.response_headers));
        Layers::new([self.cors, rule, backend, self.session])
    }
}

/// Header changes in the order in which they apply.
struct Layers<'a, const N: usize> {
    layers: [Option<&'a HeaderChanges>; N],
    is_empty: bool,
}

impl<'a, const N: usize> Layers<'a, N> {
    fn new(layers: [Option<&'a HeaderChanges>; N]) -> Self {
        Self {
            is_empty: layers.iter().all(Option::is_none),
            layers,
        }
    }

    /// Whether a header that is present must not be passed on.
    fn replace(&self, name: &str) -> bool {
        let mut layers = self.layers.iter().flatten();
        !self.is_empty && layers.any(|changes| changes.replaces(name.as_bytes()))
    }

    /// Writes what is added. What a layer adds is subject to what later ones change.
    fn write_additions(&self, mut write: impl FnMut(&str, &[u8])) {
        if self.is_empty {
            return;
        }
        for (place, changes) in self.layers.iter().enumerate() {
            let later = self.layers.get(place + 1..).unwrap_or_default();
            for (name, value) in changes.iter().flat_map(|changes| changes.additions()) {
                let mut later = later.iter().flatten();
                if !later.any(|changes| changes.replaces(name.as_str().as_bytes())) {
                    write(name.as_str(), value.as_bytes());
                }
            }
        }
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
    for field in request.fields {
        let value = match request_header(field.name.as_bytes(), field.value, &hygiene) {
            Fate::Forward => field.value,
            Fate::Replace(value) => value.as_bytes(),
            Fate::Drop | Fate::Codec => continue,
            Fate::Refuse => return Err(Refused),
        };
        if !changes.replace(field.name) {
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
        if !changes.replace(name) {
            write(name, value);
        }
    });
    changes.write_additions(write);
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
        if response_header(name, &connection, is_upgrade) == Fate::Forward && !changes.replace(field.name) {
            write(field.name, field.value);
        }
    }
    changes.write_additions(write);
}

/// Writes the headers that a rule and its backend add to an answer of our own.
pub(crate) fn added_response_fields(changes: Changes<'_>, write: impl FnMut(&str, &[u8])) {
    changes.response().write_additions(write);
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
