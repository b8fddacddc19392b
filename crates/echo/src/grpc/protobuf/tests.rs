//! Bytes as the wire format defines them.

use super::*;

#[test]
fn fields_are_tagged_and_measured() {
    let inner = Message::default().text(2, "testing");
    assert_eq!(inner.0, [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
    assert_eq!(Message::default().message(3, &inner).into_bytes()[..3], [0x1a, 9, 0x12]);
}

#[test]
fn empty_text_is_left_out_and_empty_messages_are_not() {
    assert_eq!(
        Message::default()
            .text(1, "")
            .message(2, &Message::default())
            .into_bytes(),
        [0x12, 0]
    );
}

#[test]
fn long_fields_have_long_lengths() {
    let bytes = Message::default().text(1, &"x".repeat(300)).into_bytes();
    assert_eq!((bytes.len(), &bytes[..3]), (303, &[0x0a, 0xac, 0x02][..]));
}
