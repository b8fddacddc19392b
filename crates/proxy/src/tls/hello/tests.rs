use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::FutureExt;
use proptest::prelude::*;
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName};
use tokio::io::{AsyncRead, ReadBuf};

use super::{super::tests::support, LIMIT, Seen, Unseen, read};

/// Bytes that arrive in pieces.
struct Pieces<'a> {
    bytes: &'a [u8],
    cuts: Vec<usize>,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = self.cuts.pop().unwrap_or(self.bytes.len()).max(1);
        let count = most.min(buffer.remaining()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        buffer.put_slice(now);
        self.bytes = later;
        Poll::Ready(Ok(()))
    }
}

/// Reads a first message, and says what was left in the connection.
fn seen(bytes: &[u8], cuts: Vec<usize>) -> (Result<Seen, Unseen>, usize) {
    let mut pieces = Pieces { bytes, cuts };
    let seen = read(&mut pieces).now_or_never().unwrap();
    (seen, pieces.bytes.len())
}

/// What a real client says first, post-quantum key share included.
fn real(name: &'static str) -> Vec<u8> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519MLKEM768, aws_lc_rs::kx_group::X25519];
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut connection = ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

/// The same message in records of so many bytes.
fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
    let record = |piece: &[u8]| {
        [
            &[22, 3, 1][..],
            &u16::try_from(piece.len()).unwrap().to_be_bytes(),
            piece,
        ]
        .concat()
    };
    hello[5..].chunks(size).flat_map(record).collect()
}

#[test]
fn every_way_to_cut_a_real_message_gives_the_same() {
    let hello = real("shop.example.com");
    assert!(hello.len() > 1000, "without a large key share this shows little");
    for cut in 0..hello.len() {
        let bytes = [&hello[..], b"rest"].concat();
        let (seen, left) = seen(&bytes, vec![hello.len(), cut]);
        let seen = seen.unwrap();
        assert_eq!(
            (seen.name.as_deref(), &seen.records, left),
            (Some("shop.example.com"), &hello, 4),
            "{cut}"
        );
    }
    for size in (1..40).chain([100, 500, 1000]) {
        let records = in_records(&hello, size);
        let (seen, left) = seen(&records, Vec::new());
        let seen = seen.unwrap();
        assert_eq!(
            (seen.name.as_deref(), &seen.records, left),
            (Some("shop.example.com"), &records, 0),
            "{size}"
        );
    }
}

#[test]
fn half_a_message_is_no_message() {
    let hello = real("shop.example.com");
    for length in 0..hello.len() {
        assert!(
            matches!(seen(&hello[..length], Vec::new()).0, Err(Unseen::Connection(_))),
            "{length}"
        );
    }
}

#[test]
fn names_are_in_lower_case_without_a_dot_and_addresses_are_none() {
    let name = |name: &'static str| {
        let hello = support::client_hello([3, 1], name);
        seen(&hello, Vec::new()).0.map(|seen| seen.name)
    };
    assert_eq!(name("Shop.Example.com.").unwrap().as_deref(), Some("shop.example.com"));
    assert_eq!(name("192.0.2.1").unwrap(), None);
    assert_eq!(seen(&real("192.0.2.1"), Vec::new()).0.unwrap().name, None);
    for malformed in ["", ".", "a b", "a/b", "a\0b", "ä.test"] {
        assert!(matches!(name(malformed), Err(Unseen::Malformed)), "{malformed:?}");
    }
}

#[test]
fn versions_and_ciphers_that_nobody_here_knows_do_not_matter() {
    let mut hello = support::client_hello([3, 1], "old.test");
    // The first two suites.
    hello[5 + 4 + 2 + 32 + 1 + 2..][..4].copy_from_slice(&[0xfa, 0xfa, 0xfb, 0xfb]);
    assert_eq!(seen(&hello, Vec::new()).0.unwrap().name.as_deref(), Some("old.test"));
}

#[test]
fn what_is_larger_than_any_real_message_is_cut() {
    let mut bytes = Vec::new();
    let mut body = vec![1, 0, 0xff, 0];
    body.resize(16_000, 0);
    while bytes.len() <= LIMIT {
        bytes.extend(in_records(&[&[0; 5], &body[..]].concat(), 16_000));
        body.fill(0);
    }
    let (outcome, left) = seen(&bytes, Vec::new());
    assert!(matches!(outcome, Err(Unseen::TooLarge)));
    assert!(bytes.len() - left <= LIMIT + 5);
    let announced = [22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff];
    assert!(matches!(seen(&announced, Vec::new()).0, Err(Unseen::TooLarge)));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), cuts in prop::collection::vec(0_usize..50, 0..20)) {
        _ = seen(&bytes, cuts.clone());
        // And as what claims to be a first message.
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        let framed = [&[0; 5][..], &[1], &length[1..], &bytes].concat();
        _ = seen(&in_records(&framed, 100), cuts);
    }

    #[test]
    fn a_changed_byte_makes_it_panic_neither(at in 0_usize..300, byte: u8) {
        let mut hello = support::client_hello([3, 3], "shop.example.com");
        let at = at % hello.len();
        hello[at] = byte;
        _ = seen(&hello, Vec::new());
    }
}
