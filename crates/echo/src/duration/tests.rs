//! What Go reads as a duration, and what not.

use super::*;

#[test]
fn go_durations_are_read() {
    for (text, milliseconds) in [
        ("300ms", 300),
        ("1.5s", 1500),
        ("1m30s", 90_000),
        ("0", 0),
        (".5s", 500),
        ("1h", 3_600_000),
        ("-5s", 0),
        ("+2s", 2000),
        ("1000us", 1),
    ] {
        assert_eq!(parse(text), Some(Duration::from_millis(milliseconds)), "{text}");
    }
}

#[test]
fn anything_else_is_refused() {
    for text in ["", "5", "s", "1x", "1.2.3s", "1 s", "-", ".s", "999999999h", "25h"] {
        assert_eq!(parse(text), None, "{text}");
    }
}
