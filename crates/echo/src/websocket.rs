//! `/ws`: the WebSocket handshake, over HTTP/1.1 and HTTP/2.
//!
//! Called from the table of paths. The frames themselves are echoed in [`frames`], by a task of their own that ends
//! with the backend.

mod frames;
mod sha1;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::{body::Incoming, ext::Protocol, upgrade};
use hyper_util::rt::TokioIo;

use crate::{
    backend::Session,
    base64,
    body::full,
    web::{Answer, text},
};

/// What RFC 6455 appends to the client's key before hashing it.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Answers a handshake, and echoes frames from then on.
pub(crate) fn accept(session: &Session, request: Request<Incoming>) -> Answer {
    let answer = match handshake(&request) {
        Ok(answer) => answer,
        Err(problem) => return text(StatusCode::BAD_REQUEST, problem),
    };
    let (peer, mut shutdown) = (session.peer, session.shutdown.clone());
    session
        .backend
        .line(|| format!("Established WebSocket connection with client ({peer})"));
    tokio::spawn(async move {
        match upgrade::on(request).await {
            Ok(upgraded) => {
                if let Err(error) = frames::echo(TokioIo::new(upgraded), &mut shutdown).await {
                    tracing::debug!(%peer, %error, "WebSocket ended");
                }
            }
            Err(error) => tracing::debug!(%peer, %error, "WebSocket handshake not completed"),
        }
    });
    answer
}

fn handshake(request: &Request<Incoming>) -> Result<Answer, &'static str> {
    let headers = request.headers();
    if headers
        .get(header::SEC_WEBSOCKET_VERSION)
        .is_none_or(|version| version != "13")
    {
        return Err("WebSocket version 13 is required\n");
    }
    let mut answer = Response::new(full(""));
    if request.version() == Version::HTTP_2 {
        let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str);
        if request.method() != Method::CONNECT || protocol != Some("websocket") {
            return Err("a WebSocket over HTTP/2 starts with an extended CONNECT\n");
        }
        return Ok(answer);
    }
    if request.method() != Method::GET
        || !has_token(headers, &header::UPGRADE, "websocket")
        || !has_token(headers, &header::CONNECTION, "upgrade")
    {
        return Err("a WebSocket starts with GET, Connection: Upgrade and Upgrade: websocket\n");
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let accept = HeaderValue::from_str(&accept_key(key.ok_or("Sec-WebSocket-Key is missing\n")?))
        .map_err(|_| "Sec-WebSocket-Key is unusable\n")?;
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(answer)
}

fn accept_key(key: &str) -> String {
    base64::encode(&sha1::digest(format!("{}{KEY_SUFFIX}", key.trim()).as_bytes()))
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_of_rfc_6455_comes_out() {
        assert_eq!(
            super::accept_key("dGhlIHNhbXBsZSBub25jZQ=="),
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
    }
}
