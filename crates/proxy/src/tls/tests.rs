//! Handshakes over an in-memory connection: every test plays both ends.

pub(super) mod support;

use std::{sync::Arc, time::Duration};

use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::support::{
    Connected, accept, broken, certificate, client, client_hello, client_with_versions, connect, handshake, listener,
    one_byte_at_a_time,
};
use super::{
    Alpn, TlsTable,
    accept::{HELLO_LIMIT, TlsError},
};

const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn the_name_asked_for_picks_the_most_specific_listener() {
    let listeners = [
        listener("any", "", &[&certificate(&["any.test"])]),
        listener("exact", "a.example.com", &[&certificate(&["a.example.com"])]),
        listener("wildcard", "*.example.com", &[&certificate(&["*.example.com"])]),
        listener("deeper", "*.deep.example.com", &[&certificate(&["*.deep.example.com"])]),
    ];
    let table = TlsTable::compile(&listeners, None);
    for (name, expected) in [
        (Some("a.example.com"), "exact"),
        (Some("A.Example.COM"), "exact"),
        (Some("b.example.com"), "wildcard"),
        (Some("x.b.example.com"), "wildcard"),
        (Some("x.deep.example.com"), "deeper"),
        (Some("deep.example.com"), "wildcard"),
        (Some("example.com"), "any"),
        (Some("other.test"), "any"),
        (None, "any"),
    ] {
        let Connected { accepted, .. } = connect(&table, &client(), name).await.unwrap();
        assert_eq!(accepted.listener.as_str(), expected, "{name:?}");
    }
}

#[tokio::test]
async fn in_a_listener_the_first_certificate_for_the_name_is_presented_else_the_first() {
    let one = certificate(&["one.test", "shared.test"]);
    let two = certificate(&["two.test", "shared.test"]);
    let wildcard = certificate(&["*.two.test"]);
    let table = TlsTable::compile(&[listener("any", "", &[&one, &two, &wildcard])], None);
    for (name, expected) in [
        (Some("one.test"), &one),
        (Some("two.test"), &two),
        (Some("shared.test"), &one),
        (Some("x.two.test"), &wildcard),
        (Some("unknown.test"), &one),
        (None, &one),
    ] {
        let connected = connect(&table, &client(), name).await.unwrap();
        assert_eq!(connected.presented(), expected.chain[0], "{name:?}");
    }
}

#[tokio::test]
async fn a_name_that_no_listener_has_is_refused_as_unrecognised() {
    let table = TlsTable::compile(&[listener("exact", "a.test", &[&certificate(&["a.test"])])], None);
    for name in [Some("b.test"), None] {
        let (server, client) = handshake(&table, &client(), name).await;
        assert!(
            matches!(server.unwrap_err(), TlsError::UnknownName(asked) if asked.as_deref() == name),
            "{name:?}"
        );
        assert!(client.unwrap_err().to_string().contains("UnrecognisedName"), "{name:?}");
    }
}

#[tokio::test]
async fn a_table_without_listeners_refuses_everyone() {
    let (server, client) = handshake(&TlsTable::compile(&[], None), &client(), Some("a.test")).await;
    assert!(matches!(server.unwrap_err(), TlsError::UnknownName(_)));
    assert!(client.is_err());
}

#[tokio::test]
async fn a_broken_key_refuses_the_clients_that_need_it_and_no_others() {
    let good = certificate(&["good.test"]);
    let listeners = [
        listener("broken", "broken.test", &[&broken(&["broken.test"])]),
        listener("mixed", "", &[&good, &broken(&["bad.test"])]),
    ];
    let table = TlsTable::compile(&listeners, None);
    let (server, refused) = handshake(&table, &client(), Some("broken.test")).await;
    assert!(matches!(server.unwrap_err(), TlsError::Unusable(_)));
    assert!(refused.is_err());
    let (server, refused) = handshake(&table, &client(), Some("bad.test")).await;
    assert!(matches!(server.unwrap_err(), TlsError::Protocol(_)));
    assert!(refused.is_err());
    let connected = connect(&table, &client(), Some("good.test")).await.unwrap();
    assert_eq!(connected.presented(), good.chain[0]);
}

#[tokio::test]
async fn a_new_certificate_is_presented_from_the_next_handshake_on_and_old_connections_live() {
    let (old, new) = (certificate(&["a.test"]), certificate(&["a.test"]));
    let before = TlsTable::compile(&[listener("a", "a.test", &[&old])], None);
    let mut open = connect(&before, &client(), Some("a.test")).await.unwrap();
    let after = TlsTable::compile(&[listener("a", "a.test", &[&new])], Some(&before));
    drop(before);

    let connected = connect(&after, &client(), Some("a.test")).await.unwrap();
    assert_eq!(connected.presented(), new.chain[0]);
    assert_eq!(open.presented(), old.chain[0]);
    open.client.write_all(b"still here").await.unwrap();
    open.client.flush().await.unwrap();
    let mut bytes = [0; 10];
    open.accepted.stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"still here");
}

#[tokio::test]
async fn sessions_are_resumed_across_updates_and_new_certificates() {
    for versions in [&[&rustls::version::TLS13], &[&rustls::version::TLS12]] {
        let client = client_with_versions(versions);
        let cert = certificate(&["a.test"]);
        let first = TlsTable::compile(&[listener("a", "a.test", &[&cert])], None);
        let connected = connect(&first, &client, Some("a.test")).await.unwrap();
        assert_eq!(connected.kind(), HandshakeKind::Full);
        connected.receive_tickets().await;

        // The same certificate in another listener object, as when a route changed.
        let second = TlsTable::compile(&[listener("a", "a.test", &[&cert])], Some(&first));
        let connected = connect(&second, &client, Some("a.test")).await.unwrap();
        assert_eq!(connected.kind(), HandshakeKind::Resumed);
        connected.receive_tickets().await;

        let renewed = certificate(&["a.test"]);
        let third = TlsTable::compile(&[listener("a", "a.test", &[&renewed])], Some(&second));
        let connected = connect(&third, &client, Some("a.test")).await.unwrap();
        assert_eq!(connected.kind(), HandshakeKind::Resumed);
    }
}

#[tokio::test]
async fn a_session_of_one_listener_is_not_resumed_at_another() {
    let cert = certificate(&["a.test"]);
    let client = client();
    let first = TlsTable::compile(&[listener("one", "", &[&cert])], None);
    let connected = connect(&first, &client, Some("a.test")).await.unwrap();
    connected.receive_tickets().await;
    let second = TlsTable::compile(
        &[listener("one", "", &[&cert]), listener("two", "a.test", &[&cert])],
        Some(&first),
    );
    let connected = connect(&second, &client, Some("a.test")).await.unwrap();
    assert_eq!(connected.kind(), HandshakeKind::Full);
}

#[test]
fn what_did_not_change_is_taken_over_and_not_made_again() {
    let cert = certificate(&["a.test"]);
    let other = certificate(&["b.test"]);
    let first = TlsTable::compile(&[listener("a", "a.test", &[&cert])], None);
    let second = TlsTable::compile(
        &[listener("b", "b.test", &[&other]), listener("a", "a.test", &[&cert])],
        Some(&first),
    );
    let config = |table: &TlsTable| {
        table
            .select(Some("a.test"))
            .unwrap()
            .handling
            .config()
            .cloned()
            .unwrap()
    };
    assert!(Arc::ptr_eq(&config(&first), &config(&second)));
}

#[tokio::test]
async fn http2_is_agreed_on_when_the_client_offers_it() {
    let table = TlsTable::compile(&[listener("any", "", &[&certificate(&["a.test"])])], None);
    for (offered, expected) in [
        (&["h2", "http/1.1"][..], Alpn::Http2),
        (&["http/1.1"], Alpn::Http1),
        (&[], Alpn::Http1),
    ] {
        let mut client = Arc::unwrap_or_clone(client());
        client.alpn_protocols = offered.iter().map(|name| name.as_bytes().to_vec()).collect();
        let connected = connect(&table, &Arc::new(client), Some("a.test")).await.unwrap();
        assert_eq!(connected.accepted.alpn, expected, "{offered:?}");
    }
}

#[tokio::test]
async fn a_client_hello_in_one_byte_records_and_writes_reaches_the_right_listener() {
    let listeners = [
        listener("any", "", &[&certificate(&["any.test"])]),
        listener("exact", "a.test", &[&certificate(&["a.test"])]),
    ];
    let table = TlsTable::compile(&listeners, None);
    let (near, far) = tokio::io::duplex(65_536);
    let client = client();
    let (accepted, connected) = tokio::join!(accept(far, &table, LONG), one_byte_at_a_time(near, &client, "a.test"));
    assert_eq!(accepted.unwrap().listener.as_str(), "exact");
    drop(connected.unwrap());
}

#[tokio::test]
async fn tls_1_1_is_refused_with_protocol_version() {
    let table = TlsTable::compile(&[listener("any", "", &[&certificate(&["a.test"])])], None);
    for version in [[3, 1], [3, 2]] {
        let (mut near, far) = tokio::io::duplex(65_536);
        near.write_all(&client_hello(version, "a.test")).await.unwrap();
        let accepted = accept(far, &table, LONG).await;
        assert!(matches!(accepted.unwrap_err(), TlsError::Protocol(_)));
        let mut alert = Vec::new();
        near.read_to_end(&mut alert).await.unwrap();
        assert_eq!(alert, [21, 3, 3, 0, 2, 2, 70], "{version:?}");
    }
}

#[tokio::test]
async fn a_client_that_speaks_no_tls_is_refused() {
    let table = TlsTable::compile(&[listener("any", "", &[&certificate(&["a.test"])])], None);
    let (mut near, far) = tokio::io::duplex(65_536);
    near.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
    assert!(matches!(
        accept(far, &table, LONG).await.unwrap_err(),
        TlsError::Protocol(_)
    ));
}

#[tokio::test]
async fn an_endless_client_hello_is_cut() {
    let table = TlsTable::compile(&[listener("any", "", &[&certificate(&["a.test"])])], None);
    let (mut near, far) = tokio::io::duplex(256 * 1024);
    // Announces 40,000 bytes in records of 1,000, within what the library itself would take.
    let mut bytes = vec![22, 3, 1, 3, 232, 1, 0, 0x9c, 0x40];
    bytes.resize(5 + 1000, 0);
    while bytes.len() <= HELLO_LIMIT {
        bytes.extend([22, 3, 1, 3, 232]);
        bytes.resize(bytes.len() + 1000, 0);
    }
    near.write_all(&bytes).await.unwrap();
    assert!(matches!(
        accept(far, &table, LONG).await.unwrap_err(),
        TlsError::HelloTooLarge
    ));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_in_the_handshake_is_cut_in_time() {
    let table = TlsTable::compile(&[listener("any", "", &[&certificate(&["a.test"])])], None);
    for sent in [0, 1, 40] {
        let (mut near, far) = tokio::io::duplex(65_536);
        near.write_all(&client_hello([3, 3], "a.test")[..sent]).await.unwrap();
        assert!(matches!(
            accept(far, &table, LONG).await.unwrap_err(),
            TlsError::TimedOut
        ));
    }
}
