use std::{io, net::SocketAddr};

use gatewright_ir::ProxyHeader;
use proptest::prelude::*;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    Introduced, SIGNATURE,
    read::{self, binary, text},
    write,
};

fn introduced(client: &str, local: &str) -> Introduced {
    Introduced {
        client: client.parse().unwrap(),
        local: local.parse().unwrap(),
    }
}

/// What is read from a connection over which these pieces come, and what is left of them.
async fn read_pieces(pieces: &[&[u8]]) -> (io::Result<Option<Introduced>>, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    near.set_nodelay(true).unwrap();
    let (mut far, _) = listener.accept().await.unwrap();
    let (outcome, ()) = tokio::join!(read::read(&mut far), async {
        for piece in pieces {
            near.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        near.shutdown().await.unwrap();
    });
    let mut rest = Vec::new();
    _ = far.read_to_end(&mut rest).await;
    (outcome, rest)
}

#[tokio::test]
async fn what_is_written_is_read_again_and_nothing_beyond_it() {
    for (client, local) in [
        ("192.0.2.1:1234", "198.51.100.2:443"),
        ("[2001:db8::1]:65535", "[2001:db8::2]:1"),
    ] {
        for version in [ProxyHeader::V1, ProxyHeader::V2] {
            let said = introduced(client, local);
            let header = write(version, said);
            let (outcome, rest) = read_pieces(&[&[&header, &b"PROXY rest\n"[..]].concat()]).await;
            assert_eq!(
                (outcome.unwrap(), &rest[..]),
                (Some(said), &b"PROXY rest\n"[..]),
                "{version:?}"
            );
            // And byte by byte.
            let bytes: Vec<_> = header.chunks(1).chain([&b"rest"[..]]).collect();
            let (outcome, rest) = read_pieces(&bytes).await;
            assert_eq!((outcome.unwrap(), &rest[..]), (Some(said), &b"rest"[..]), "{version:?}");
        }
    }
}

#[tokio::test]
async fn a_front_may_speak_for_itself_and_add_what_it_knows() {
    let local = [&SIGNATURE[..], &[0x20, 0, 0, 0], b"rest"].concat();
    let (outcome, rest) = read_pieces(&[&local]).await;
    assert_eq!((outcome.unwrap(), &rest[..]), (None, &b"rest"[..]));
    let (outcome, rest) = read_pieces(&[b"PROXY UNKNOWN\r\nrest"]).await;
    assert_eq!((outcome.unwrap(), &rest[..]), (None, &b"rest"[..]));
    let mut more = write(ProxyHeader::V2, introduced("192.0.2.1:1234", "198.51.100.2:443"));
    more[15] += 7;
    more.extend([3, 0, 4, 1, 2, 3, 4]);
    let (outcome, rest) = read_pieces(&[&more, b"rest"]).await;
    assert_eq!(
        (outcome.unwrap(), &rest[..]),
        (Some(introduced("192.0.2.1:1234", "198.51.100.2:443")), &b"rest"[..])
    );
}

#[tokio::test]
async fn what_is_no_header_is_refused() {
    let long = [&b"PROXY TCP4 "[..], &[b' '; 200]].concat();
    let large = [&SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"PROXY",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
        &long,
        &large,
    ] {
        assert!(read_pieces(&[bytes]).await.0.is_err(), "{bytes:?}");
    }
}

#[test]
fn lines_are_strict() {
    for line in [
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",
        "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 +1 2\r\n",
        "PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n",
        "PROXY TCP4 2001:db8::1 192.0.2.2 1 2\r\n",
        "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",
        "PROXY tcp4 192.0.2.1 192.0.2.2 1 2\r\n",
    ] {
        assert!(text(line.as_bytes()).is_err(), "{line:?}");
    }
}

#[test]
fn clients_of_another_family_are_introduced_as_far_as_that_can_be_said() {
    let mixed = introduced("192.0.2.1:1234", "[2001:db8::2]:443");
    assert_eq!(write(ProxyHeader::V1, mixed), b"PROXY UNKNOWN\r\n");
    let header = write(ProxyHeader::V2, mixed);
    let read = binary(header[12], header[13], &header[16..]).unwrap().unwrap();
    assert_eq!(read.client, "[::ffff:192.0.2.1]:1234".parse::<SocketAddr>().unwrap());
    // An address that is only written in another way is not of another family.
    let mapped = introduced("[::ffff:192.0.2.1]:1234", "192.0.2.2:443");
    assert_eq!(
        write(ProxyHeader::V1, mapped),
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1234 443\r\n"
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(kind: u8, family: u8, body in prop::collection::vec(any::<u8>(), 0..80), line in "PROXY [ -~]{0,100}\r\n") {
        _ = binary(kind, family, &body);
        _ = text(line.as_bytes());
        _ = text(&body);
    }
}
