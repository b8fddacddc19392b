//! The protocol's messages, byte by byte where the fields are ours.

use std::borrow::Cow;

use bytes::Bytes;
use gatewright_ir::{AuthProtocol, ClusterId, ExternalAuth, Filters, Scheme, Target};

use super::{Fields, Message, Value, request, response};
use crate::{
    forward::{
        Field, Reason, RequestFacts, RequestParts, Sender,
        aside::Heard,
        ask::{Asking, Ruling},
    },
    h1::BodyLength,
    matching::CompiledFilters,
    normalise,
};

fn filters(headers: Option<&[&str]>) -> CompiledFilters {
    let headers = headers.map(|names| names.iter().map(|name| (*name).into()).collect());
    CompiledFilters::compile(&Filters {
        auth: Some(Box::new(ExternalAuth {
            target: Target::Cluster(ClusterId::new("auth")),
            protocol: AuthProtocol::Grpc {
                request_headers: headers,
            },
            max_body: Some(10),
        })),
        ..Filters::default()
    })
    .unwrap()
}

fn field<'a>(message: &'a [u8], path: &[u64]) -> Vec<Value<'a>> {
    let Some((first, rest)) = path.split_first() else {
        return vec![Value::Bytes(message)];
    };
    let mut found = Vec::new();
    Fields(message)
        .each(|number, value| {
            if number == *first {
                match value {
                    Value::Bytes(inner) if !rest.is_empty() => found.extend(field(inner, rest)),
                    value => found.push(value),
                }
            }
            Some(())
        })
        .unwrap();
    found
}

fn text(text: &str) -> Value<'_> {
    Value::Bytes(text.as_bytes())
}

fn asked(headers: Option<&[&str]>, body: &'static [u8]) -> Vec<u8> {
    let filters = filters(headers);
    let fields =
        [("X-A", "1"), ("x-b", "2"), ("x-a", "3"), ("X-Forwarded-For", "1.2.3.4")].map(|(name, value)| Field {
            name,
            value: value.as_bytes(),
        });
    let parts = RequestParts {
        method: "POST",
        target: normalise::Target {
            authority: None,
            path: Cow::Borrowed("/p"),
            query: Some(Cow::Borrowed("q=1")),
        },
        authority: Some(normalise::Authority::parse(b"a.test:8080").unwrap()),
        fields: &fields,
        scheme: Scheme::Https,
        facts: RequestFacts {
            body: BodyLength::Known(body.len() as u64),
            is_head: false,
            is_idempotent: false,
            expects_continue: false,
            wants_upgrade: false,
            is_grpc: false,
            grpc_timeout: None,
        },
    };
    let framed = request(&Asking {
        auth: filters.auth.as_deref().unwrap(),
        request: &parts,
        sender: Sender {
            peer: "192.0.2.7",
            is_trusted: false,
            allows_underscores: false,
        },
        peer: "192.0.2.7:4711".parse().unwrap(),
        body: &Bytes::from_static(body),
    })
    .unwrap();
    assert_eq!(framed[0], 0);
    assert_eq!(
        u32::from_be_bytes(framed[1..5].try_into().unwrap()) as usize,
        framed.len() - 5
    );
    framed[5..].to_vec()
}

#[test]
fn a_request_says_who_asks_for_what() {
    let message = asked(Some(&["x-a"]), b"hello");
    assert_eq!(field(&message, &[1, 1, 1, 1, 2]), [text("192.0.2.7")]);
    assert_eq!(field(&message, &[1, 1, 1, 1, 3]), [Value::Number(4711)]);
    let http = |number| field(&message, &[1, 4, 2, number]);
    assert_eq!(http(2), [text("POST")]);
    assert_eq!(http(4), [text("/p?q=1")]);
    assert_eq!(http(5), [text("a.test:8080")]);
    assert_eq!(http(6), [text("https")]);
    assert_eq!(http(9), [Value::Number(5)]);
    assert_eq!(http(11), [text("hello")]);
    assert_eq!(field(&message, &[1, 4, 2, 3, 1]), [text("x-a")]);
    assert_eq!(field(&message, &[1, 4, 2, 3, 2]), [text("1,3")]);
}

#[test]
fn without_a_list_all_headers_are_sent_and_bodies_that_are_no_text_go_as_bytes() {
    let message = asked(None, b"\xff\x00");
    let names = field(&message, &[1, 4, 2, 3, 1]);
    for name in ["x-a", "x-b", ":authority", ":method", ":path", ":scheme"] {
        assert!(names.contains(&text(name)), "{name}");
    }
    // What the client says about where it came from is not believed here either.
    let values = field(&message, &[1, 4, 2, 3, 2]);
    assert!(!values.contains(&text("1.2.3.4")) && values.contains(&text("192.0.2.7")));
    assert_eq!(field(&message, &[1, 4, 2, 12]), [Value::Bytes(b"\xff\x00")]);
    assert!(field(&message, &[1, 4, 2, 11]).is_empty());
}

fn heard(message: &Message, status: &'static str) -> Heard {
    let mut body = vec![0];
    body.extend_from_slice(&u32::try_from(message.0.len()).unwrap().to_be_bytes());
    body.extend_from_slice(&message.0);
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", http::HeaderValue::from_static(status));
    Heard {
        status: 200,
        body,
        trailers: Some(Box::new(trailers)),
        ..Heard::default()
    }
}

fn option(message: &mut Message, number: u64, name: &str, value: &str, is_appended: bool) {
    message.message(number, |option| {
        option.entry(1, name, value);
        if is_appended {
            option.message(2, |flag| flag.number(1, 1));
        }
    });
}

#[test]
fn a_grant_says_what_to_put_on_request_and_response() {
    let mut message = Message::default();
    message.message(1, |_| {});
    message.message(3, |granted| {
        option(granted, 2, "x-user", "ann", false);
        option(granted, 2, "x-more", "1", true);
        option(granted, 2, "content-length", "7", false);
        granted.bytes(5, b"authorization");
        option(granted, 6, "x-answer", "a", true);
    });
    let Ok(Ruling::Granted { request, response }) = response(&heard(&message, "0")) else {
        panic!("granted");
    };
    let names = |pairs: &[(http::HeaderName, http::HeaderValue)]| {
        pairs
            .iter()
            .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&request.set), ["x-user=ann"]);
    assert_eq!(names(&request.add), ["x-more=1"]);
    assert_eq!(&*request.remove, ["authorization"]);
    assert_eq!(names(&response.unwrap().add), ["x-answer=a"]);
}

#[test]
fn a_refusal_says_what_the_client_gets() {
    let mut message = Message::default();
    message.message(1, |status| status.number(1, 16));
    message.message(2, |denied| {
        denied.message(1, |status| status.number(1, 401));
        option(denied, 2, "www-authenticate", "Basic", false);
        denied.bytes(3, b"who are you?");
    });
    let Ok(Ruling::Denied(denied)) = response(&heard(&message, "0")) else {
        panic!("denied");
    };
    assert_eq!((denied.status, &*denied.body), (401, &b"who are you?"[..]));
    assert_eq!(denied.fields[0].0, "www-authenticate");
}

#[test]
fn everything_else_grants_nothing() {
    let mut denied = Message::default();
    denied.message(1, |status| status.number(1, 7));
    assert_eq!(response(&heard(&denied, "0")).unwrap_err(), Reason::AuthDenied);
    let ok = Message::default();
    assert!(matches!(response(&heard(&ok, "0")), Ok(Ruling::Granted { .. })));
    // The call failed, whatever its message says.
    assert_eq!(response(&heard(&ok, "14")).unwrap_err(), Reason::AuthUnavailable);
    let broken = [
        Heard {
            trailers: None,
            ..heard(&ok, "0")
        },
        Heard {
            status: 503,
            ..heard(&ok, "0")
        },
        Heard {
            body: b"\0\0\0\0\x02\x0a".to_vec(),
            ..heard(&ok, "0")
        },
        Heard {
            body: b"\0\0\0\0\x02\x0a\x7f".to_vec(),
            ..heard(&ok, "0")
        },
        Heard {
            body: Vec::new(),
            ..heard(&ok, "0")
        },
    ];
    for heard in broken {
        assert_eq!(response(&heard).unwrap_err(), Reason::AuthUnavailable);
    }
}
