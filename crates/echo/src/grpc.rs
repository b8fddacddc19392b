//! The gRPC service of the contract: unary calls that answer with what came in.
//!
//! The server calls [`answer`] for each HTTP/2 request of a gRPC port. The messages are so few and flat that they are
//! written by hand in [`protobuf`]; there is no server reflection and no compression.

mod protobuf;

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};

use crate::{
    backend::Session,
    body::{self, Severed, boxed, full},
    tls::TlsFacts,
    web::{Answer, text},
};
use protobuf::Message;

const SERVICE: &str = "gateway_api_conformance.echo_basic.grpcecho.GrpcEcho";
const CONTENT_TYPE: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const STATUS_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const UNIMPLEMENTED: &str = "12";

/// Answers one call.
pub(crate) async fn answer(session: Arc<Session>, request: Request<Incoming>) -> Result<Answer, Severed> {
    session.backend.counters.count_request();
    let is_grpc = request
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(CONTENT_TYPE.as_bytes()));
    if request.method() != Method::POST || !is_grpc {
        return Ok(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "gRPC calls only\n"));
    }
    let (head, incoming) = request.into_parts();
    let path = head.uri.path();
    session
        .backend
        .line(|| format!("Received gRPC call of {path} from client ({})", session.peer));
    let reply = match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
        Some((SERVICE, "Echo" | "EchoTwo")) => {
            let authority = head
                .uri
                .authority()
                .map(http::uri::Authority::as_str)
                .unwrap_or_default();
            // The request message has no fields; it is read so that the stream ends in order.
            body::discard(incoming).await?;
            success(&echo_response(&session, path, authority, &head.headers))
        }
        Some((SERVICE, _)) => failure(UNIMPLEMENTED, "this method is not implemented"),
        _ => failure(UNIMPLEMENTED, "this service is not implemented"),
    };
    Ok(reply)
}

fn success(message: &[u8]) -> Answer {
    let mut prefixed = BytesMut::with_capacity(message.len() + 5);
    prefixed.put_u8(0);
    // Our messages are made of one request's headers, far below 4 GiB.
    prefixed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    prefixed.put_slice(message);
    let mut trailers = HeaderMap::new();
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    let frames = [
        Ok::<_, Severed>(Frame::<Bytes>::data(prefixed.freeze())),
        Ok(Frame::trailers(trailers)),
    ];
    let mut answer = Response::new(boxed(StreamBody::new(stream::iter(frames))));
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    answer
}

fn failure(status: &'static str, message: &'static str) -> Answer {
    let mut answer = Response::new(full(""));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    headers.insert(STATUS, HeaderValue::from_static(status));
    headers.insert(STATUS_MESSAGE, HeaderValue::from_static(message));
    answer
}

fn echo_response(session: &Session, method: &str, authority: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut assertions = Message::default()
        .text(1, method)
        .message(2, &header_pair(":authority", authority));
    for (name, value) in headers {
        // `te` is between hops and no metadata.
        if name != header::TE {
            assertions = assertions.message(
                2,
                &header_pair(name.as_str(), &String::from_utf8_lossy(value.as_bytes())),
            );
        }
    }
    let identity = &session.backend.identity;
    let context = Message::default()
        .text(1, &identity.namespace)
        .text(2, &identity.ingress)
        .text(3, &identity.service)
        .text(4, &identity.pod);
    assertions = assertions.text(3, authority).message(4, &context);
    if let Some(facts) = &session.tls {
        assertions = assertions.message(5, &tls_assertions(facts));
    }
    Message::default()
        .message(1, &assertions)
        .message(2, &Message::default())
        .into_bytes()
}

fn header_pair(key: &str, value: &str) -> Message {
    Message::default().text(1, key).text(2, value)
}

fn tls_assertions(facts: &TlsFacts) -> Message {
    let message = Message::default()
        .text(1, &format!("TLSv{}", facts.version))
        .text(2, &facts.negotiated_protocol)
        .text(3, &facts.server_name)
        .text(4, &facts.cipher_suite);
    facts
        .peer_certificates
        .iter()
        .fold(message, |message, certificate| message.text(5, certificate))
}
