//! Known texts of RFC 4648.

use super::*;

#[test]
fn the_examples_of_the_rfc_come_out() {
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(encode(bytes.as_bytes()), text);
    }
    assert_eq!(encode(&[0xfb, 0xff, 0xfe]), "+//+");
}

#[test]
fn pem_lines_are_64_characters_long() {
    let text = pem("CERTIFICATE", &[7; 100]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.first(), Some(&"-----BEGIN CERTIFICATE-----"));
    assert_eq!(lines.last(), Some(&"-----END CERTIFICATE-----"));
    assert_eq!(
        lines[1..lines.len() - 1]
            .iter()
            .map(|line| line.len())
            .collect::<Vec<_>>(),
        [64, 64, 8]
    );
}
