//! The host of a request, from a `Host` header, an `:authority` or an absolute URI.
//!
//! Stricter than RFC 3986, which allows almost anything in a host: what is no DNS name and no address has no route, and a
//! comma, an `@` or a space here has only ever served to confuse somebody.

use std::{borrow::Cow, net::Ipv6Addr};

use super::Refusal;

/// The longest DNS name.
const LONGEST_NAME: usize = 253;

/// A host with an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// As it was sent: what backends receive.
    pub(crate) text: &'a str,
    /// In lower case, without port and trailing dot: what routes are compared with. An IPv6 address keeps its brackets.
    pub(crate) host: Cow<'a, str>,
    /// The port, if there is one.
    pub(crate) port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads an authority without user information.
    pub(crate) fn parse(value: &'a [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(value).map_err(|_| Refusal::Host)?;
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (address, port) = rest.split_once(']').ok_or(Refusal::Host)?;
            address.parse::<Ipv6Addr>().map_err(|_| Refusal::Host)?;
            let host = text.get(..address.len() + 2).ok_or(Refusal::Host)?;
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(Refusal::Host),
            }
        } else {
            let (host, port) = text
                .split_once(':')
                .map_or((text, None), |(host, port)| (host, Some(port)));
            let host = host.strip_suffix('.').unwrap_or(host);
            if !is_host_name(host) {
                return Err(Refusal::Host);
            }
            (host, port)
        };
        Ok(Self {
            text,
            host: if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
                Cow::Owned(host.to_ascii_lowercase())
            } else {
                Cow::Borrowed(host)
            },
            port: port.map(parse_port).transpose()?,
        })
    }
}

/// Whether a text is a DNS name or an IPv4 address. Underscores are let pass: names with them exist.
pub(crate) fn is_host_name(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    text.len() <= LONGEST_NAME && text.bytes().all(is_legal) && text.split('.').all(|label| !label.is_empty())
}

/// Digits only: the standard library would also take a sign.
fn parse_port(text: &str) -> Result<u16, Refusal> {
    let is_number = text.len() <= 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(port) if is_number && port != 0 => Ok(port),
        _ => Err(Refusal::Host),
    }
}
