//! Heads in the form of HTTP/2: requests for backends, responses for clients, and the reading of clients' requests.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};

use crate::{
    forward::{
        Changes, Client, Content, Field, LocalAnswer, Reason, RequestFacts, RequestParts, ResponseView, Sender, Wanted,
        added_response_fields, grpc, is_idempotent, request_fields, response_fields,
    },
    h1::{BodyLength, parse_length},
    normalise::{Authority, Target},
};

/// Most headers of one request.
const MOST_FIELDS: usize = 100;

/// The request for a backend. `None` when it cannot be said in HTTP/2.
pub(crate) fn request(
    request: &RequestParts<'_, '_>,
    wanted: &Wanted<'_>,
    facts: RequestFacts,
    sender: Sender<'_>,
    changes: Changes<'_>,
) -> Option<Request<()>> {
    let mut fields = HeaderMap::with_capacity(request.fields.len() + 4);
    request_fields(request, sender, changes, |name, value| append(&mut fields, name, value)).ok()?;
    if let BodyLength::Known(length) = facts.body
        && length > 0
    {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
    if facts.expects_continue {
        fields.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
    }
    let mut path = wanted.path().to_owned();
    if let Some(query) = wanted.query {
        path.push('?');
        path.push_str(query);
    }
    let uri = Uri::builder()
        .scheme("http")
        .authority(wanted.authority)
        .path_and_query(path)
        .build()
        .ok()?;
    let mut made = Request::new(());
    *made.version_mut() = Version::HTTP_2;
    *made.method_mut() = Method::from_bytes(request.method.as_bytes()).ok()?;
    *made.uri_mut() = uri;
    *made.headers_mut() = fields;
    Some(made)
}

/// The response for a client.
pub(super) fn response(response: &ResponseView<'_>, changes: Changes<'_>) -> Option<Response<()>> {
    let mut made = Response::new(());
    *made.status_mut() = StatusCode::from_u16(response.status).ok()?;
    let fields = made.headers_mut();
    fields.reserve(response.fields.len() + 2);
    response_fields(response, changes, false, |name, value| append(fields, name, value));
    let is_interim = response.status < 200;
    if let Some(length) = response.stated_length.filter(|_| response.status != 204 && !is_interim) {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
    Some(made)
}

/// An answer of our own: its head, and its body.
pub(super) fn answer(answer: &LocalAnswer) -> (Response<()>, Bytes) {
    let LocalAnswer { content, is_grpc, .. } = answer;
    let mut made = Response::new(());
    let text = match content {
        Content::Reason(reason) => Bytes::from_static(reason.text().as_bytes()),
        Content::Redirect { .. } | Content::Preflight => Bytes::new(),
        Content::Denied(denied) => denied.body.clone(),
    };
    let is_failure = matches!(content, Content::Reason(_) | Content::Denied(_));
    if *is_grpc && is_failure {
        write_grpc(made.headers_mut(), content, &text);
        added_response_fields(answer.changes(), |name, value| append(made.headers_mut(), name, value));
        return (made, Bytes::new());
    }
    *made.status_mut() = StatusCode::from_u16(content.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fields = made.headers_mut();
    match content {
        Content::Reason(_) => {
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            fields.insert(header::CONTENT_TYPE, plain);
        }
        Content::Redirect { location, .. } => append(fields, "location", location.as_bytes()),
        Content::Preflight => {}
        Content::Denied(denied) => fields.extend(
            denied
                .fields
                .iter()
                .map(|(name, value)| (Some(name.clone()), value.clone())),
        ),
    }
    let has_none = matches!(content.status(), 204 | 304);
    if !has_none {
        fields.insert(header::CONTENT_LENGTH, text.len().into());
    }
    added_response_fields(answer.changes(), |name, value| append(fields, name, value));
    (made, if has_none { Bytes::new() } else { text })
}

/// A failure as a call of gRPC ends: without a body, and with the status where trailers would be.
fn write_grpc(fields: &mut HeaderMap, content: &Content, text: &[u8]) {
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    fields.insert("grpc-status", grpc::status(content).into());
    append(fields, "grpc-message", grpc::message(text).as_bytes());
}

/// Whether a request is a call of gRPC.
pub(super) fn is_grpc(fields: &HeaderMap) -> bool {
    let content_type = fields.get(header::CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

fn append(fields: &mut HeaderMap, name: &str, value: &[u8]) {
    // Both sides' parsers let nothing through that these refuse.
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value)) {
        fields.append(name, value);
    }
}

/// The headers of a request, as routing reads them.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    fields: Vec<Field<'a>>,
}

/// The cookies of a request in one text. HTTP/2 lets clients split them, HTTP/1.1 does not.
pub(super) fn joined_cookies(fields: &HeaderMap) -> Option<Vec<u8>> {
    let mut cookies = fields.get_all(header::COOKIE).iter();
    let first = cookies.next()?;
    let second = cookies.next()?;
    let mut joined = first.as_bytes().to_vec();
    for cookie in std::iter::once(second).chain(cookies) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(cookie.as_bytes());
    }
    Some(joined)
}

impl<'a> Fields<'a> {
    /// Takes the headers of a request. `cookies` stand for all `cookie` headers, if they are given.
    pub(super) fn new(fields: &'a HeaderMap, cookies: Option<&'a [u8]>) -> Self {
        let mut taken = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            if cookies.is_none() || name != header::COOKIE {
                taken.push(Field {
                    name: name.as_str(),
                    value: value.as_bytes(),
                });
            }
        }
        taken.extend(cookies.map(|value| Field { name: "cookie", value }));
        Self { fields: taken }
    }
}

/// The request in the form that routing reads.
pub(super) fn request_parts<'h, 'a>(
    request: &'a http::request::Parts,
    fields: &'h Fields<'a>,
    client: &Client,
    body_is_empty: bool,
    settings: &gatewright_ir::ListenerSettings,
) -> Result<RequestParts<'h, 'a>, Reason> {
    let fields = fields.fields.as_slice();
    if fields.len() > MOST_FIELDS {
        return Err(Reason::HeadTooLarge);
    }
    if !settings.allow_underscores && fields.iter().any(|field| field.name.contains('_')) {
        return Err(Reason::Underscore);
    }
    let method = request.method.as_str();
    let path = request.uri.path_and_query().map_or("", |path| path.as_str());
    let mut target = Target::parse(method, path.as_bytes(), settings.keep_escaped_slashes)?;
    // An absolute URI has no place in `:path`.
    if target.authority.take().is_some() {
        return Err(Reason::BadTarget);
    }
    let body = body_length(&request.headers, body_is_empty)?;
    let is_grpc = is_grpc(&request.headers);
    let grpc_timeout = request.headers.get("grpc-timeout").filter(|_| is_grpc);
    Ok(RequestParts {
        method,
        authority: Some(authority(request)?),
        target,
        fields,
        scheme: client.scheme(),
        facts: RequestFacts {
            body,
            is_head: request.method == Method::HEAD,
            is_idempotent: is_idempotent(method),
            expects_continue: expects_continue(&request.headers)? && !body.is_empty(),
            wants_upgrade: false,
            is_grpc,
            grpc_timeout: grpc_timeout.and_then(|value| grpc::timeout(value.as_bytes())),
        },
    })
}

/// The one host: `:authority`, or `Host` in its absence, and never two that differ.
fn authority(request: &http::request::Parts) -> Result<Authority<'_>, Reason> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let host = hosts.next().map(HeaderValue::as_bytes);
    let named = request.uri.authority().map(|authority| authority.as_str().as_bytes());
    match (named, host, hosts.next()) {
        (_, _, Some(_)) | (None, None, _) => Err(Reason::BadHost),
        (Some(named), Some(host), None) if !named.eq_ignore_ascii_case(host) => Err(Reason::BadHost),
        (Some(text), _, None) | (None, Some(text), None) => Ok(Authority::parse(text)?),
    }
}

fn body_length(fields: &HeaderMap, body_is_empty: bool) -> Result<BodyLength, Reason> {
    let mut lengths = fields.get_all(header::CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(if body_is_empty {
            BodyLength::Known(0)
        } else {
            BodyLength::Chunked
        });
    };
    if lengths.next().is_some() {
        return Err(Reason::AmbiguousLength);
    }
    match parse_length(length.as_bytes()) {
        Some(length) if body_is_empty && length > 0 => Err(Reason::AmbiguousLength),
        Some(length) => Ok(BodyLength::Known(length)),
        None => Err(Reason::AmbiguousLength),
    }
}

fn expects_continue(fields: &HeaderMap) -> Result<bool, Reason> {
    match fields.get(header::EXPECT) {
        None => Ok(false),
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => Ok(true),
        Some(_) => Err(Reason::UnknownExpectation),
    }
}

#[cfg(test)]
mod tests;
