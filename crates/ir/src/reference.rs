//! The reference matcher: slow, and obviously right.
//!
//! It tries every listener, host and entry in order and takes the first that is met. Data planes have faster matchers, and
//! property tests hold them equal to this one. `check`-like tools use it directly, so it must explain nothing and decide
//! everything.

use std::sync::Arc;

use crate::{Entry, Field, Host, HostPattern, Listener, Match, PathMatch, TextMatch, is_grpc};

/// A request, as far as matching reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The host in lower case, without port and trailing dot.
    pub host: String,
    /// The method.
    pub method: String,
    /// The normalised path, without query.
    pub path: String,
    /// The headers; names in lower case. A header may occur more than once.
    pub headers: Vec<(String, String)>,
    /// The decoded query parameters, in order.
    pub query: Vec<(String, String)>,
}

/// The listener that a host belongs to, among those that share an address and a port.
pub fn listener<'a>(listeners: &'a [Arc<Listener>], host: &str) -> Option<&'a Arc<Listener>> {
    listeners
        .iter()
        .filter(|listener| listener.hostname.contains(host))
        .min_by(|a, b| a.hostname.cmp(&b.hostname))
}

/// The entry of a listener that a request belongs to.
pub fn entry<'a>(listener: &'a Listener, request: &Request) -> Option<&'a Arc<Entry>> {
    let holds = |(pattern, _): &(&HostPattern, &Arc<Host>)| pattern.contains(&request.host);
    listener
        .hosts
        .iter()
        .filter(holds)
        .find_map(|(_, host)| entry_of_host(host, request))
}

/// The entry of one host that a request belongs to.
pub fn entry_of_host<'a>(host: &'a Host, request: &Request) -> Option<&'a Arc<Entry>> {
    host.entries.iter().find(|entry| is_met(&entry.matches, request))
}

/// Whether a request meets all conditions of a match.
pub fn is_met(matches: &Match, request: &Request) -> bool {
    let Match {
        path,
        method,
        headers,
        query,
        grpc,
    } = matches;
    (grpc.is_none() || is_grpc_call(request))
        && path_is_met(path, &request.path)
        && method.is_none_or(|method| method.as_str() == request.method)
        && headers.iter().all(|field| header_is_met(field, &request.headers))
        && query.iter().all(|field| parameter_is_met(field, &request.query))
}

fn is_grpc_call(request: &Request) -> bool {
    let mut headers = request.headers.iter();
    let content_type = headers.find(|(name, _)| name == "content-type");
    content_type.is_some_and(|(_, value)| is_grpc(&request.method, value.as_bytes()))
}

/// Whether a path meets a condition.
pub fn path_is_met(condition: &PathMatch, path: &str) -> bool {
    match condition {
        PathMatch::Exact(expected) => **expected == *path,
        PathMatch::Prefix(prefix) => {
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            path.strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        PathMatch::Pattern(pattern) => pattern.compile().is_ok_and(|regex| regex.is_match(path)),
    }
}

/// Any one value of a repeated header may meet the condition.
fn header_is_met(field: &Field, headers: &[(String, String)]) -> bool {
    headers
        .iter()
        .any(|(name, value)| **name == *field.name && text_is_met(&field.value, value))
}

/// Of a repeated parameter the first value counts, as the specification recommends.
fn parameter_is_met(field: &Field, query: &[(String, String)]) -> bool {
    query
        .iter()
        .find(|(name, _)| **name == *field.name)
        .is_some_and(|(_, value)| text_is_met(&field.value, value))
}

fn text_is_met(condition: &TextMatch, text: &str) -> bool {
    match condition {
        TextMatch::Exact(expected) => **expected == *text,
        TextMatch::Pattern(pattern) => pattern.compile().is_ok_and(|regex| regex.is_match(text)),
    }
}

#[cfg(test)]
mod tests;
