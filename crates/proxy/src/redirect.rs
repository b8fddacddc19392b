//! The `Location` of a redirect, by Gateway API's rules.
//!
//! Called by the forwarder for requests whose rule redirects. What the redirect does not name is kept from the request;
//! its path was escaped when the rule was compiled, so nothing here can break out of a header.

use std::fmt::Write;

use gatewright_ir::{Redirect, Scheme};
use http::StatusCode;

/// What a redirect keeps from its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redirected<'a> {
    /// How the request came to the listener.
    pub(crate) scheme: Scheme,
    /// The request's host without port.
    pub(crate) host: &'a str,
    /// The port of the listener.
    pub(crate) listener_port: u16,
    /// The normalised path.
    pub(crate) path: &'a str,
    /// The query, which every redirect keeps.
    pub(crate) query: Option<&'a str>,
    /// The prefix by which the request matched, if it was by one.
    pub(crate) matched_prefix: Option<&'a str>,
}

/// The new address.
pub(crate) fn location(redirect: &Redirect, request: Redirected<'_>) -> String {
    let Redirect {
        scheme,
        hostname,
        port,
        path,
        status: _,
    } = redirect;
    let host = hostname.as_deref().unwrap_or(request.host);
    // Without a port of its own, a redirect to another scheme goes to that scheme's port, not to the listener's.
    let port = port.or(scheme.map(well_known_port)).unwrap_or(request.listener_port);
    let scheme = scheme.unwrap_or(request.scheme);
    let mut location = String::with_capacity(16 + host.len() + request.path.len() + request.query.map_or(0, str::len));
    location.push_str(match scheme {
        Scheme::Http => "http://",
        Scheme::Https => "https://",
    });
    location.push_str(host);
    if port != well_known_port(scheme) {
        // Writing to a text cannot fail.
        let _ = write!(location, ":{port}");
    }
    match path {
        Some(change) => location.push_str(&change.apply(request.path, request.matched_prefix)),
        None => location.push_str(request.path),
    }
    if let Some(query) = request.query {
        location.push('?');
        location.push_str(query);
    }
    location
}

/// The status of a redirect; 302, which promises nothing, for one that the specification does not know.
pub(crate) fn status(redirect: &Redirect) -> StatusCode {
    match redirect.status {
        301 => StatusCode::MOVED_PERMANENTLY,
        303 => StatusCode::SEE_OTHER,
        307 => StatusCode::TEMPORARY_REDIRECT,
        308 => StatusCode::PERMANENT_REDIRECT,
        _ => StatusCode::FOUND,
    }
}

fn well_known_port(scheme: Scheme) -> u16 {
    match scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    }
}

#[cfg(test)]
mod tests;
