use proptest::prelude::*;

use super::{BodyLength, RequestFraming, parse_request, slots};
use crate::forward::Reason;

fn parse(head: &str) -> Result<Option<RequestFraming>, Reason> {
    let mut slots = slots();
    parse_request(head.as_bytes(), &mut slots, false).map(|parsed| parsed.map(|parsed| parsed.framing))
}

fn framing(fields: &str) -> Result<RequestFraming, Reason> {
    parse(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).map(|parsed| parsed.expect("a whole head"))
}

#[test]
fn what_could_be_understood_in_two_ways_is_refused() {
    use Reason::*;
    let table = [
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", AmbiguousLength),
        ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", AmbiguousLength),
        ("Content-Length: 1\r\nContent-Length: 2\r\n", AmbiguousLength),
        ("Content-Length: 1\r\nContent-Length: 1\r\n", AmbiguousLength),
        ("Content-Length: 5, 5\r\n", AmbiguousLength),
        ("Content-Length: +5\r\n", AmbiguousLength),
        ("Content-Length: -1\r\n", AmbiguousLength),
        ("Content-Length: 0x5\r\n", AmbiguousLength),
        ("Content-Length:\r\n", AmbiguousLength),
        ("Content-Length: 99999999999999999999\r\n", AmbiguousLength),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            AmbiguousLength,
        ),
        ("Transfer-Encoding: xchunked\r\n", UnknownTransferEncoding),
        ("Transfer-Encoding: chunked, identity\r\n", UnknownTransferEncoding),
        ("Transfer-Encoding: gzip, chunked\r\n", UnknownTransferEncoding),
        ("Transfer-Encoding:\r\n", UnknownTransferEncoding),
        ("Host: b\r\n", BadHost),
        ("Expect: 200-maybe\r\n", UnknownExpectation),
        ("X_Underscore: 1\r\n", Underscore),
        ("Space : 1\r\n", MalformedHead),
        ("Folded: 1\r\n 2\r\n", MalformedHead),
        ("Null: a\0b\r\n", MalformedHead),
        ("Bare: a\rb\r\n", MalformedHead),
        ("LineFeed: a\nOther: b\r\n", MalformedHead),
        (": nameless\r\n", MalformedHead),
        ("no colon\r\n", MalformedHead),
    ];
    for (fields, reason) in table {
        assert_eq!(framing(fields), Err(reason), "{fields:?}");
    }
}

#[test]
fn request_lines_are_read_strictly() {
    use Reason::*;
    let table = [
        ("GET / HTTP/1.2\r\nHost: a\r\n\r\n", UnsupportedVersion),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", UnsupportedVersion),
        ("GET / HTTP/11\r\nHost: a\r\n\r\n", MalformedHead),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", MalformedHead),
        ("GET /  HTTP/1.1\r\nHost: a\r\n\r\n", MalformedHead),
        ("GET /\r\nHost: a\r\n\r\n", MalformedHead),
        ("G\u{1}T / HTTP/1.1\r\nHost: a\r\n\r\n", MalformedHead),
        ("GET / HTTP/1.1\nHost: a\n\n", MalformedHead),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", MalformedHead),
        ("GET / HTTP/1.1\r\n\r\n", BadHost),
        (
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            TransferEncodingInHttp10,
        ),
    ];
    for (head, reason) in table {
        assert_eq!(parse(head), Err(reason), "{head:?}");
    }
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(100));
    assert_eq!(parse(&many), Err(HeadTooLarge));
}

#[test]
fn bodies_and_connections_are_delimited_as_the_head_says() {
    let body = |fields| framing(fields).unwrap().body;
    assert_eq!(body(""), BodyLength::Known(0));
    assert_eq!(body("Content-Length: 12\r\n"), BodyLength::Known(12));
    assert_eq!(body("transfer-encoding: Chunked\r\n"), BodyLength::Chunked);
    assert!(framing("").unwrap().is_persistent);
    assert!(!framing("Connection: x, Close\r\n").unwrap().is_persistent);
    let old = |fields| parse(&format!("GET / HTTP/1.0\r\n{fields}\r\n")).unwrap().unwrap();
    assert!(!old("").is_persistent && old("Connection: keep-alive\r\n").is_persistent);
    assert!(!old("Expect: 100-continue\r\n").expects_continue);
    assert!(framing("Expect: 100-Continue\r\n").unwrap().expects_continue);
    assert!(
        framing("Connection: Upgrade\r\nUpgrade: websocket\r\n")
            .unwrap()
            .wants_upgrade
    );
    assert!(!framing("Upgrade: websocket\r\n").unwrap().wants_upgrade);
}

proptest! {
    #[test]
    fn a_head_in_pieces_is_incomplete_until_its_end_and_never_something_else(cut in 0_usize..60) {
        let head = "GET /a?b HTTP/1.1\r\nHost: shop\r\nContent-Length: 3\r\nX: y\r\n\r\n";
        let cut = cut.min(head.len() - 1);
        prop_assert_eq!(parse(&head[..cut]), Ok(None));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut slots = slots();
        drop(parse_request(&bytes, &mut slots, true));
    }
}
