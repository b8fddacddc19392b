//! What gRPC adds to HTTP: the status of a call, its message, and its deadline.

use std::{fmt::Write, time::Duration};

use super::{Content, Reason};

/// The most digits of a timeout that the protocol allows.
const MOST_DIGITS: usize = 8;

/// The status of a call for an answer of our own, by the protocol's table of HTTP codes; a deadline that has passed has a
/// status of its own.
pub(crate) fn status(content: &Content) -> u16 {
    match (content.reason(), content.status()) {
        (Some(Reason::GrpcDeadline), _) => 4,
        (_, 400) => 13,
        (_, 401) => 16,
        (_, 403) => 7,
        (_, 404) => 12,
        (_, 429 | 502 | 503 | 504) => 14,
        _ => 2,
    }
}

/// A text as the value of `grpc-message`: escaped where it is not printable ASCII.
pub(crate) fn message(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.trim_ascii() {
        match byte {
            b' '..=b'~' if *byte != b'%' => escaped.push(char::from(*byte)),
            // Writing to a string does not fail.
            _ => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

/// Reads `grpc-timeout`: up to eight digits and a unit.
pub(crate) fn timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > MOST_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_hours(number),
        b'M' => Duration::from_mins(number),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{message, status, timeout};
    use crate::forward::{Content, Reason};

    #[test]
    fn reasons_become_the_codes_of_the_protocol_s_table() {
        for (reason, code) in [
            (Reason::MalformedHead, 13),
            (Reason::AuthDenied, 7),
            (Reason::NoRoute, 12),
            (Reason::ConnectFailed, 14),
            (Reason::BackendClosed, 14),
            (Reason::RequestTimeout, 14),
            (Reason::GrpcDeadline, 4),
            (Reason::NoBackend, 2),
            (Reason::BodyTooLarge, 2),
        ] {
            assert_eq!(status(&Content::Reason(reason)), code, "{reason:?}");
        }
    }

    #[test]
    fn messages_are_escaped() {
        assert_eq!(message(b"not found: 100% \xc3\xa9\n"), "not found: 100%25 %C3%A9");
    }

    #[test]
    fn timeouts_are_read_and_what_is_none_is_not() {
        assert_eq!(timeout(b"5S"), Some(Duration::from_secs(5)));
        assert_eq!(timeout(b"100m"), Some(Duration::from_millis(100)));
        assert_eq!(timeout(b"99999999H"), Some(Duration::from_hours(99_999_999)));
        assert_eq!(timeout(b"7n"), Some(Duration::from_nanos(7)));
        for text in ["", "S", "5", "5s", "-1S", "123456789S", "1 S", "\u{e9}S"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
    }
}
