//! Which headers cross the proxy, and which the proxy writes itself.
//!
//! Both codecs ask [`request_header`] and [`response_header`] about every header, and write what [`forwarded_headers`]
//! yields at the end: strip first, then set. Only pure functions over bytes live here, none of which allocates on the
//! usual path; nothing knows connections, routes or filters.
//!
//! A name is compared regardless of case, and with `_` read as `-`: to a CGI-like backend `X_Forwarded_For` is the same
//! header as `X-Forwarded-For`.

mod connection;
mod forwarded;

pub(crate) use connection::{ConnectionOptions, forwardable_upgrade};
pub(crate) use forwarded::{Hop, forwarded_headers, is_trusted};

/// What becomes of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is passed on as it is.
    Forward,
    /// It is passed on with this value.
    Replace(&'static str),
    /// It ends here.
    Drop,
    /// It frames the message or names its recipient (`Host`, `Content-Length`, `Transfer-Encoding`, `Expect`): the codec
    /// reads it, and writes its own.
    Codec,
    /// The whole request is refused.
    Refuse,
}

/// What the fate of a request's headers depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHygiene<'a> {
    /// What the `Connection` headers said.
    pub(crate) connection: &'a ConnectionOptions<'a>,
    /// Whether the peer is a proxy whose word about the client counts.
    pub(crate) is_trusted: bool,
    /// Whether header names with underscores pass.
    pub(crate) allows_underscores: bool,
    /// Whether this request asks for an upgrade that is passed on.
    pub(crate) is_upgrade: bool,
}

/// The headers that concern one connection or the proxy itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only ever meant for the next hop.
    HopByHop,
    /// `TE`, of which `trailers` may pass: gRPC backends insist on it.
    Te,
    /// `Upgrade`.
    Upgrade,
    /// Written by the codec.
    Codec,
    /// What proxies say about the client: believed only from a trusted hop.
    Client,
    /// Everything else.
    Other,
}

/// The fate of a request header.
pub(crate) fn request_header(name: &[u8], value: &[u8], hygiene: &RequestHygiene<'_>) -> Fate {
    if !hygiene.allows_underscores && name.contains(&b'_') {
        return Fate::Refuse;
    }
    match kind(name) {
        Kind::Te if connection::has_token(value, "trailers") => Fate::Replace("trailers"),
        Kind::Upgrade if hygiene.is_upgrade => Fate::Forward,
        Kind::HopByHop | Kind::Te | Kind::Upgrade => Fate::Drop,
        Kind::Codec => Fate::Codec,
        // Never by the client's `Connection` header: it must not be able to take away what a trusted proxy says.
        // The list of addresses is dropped in any case, because the peer's is joined to it.
        Kind::Client if !hygiene.is_trusted || is(name, "x-forwarded-for") => Fate::Drop,
        Kind::Other if hygiene.connection.names(name) => Fate::Drop,
        Kind::Client | Kind::Other => Fate::Forward,
    }
}

/// The fate of a response header. An upgrade's `Upgrade` header passes; everything that concerns one connection ends here.
pub(crate) fn response_header(name: &[u8], connection: &ConnectionOptions<'_>, is_upgrade: bool) -> Fate {
    match kind(name) {
        Kind::Upgrade if is_upgrade => Fate::Forward,
        Kind::HopByHop | Kind::Te | Kind::Upgrade => Fate::Drop,
        Kind::Codec if is(name, "host") || is(name, "expect") => Fate::Drop,
        Kind::Codec => Fate::Codec,
        Kind::Client | Kind::Other if connection.names(name) => Fate::Drop,
        Kind::Client | Kind::Other => Fate::Forward,
    }
}

/// Sorts a header by its name. The length is looked at first: most names are settled by it.
fn kind(name: &[u8]) -> Kind {
    match name.len() {
        2 if is(name, "te") => Kind::Te,
        4 if is(name, "host") => Kind::Codec,
        6 if is(name, "expect") => Kind::Codec,
        7 if is(name, "upgrade") => Kind::Upgrade,
        9 if is(name, "forwarded") || is(name, "x-real-ip") => Kind::Client,
        10 if is(name, "connection") || is(name, "keep-alive") => Kind::HopByHop,
        14 if is(name, "content-length") => Kind::Codec,
        14 if is(name, "http2-settings") => Kind::HopByHop,
        16 if is(name, "proxy-connection") => Kind::HopByHop,
        17 if is(name, "transfer-encoding") => Kind::Codec,
        18 if is(name, "proxy-authenticate") => Kind::HopByHop,
        19 if is(name, "proxy-authorization") => Kind::HopByHop,
        length if length > 8 && (begins(name, "x-forwarded-") || begins(name, "x-envoy-")) => Kind::Client,
        _ => Kind::Other,
    }
}

/// Whether a header's name is this one, given in lower case.
fn is(name: &[u8], expected: &str) -> bool {
    name.len() == expected.len() && begins(name, expected)
}

fn begins(name: &[u8], expected: &str) -> bool {
    let normal = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    name.len() >= expected.len()
        && name
            .iter()
            .zip(expected.bytes())
            .all(|(byte, expected)| normal(*byte) == expected)
}

#[cfg(test)]
mod tests;
