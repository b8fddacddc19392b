//! WebSocket echo, with frames written byte by byte.

use std::net::SocketAddr;

use gatewright_echo::EchoServer;
use http::{Request, StatusCode};
use hyper::ext::Protocol;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Client, empty, get, http_server, raw, within_deadline};

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A frame as a client sends it. `first` is the byte with the final bit and the kind.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | u8::try_from(short).unwrap()),
        middle @ 126..65536 => {
            frame.push(0xfe);
            frame.extend(u16::try_from(middle).unwrap().to_be_bytes());
        }
        long => {
            frame.push(0xff);
            frame.extend(u64::try_from(long).unwrap().to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}

/// Reads one frame of the backend: its first byte and its payload.
async fn frame(stream: &mut (impl AsyncRead + Unpin)) -> (u8, Vec<u8>) {
    within_deadline(async {
        let first = stream.read_u8().await.unwrap();
        let length = match stream.read_u8().await.unwrap() {
            126 => usize::from(stream.read_u16().await.unwrap()),
            127 => usize::try_from(stream.read_u64().await.unwrap()).unwrap(),
            short => usize::from(short),
        };
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        (first, payload)
    })
    .await
}

async fn open(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(within_deadline(stream.read_u8()).await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    let answer = answer.to_lowercase();
    assert!(
        answer.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n"),
        "{answer}"
    );
    assert!(answer.contains("upgrade: websocket\r\n"), "{answer}");
    stream
}

async fn echoes_messages(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    for (first, payload) in [
        (0x81, b"hello".to_vec()),
        (0x82, vec![0xff; 125]),
        (0x82, vec![1; 126]),
        (0x82, vec![2; 65_535]),
        (0x82, vec![3; 200_000]),
        (0x81, vec![]),
        // One message in three fragments.
        (0x01, b"a".to_vec()),
        (0x00, b"b".to_vec()),
        (0x80, b"c".to_vec()),
    ] {
        stream.write_all(&masked(first, &payload)).await.unwrap();
        stream.flush().await.unwrap();
        let (got_first, got) = frame(stream).await;
        assert!(
            got_first == first && got == payload,
            "{first:x} of {} bytes",
            payload.len()
        );
    }
}

#[tokio::test]
async fn messages_of_every_size_come_back() {
    let server = http_server().await;
    let mut stream = open(server.addresses.plain).await;
    echoes_messages(&mut stream).await;
}

#[tokio::test]
async fn a_ping_is_answered_between_fragments_and_a_pong_is_not() {
    let server = http_server().await;
    let mut stream = open(server.addresses.plain).await;
    let frames = [
        masked(0x01, b"a"),
        masked(0x8a, b"unasked"),
        masked(0x89, b"p"),
        masked(0x80, b"b"),
    ]
    .concat();
    stream.write_all(&frames).await.unwrap();
    assert_eq!(frame(&mut stream).await, (0x01, b"a".to_vec()));
    assert_eq!(frame(&mut stream).await, (0x8a, b"p".to_vec()));
    assert_eq!(frame(&mut stream).await, (0x80, b"b".to_vec()));
}

#[tokio::test]
async fn a_close_is_returned_with_its_status_and_the_connection_ends() {
    let server = http_server().await;
    let mut stream = open(server.addresses.plain).await;
    stream
        .write_all(&masked(0x88, &[0x03, 0xe8, b'b', b'y', b'e']))
        .await
        .unwrap();
    assert_eq!(frame(&mut stream).await, (0x88, vec![0x03, 0xe8, b'b', b'y', b'e']));
    assert_eq!(within_deadline(stream.read(&mut [0; 1])).await.unwrap(), 0);
}

#[tokio::test]
async fn breaking_the_protocol_closes_with_its_status() {
    let server = http_server().await;
    let too_big = [&[0x82, 0xff][..], &(17_u64 << 20).to_be_bytes(), &MASK].concat();
    for (bytes, status) in [
        (vec![0x81, 1, b'x'], 1002_u16),
        (masked(0xc1, b"x"), 1002),
        (masked(0x83, b"x"), 1002),
        (masked(0x80, b"x"), 1002),
        ([masked(0x01, b"x"), masked(0x81, b"y")].concat(), 1002),
        (masked(0x09, b"x"), 1002),
        (masked(0x89, &[1; 126]), 1002),
        (too_big, 1009),
    ] {
        let mut stream = open(server.addresses.plain).await;
        stream.write_all(&bytes).await.unwrap();
        let mut got = frame(&mut stream).await;
        if got.0 == 0x01 {
            got = frame(&mut stream).await;
        }
        assert_eq!(got, (0x88, status.to_be_bytes().to_vec()), "{bytes:02x?}");
    }
}

#[tokio::test]
async fn a_request_that_is_no_handshake_is_refused() {
    let server = http_server().await;
    assert_eq!(get(server.addresses.plain, "/ws").await.status, StatusCode::BAD_REQUEST);
    let without_key = "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\n\r\n";
    let answer = raw(server.addresses.plain, without_key).await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("Sec-WebSocket-Key is missing\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn http_2_opens_a_websocket_by_extended_connect() {
    let server = http_server().await;
    let mut client = Client::http2(server.addresses.h2c.unwrap()).await;
    // The settings that allow it arrive with the first exchange.
    client.get("/health").await;
    let request = Request::connect("http://shop.example/ws")
        .extension(Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .body(empty())
        .unwrap();
    let response = client.response(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut stream = TokioIo::new(within_deadline(hyper::upgrade::on(response)).await.unwrap());
    echoes_messages(&mut stream).await;
}

async fn going_away(end: impl AsyncFnOnce(EchoServer)) {
    let server = http_server().await;
    let mut stream = open(server.addresses.plain).await;
    stream.write_all(&masked(0x81, b"x")).await.unwrap();
    frame(&mut stream).await;
    end(server).await;
    assert_eq!(frame(&mut stream).await, (0x88, 1001_u16.to_be_bytes().to_vec()));
}

#[tokio::test]
async fn a_stopped_or_dropped_backend_says_that_it_goes_away() {
    going_away(async |server| within_deadline(server.stop()).await).await;
    going_away(async |server| drop(server)).await;
}
