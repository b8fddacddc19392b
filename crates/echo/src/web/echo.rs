//! The echo itself: a request as JSON.
//!
//! Field names and values follow the contract of the conformance suite.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, Request, header};
use serde::Serialize;

use crate::{Identity, backend::Session, tls::TlsFacts};

/// What came in, and who answers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Echo<'session> {
    pub(super) path: String,
    host: String,
    method: String,
    proto: String,
    headers: BTreeMap<String, Vec<String>>,
    http_port: &'session str,
    #[serde(flatten)]
    identity: &'session Identity,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<Tls<'session>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tls<'session> {
    version: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    peer_certificates: &'session [String],
    server_name: &'session str,
    #[serde(skip_serializing_if = "str::is_empty")]
    negotiated_protocol: &'session str,
    cipher_suite: &'session str,
}

impl<'session> Echo<'session> {
    pub(super) fn of<B>(session: &'session Session, request: &Request<B>) -> Self {
        let uri = request.uri();
        let is_http2 = request.version() == http::Version::HTTP_2;
        // An absolute target of HTTP/1 is shown whole; HTTP/2 has the authority in a field of its own.
        let path = match uri.path_and_query() {
            Some(path) if is_http2 || uri.scheme().is_none() => path.as_str().to_owned(),
            _ => uri.to_string(),
        };
        let host = match (uri.authority(), request.headers().get(header::HOST)) {
            (Some(authority), _) => authority.as_str().to_owned(),
            (None, Some(host)) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
            (None, None) => String::new(),
        };
        Self {
            path,
            host,
            method: request.method().to_string(),
            proto: format!("{:?}", request.version()),
            headers: by_name(request.headers()),
            http_port: &session.backend.port,
            identity: &session.backend.identity,
            tls: session.tls.as_ref().map(Tls::of),
        }
    }
}

impl<'session> Tls<'session> {
    fn of(facts: &'session TlsFacts) -> Self {
        Self {
            version: format!("TLSv{}", facts.version),
            peer_certificates: &facts.peer_certificates,
            server_name: &facts.server_name,
            negotiated_protocol: &facts.negotiated_protocol,
            cipher_suite: &facts.cipher_suite,
        }
    }
}

/// Headers as the contract lists them: each name once, in Go's canonical case, with all its values; without Host.
pub(super) fn by_name(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    headers
        .keys()
        .filter(|name| **name != header::HOST)
        .map(|name| {
            let values = headers.get_all(name).iter();
            (
                canonical(name),
                values
                    .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
                    .collect(),
            )
        })
        .collect()
}

fn canonical(name: &HeaderName) -> String {
    let mut is_word_start = true;
    name.as_str()
        .chars()
        .map(|character| {
            let shown = if is_word_start {
                character.to_ascii_uppercase()
            } else {
                character
            };
            is_word_start = character == '-';
            shown
        })
        .collect()
}
