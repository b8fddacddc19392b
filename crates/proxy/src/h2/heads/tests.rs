use http::{HeaderMap, HeaderValue, Request, header};

use super::{Reason, authority, body_length, expects_continue, joined_cookies};
use crate::h1::BodyLength;

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in pairs {
        fields.append(*name, HeaderValue::from_static(value));
    }
    fields
}

#[test]
fn a_request_has_one_host() {
    let host = |uri: &str, pairs| {
        let mut request = Request::builder().uri(uri).body(()).unwrap();
        *request.headers_mut() = fields(pairs);
        let (parts, ()) = request.into_parts();
        authority(&parts).map(|authority| authority.text.to_owned())
    };
    assert_eq!(host("http://a/", &[]), Ok("a".to_owned()));
    assert_eq!(host("http://a/", &[("host", "A")]), Ok("a".to_owned()));
    assert_eq!(host("/", &[("host", "b")]), Ok("b".to_owned()));
    for (uri, pairs) in [
        ("/", &[][..]),
        ("http://a/", &[("host", "b")]),
        ("http://a/", &[("host", "a"), ("host", "a")]),
        ("/", &[("host", "a,b")]),
        ("/", &[("host", "")]),
    ] {
        assert_eq!(host(uri, pairs), Err(Reason::BadHost), "{uri} {pairs:?}");
    }
}

#[test]
fn the_length_of_a_body_is_stated_once_and_not_in_vain() {
    assert_eq!(body_length(&fields(&[]), true), Ok(BodyLength::Known(0)));
    assert_eq!(body_length(&fields(&[]), false), Ok(BodyLength::Chunked));
    assert_eq!(
        body_length(&fields(&[("content-length", "3")]), false),
        Ok(BodyLength::Known(3))
    );
    for (pairs, is_empty) in [
        (&[("content-length", "3")][..], true),
        (&[("content-length", "+3")], false),
        (&[("content-length", "3"), ("content-length", "3")], false),
    ] {
        assert_eq!(
            body_length(&fields(pairs), is_empty),
            Err(Reason::AmbiguousLength),
            "{pairs:?}"
        );
    }
}

#[test]
fn only_one_expectation_is_understood() {
    assert_eq!(expects_continue(&fields(&[("expect", "100-Continue")])), Ok(true));
    assert_eq!(
        expects_continue(&fields(&[("expect", "magic")])),
        Err(Reason::UnknownExpectation)
    );
}

#[test]
fn split_cookies_are_joined() {
    assert_eq!(joined_cookies(&fields(&[("cookie", "a=1")])), None);
    let joined = joined_cookies(&fields(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]));
    assert_eq!(joined.as_deref(), Some(b"a=1; b=2".as_slice()));
    assert_eq!(header::COOKIE.as_str(), "cookie");
}
