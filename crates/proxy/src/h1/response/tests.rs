use super::{Malformed, parse_response};
use crate::h1::{BodyLength, slots};

fn parse(head: &str, to_head_request: bool) -> Result<(u16, BodyLength, Option<u64>, bool), Malformed> {
    let mut slots = slots();
    let parsed = parse_response(head.as_bytes(), &mut slots, to_head_request)?.expect("a whole head");
    Ok((parsed.status, parsed.body, parsed.stated_length, parsed.is_persistent))
}

#[test]
fn a_response_ends_where_its_head_says() {
    use BodyLength::*;
    let table = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
            false,
            (200, Known(3), Some(3), true),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
            true,
            (200, Known(0), Some(3), true),
        ),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
            (200, Chunked, None, true),
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", false, (200, UntilClose, None, false)),
        ("HTTP/1.1 204 No\r\n\r\n", false, (204, Known(0), None, true)),
        (
            "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n",
            false,
            (304, Known(0), Some(9), true),
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", false, (100, Known(0), None, true)),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n",
            false,
            (200, Known(3), Some(3), false),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\n",
            false,
            (200, Known(3), Some(3), false),
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
            false,
            (200, Known(3), Some(3), true),
        ),
    ];
    for (head, to_head_request, expected) in table {
        assert_eq!(parse(head, to_head_request), Ok(expected), "{head:?}");
    }
}

#[test]
fn ambiguous_responses_are_refused() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nFolded: a\r\n b\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
    ] {
        assert_eq!(parse(head, false), Err(Malformed), "{head:?}");
    }
}
