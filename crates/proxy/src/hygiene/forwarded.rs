//! What the proxy says about the client: `X-Forwarded-For`, `-Proto` and `-Host`.

use std::net::IpAddr;

use gatewright_ir::{Network, Scheme};

use super::is;

/// The hop from the peer to this proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop<'a> {
    /// The peer's address as text; it is the same for a whole connection, so it is written once.
    pub(crate) peer: &'a str,
    /// Whether the peer is a proxy whose word about the client counts.
    pub(crate) is_trusted: bool,
    /// How the request came to the listener.
    pub(crate) scheme: Scheme,
    /// The request's authority, as it was sent.
    pub(crate) authority: &'a str,
}

/// Whether a peer is one of the proxies that a listener trusts.
pub(crate) fn is_trusted(trusted: &[Network], peer: IpAddr) -> bool {
    trusted.iter().any(|network| network.contains(peer))
}

/// The headers to write after those that are passed on.
///
/// From an untrusted peer nothing was passed on, and all three are written. A trusted peer's own statements were passed
/// on, and only what it did not say is written; its list of addresses is written again with the peer's at the end, in one
/// header, because many backends read only the first.
pub(crate) fn forwarded_headers<'h>(
    hop: Hop<'_>,
    received: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    mut write: impl FnMut(&'static str, &[u8]),
) {
    let mut addresses = Vec::new();
    let (mut has_scheme, mut has_host) = (false, false);
    if hop.is_trusted {
        for (name, value) in received {
            if is(name, "x-forwarded-for") {
                addresses.extend_from_slice(value);
                addresses.extend_from_slice(b", ");
            }
            has_scheme |= is(name, "x-forwarded-proto");
            has_host |= is(name, "x-forwarded-host");
        }
    }
    if addresses.is_empty() {
        write("x-forwarded-for", hop.peer.as_bytes());
    } else {
        addresses.extend_from_slice(hop.peer.as_bytes());
        write("x-forwarded-for", &addresses);
    }
    if !has_scheme {
        let scheme = match hop.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write("x-forwarded-proto", scheme.as_bytes());
    }
    if !has_host {
        write("x-forwarded-host", hop.authority.as_bytes());
    }
}
