//! The question to an authoriser, and what its answer means, in both protocols.

use std::{cell::RefCell, net::SocketAddr, rc::Rc};

use bytes::Bytes;
use gatewright_ir::UpstreamProtocol;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};

use super::{
    Changes, Forward, HeldListener, HeldRoute, Prepared, Reason, RequestFacts, RequestParts, Sender, aside::Heard,
    check, decide::Denied, request_fields,
};
use crate::{
    h1::{BodyLength, Encoding},
    hygiene::{ConnectionOptions, Fate, response_header},
    matching::{CompiledAuth, HeaderChanges, Passed, RequestView},
    upstream::ClusterView,
};

/// Headers of an authoriser's answer that describe the answer itself and nothing about the request.
const OF_THE_ANSWER: [&str; 8] = [
    "content-encoding",
    "content-language",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "server",
    "vary",
];

/// A question.
pub(super) struct Asking<'a> {
    pub(super) auth: &'a CompiledAuth,
    pub(super) request: &'a RequestParts<'a, 'a>,
    /// Where the request came from, for the headers that say so.
    pub(super) sender: Sender<'a>,
    pub(super) peer: SocketAddr,
    /// The body, as far as the filter wants it.
    pub(super) body: &'a Bytes,
}

/// What an authoriser says.
#[derive(Debug)]
pub(super) enum Ruling {
    /// The request may pass.
    Granted {
        /// What is put on it.
        request: Box<HeaderChanges>,
        /// What is put on the response.
        response: Option<Box<HeaderChanges>>,
    },
    /// It may not; this is said instead.
    Denied(Box<Denied>),
}

/// The request that asks, its head if it is HTTP/1.1, and its body. None when it cannot be said.
pub(super) fn prepare(
    asking: &Asking<'_>,
    listener: &Rc<HeldListener>,
    route: &Rc<HeldRoute>,
    cluster: Rc<ClusterView>,
) -> Option<(Forward, Vec<u8>, Bytes)> {
    let request = asking.request;
    let mut head = Vec::new();
    let (prepared, body, is_head) = if asking.auth.is_grpc {
        let message = check::request(asking)?;
        (Prepared::H2(Box::new(grpc(asking)?)), message, false)
    } else {
        let body = asking.body.clone();
        let fields = http_fields(asking)?;
        let prepared = match cluster.protocol {
            UpstreamProtocol::Http1 => {
                write(&mut head, asking, &fields);
                Prepared::H1(if body.is_empty() {
                    Encoding::Empty
                } else {
                    Encoding::Length(body.len() as u64)
                })
            }
            UpstreamProtocol::Http2 => Prepared::H2(Box::new(over_h2(asking, fields)?)),
            // Rules for requests never name these.
            UpstreamProtocol::Tcp | UpstreamProtocol::Udp => return None,
        };
        (prepared, body, request.facts.is_head)
    };
    let facts = RequestFacts {
        body: BodyLength::Known(body.len() as u64),
        is_head,
        is_idempotent: true,
        expects_continue: false,
        wants_upgrade: false,
        is_grpc: false,
        grpc_timeout: None,
    };
    let forward = Forward {
        listener: Rc::clone(listener),
        route: Rc::clone(route),
        anchor: None,
        cluster,
        place: usize::MAX,
        facts,
        prepared,
        cors: None,
        extras: RefCell::default(),
    };
    Some((forward, head, body))
}

/// The headers of a question over HTTP, except those that name its recipient.
fn http_fields(asking: &Asking<'_>) -> Option<HeaderMap> {
    let mut fields = HeaderMap::new();
    // The request is not passed on like this, but what a client may not claim, it may not claim here either.
    request_fields(asking.request, asking.sender, Changes::default(), |name, value| {
        let is_sent = name.eq_ignore_ascii_case("authorization") || asking.auth.request_headers.has(name);
        if is_sent
            && let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        {
            fields.append(name, value);
        }
    })
    .ok()?;
    fields.insert(header::CONTENT_LENGTH, asking.body.len().into());
    Some(fields)
}

fn target(asking: &Asking<'_>) -> String {
    let path = asking.request.path();
    // The asterisk of an OPTIONS request is no path that another could stand before.
    let path = if path == "*" && !asking.auth.path.is_empty() {
        "/"
    } else {
        path
    };
    let mut target = format!("{}{path}", asking.auth.path);
    if let Some(query) = asking.request.query() {
        target.push('?');
        target.push_str(query);
    }
    target
}

fn write(head: &mut Vec<u8>, asking: &Asking<'_>, fields: &HeaderMap) {
    let mut line = |parts: &[&[u8]]| {
        head.extend(parts.iter().copied().flatten());
        head.extend_from_slice(b"\r\n");
    };
    let method = asking.request.method.as_bytes();
    line(&[method, b" ", target(asking).as_bytes(), b" HTTP/1.1"]);
    line(&[b"host: ", asking.request.authority_text().as_bytes()]);
    for (name, value) in fields {
        line(&[name.as_str().as_bytes(), b": ", value.as_bytes()]);
    }
    line(&[]);
}

fn over_h2(asking: &Asking<'_>, fields: HeaderMap) -> Option<Request<()>> {
    let mut made = Request::new(());
    *made.version_mut() = Version::HTTP_2;
    *made.method_mut() = Method::from_bytes(asking.request.method.as_bytes()).ok()?;
    *made.uri_mut() = uri(asking, target(asking))?;
    *made.headers_mut() = fields;
    Some(made)
}

fn grpc(asking: &Asking<'_>) -> Option<Request<()>> {
    let mut made = Request::new(());
    *made.version_mut() = Version::HTTP_2;
    *made.method_mut() = Method::POST;
    *made.uri_mut() = uri(asking, check::METHOD.to_owned())?;
    let fields = made.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    fields.insert(header::TE, HeaderValue::from_static("trailers"));
    Some(made)
}

fn uri(asking: &Asking<'_>, path: String) -> Option<Uri> {
    let authority = match asking.request.authority_text() {
        "" => "localhost",
        authority => authority,
    };
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path);
    uri.build().ok()
}

/// What an answer means.
pub(super) fn read(auth: &CompiledAuth, heard: Heard) -> Result<Ruling, Reason> {
    if auth.is_grpc {
        return check::response(&heard);
    }
    match heard.status {
        200 => Ok(Ruling::Granted {
            request: Box::new(granted(auth, heard.fields)),
            response: None,
        }),
        300..500 => Ok(Ruling::Denied(Box::new(Denied {
            status: heard.status,
            fields: refusal_fields(heard.fields),
            body: heard.body.into(),
        }))),
        // Anything else is no refusal that a client could understand as one.
        201..300 => Err(Reason::AuthDenied),
        _ => Err(Reason::AuthUnavailable),
    }
}

/// What a grant puts on the request. Headers that only the authoriser may set are taken off if it sets none.
fn granted(auth: &CompiledAuth, fields: Vec<(HeaderName, HeaderValue)>) -> HeaderChanges {
    let is_all = matches!(auth.response_headers, Passed::All);
    let passes = |name: &HeaderName| {
        auth.response_headers.has(name.as_str()) && is_settable(name) && !(is_all && describes_answer(name))
    };
    let set: Box<[_]> = fields.into_iter().filter(|(name, _)| passes(name)).collect();
    let remove = match &auth.response_headers {
        Passed::These(names) => names
            .iter()
            .filter(|name| !set.iter().any(|(set, _)| set == *name))
            .cloned()
            .collect(),
        Passed::All => Box::default(),
    };
    HeaderChanges {
        set,
        remove,
        ..HeaderChanges::default()
    }
}

fn describes_answer(name: &HeaderName) -> bool {
    OF_THE_ANSWER.contains(&name.as_str())
}

/// Whether a header may be set by an authoriser: not one that frames a message or concerns a connection.
pub(super) fn is_settable(name: &HeaderName) -> bool {
    *name != header::TRAILER
        && response_header(name.as_str().as_bytes(), &ConnectionOptions::default(), false) == Fate::Forward
}

/// The headers of a refusal that the client gets.
pub(super) fn refusal_fields(fields: Vec<(HeaderName, HeaderValue)>) -> Vec<(HeaderName, HeaderValue)> {
    fields.into_iter().filter(|(name, _)| is_settable(name)).collect()
}
