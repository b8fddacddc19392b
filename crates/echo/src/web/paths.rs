//! Chooses the answer to a request by its path.
//!
//! Called by the connection for each HTTP request; the table is in the documentation of the crate. Knows the order of
//! things (line, body, delay, answer), while each path's own answer is made elsewhere.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::{Body, Incoming};
use serde::Serialize;

use super::{Answer, bench, echo::Echo, retry, set_header, streaming};
use crate::{
    backend::Session,
    body::{self, LastBody, Severed, boxed, full},
    query::{BadParameter, Query},
    websocket,
};

/// Answers one request.
pub(crate) async fn answer(session: Arc<Session>, request: Request<Incoming>) -> Result<Answer, Severed> {
    session.backend.counters.count_request();
    if session.is_h2c_only && !is_h2c(&request) {
        return Ok(text(StatusCode::BAD_REQUEST, "Expected h2c request"));
    }
    if let Some(answer) = bench::answer(request.uri().path()) {
        return Ok(answer);
    }
    // HTTP/2 leaves it to us to send no body to HEAD; for HTTP/1 the library does it.
    let is_bodiless = request.version() == Version::HTTP_2 && request.method() == Method::HEAD;
    // Boxed: the long way's state would make every bench answer pay for its size.
    let answer = Box::pin(answer_by_path(session, request)).await?;
    Ok(if is_bodiless { without_body(answer) } else { answer })
}

async fn answer_by_path(session: Arc<Session>, request: Request<Incoming>) -> Result<Answer, Severed> {
    let path = collapsed(request.uri().path()).into_owned();
    match path.as_str() {
        "/health" => return Ok(text(StatusCode::OK, "OK")),
        "/ws" => return Ok(websocket::accept(&session, request)),
        path if path.starts_with("/status/") => return Ok(status(path, request.uri().query())),
        path if path == "/retry" || path.starts_with("/retry/") => {
            if let Some(failure) = retry::failure(&session, Query::of(request.uri())).await? {
                return Ok(failure);
            }
        }
        _ if request.method() == Method::CONNECT => {
            return Ok(text(StatusCode::METHOD_NOT_ALLOWED, "CONNECT opens no tunnel here\n"));
        }
        _ => {}
    }

    let echo = Echo::of(&session, &request);
    session.backend.line(|| {
        format!(
            "Echoing back request made to {} to client ({})",
            echo.path, session.peer
        )
    });
    let (head, incoming) = request.into_parts();
    let query = Query::of(&head.uri);
    let delay = match query.duration("delay") {
        Ok(delay) => delay.unwrap_or_default(),
        Err(problem) => return Ok(bad_parameter(problem)),
    };

    let mut answer = match path.as_str() {
        "/early" => {
            pause(delay).await;
            if query.text("then").as_deref() != Some("close") {
                tokio::spawn(body::discard(incoming));
            }
            json(&session.backend.identity)
        }
        "/upload" => {
            let measured = body::measure(incoming).await?;
            pause(delay).await;
            streaming::upload(&session, &measured)
        }
        path => {
            if !incoming.is_end_stream() {
                body::discard(incoming).await?;
            }
            pause(delay).await;
            match path {
                "/stream" => match streaming::stream(query) {
                    Ok(answer) => answer,
                    Err(problem) => return Ok(bad_parameter(problem)),
                },
                "/trailers" => streaming::trailers(&session),
                "/close" | "/hangup" => last_echo(&session, &echo, path == "/close"),
                _ => json(&echo),
            }
        }
    };
    let names = set_header::apply(&head.headers, answer.headers_mut());
    if head.version < Version::HTTP_2 {
        session.casing.restore(names);
    }
    Ok(answer)
}

fn last_echo(session: &Session, echo: &Echo<'_>, is_announced: bool) -> Answer {
    let mut answer = json(echo);
    if is_announced {
        // Means nothing in HTTP/2, where the library removes it and the end is a GOAWAY.
        answer
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let bytes = to_json(echo);
    *answer.body_mut() = boxed(LastBody::new(bytes.into(), Arc::clone(&session.ending)));
    answer
}

fn status(path: &str, query: Option<&str>) -> Answer {
    let code = path
        .strip_prefix("/status/")
        .filter(|digits| query.is_none() && digits.len() == 3)
        .and_then(|digits| digits.parse().ok())
        // An informational status would leave the client waiting for the real one.
        .filter(|code| *code >= 200_u16)
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::BAD_REQUEST);
    let mut answer = Response::new(full(""));
    *answer.status_mut() = code;
    answer
}

async fn pause(delay: std::time::Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

fn is_h2c(request: &Request<Incoming>) -> bool {
    request.version() == Version::HTTP_2
        || request
            .headers()
            .get(header::UPGRADE)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"h2c"))
}

fn collapsed(path: &str) -> Cow<'_, str> {
    if !path.contains("//") {
        return Cow::Borrowed(path);
    }
    let mut collapsed = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !collapsed.ends_with('/') {
            collapsed.push(character);
        }
    }
    Cow::Owned(collapsed)
}

fn without_body(answer: Answer) -> Answer {
    let (mut head, body) = answer.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(head, full(""))
}

/// An answer in plain words.
pub(crate) fn text(status: StatusCode, text: &'static str) -> Answer {
    plain(status, text.to_owned())
}

pub(super) fn bad_parameter(BadParameter(problem): BadParameter) -> Answer {
    plain(StatusCode::BAD_REQUEST, problem + "\n")
}

fn plain(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(full(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    answer
}

/// An answer in JSON.
pub(super) fn json(value: &impl Serialize) -> Answer {
    let mut answer = Response::new(full(to_json(value)));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    // Our answers are structs of strings and numbers, which always serialise.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
