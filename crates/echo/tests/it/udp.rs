//! The UDP mode.

use gatewright_echo::{EchoMode, EchoServer, EchoSettings};
use serde_json::{Value, json};
use tokio::net::UdpSocket;

use crate::support::{start, within_deadline};

async fn ask(server: &EchoServer, datagram: &[u8]) -> Value {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(datagram, server.addresses.plain).await.unwrap();
    let mut buffer = vec![0; 4096];
    let length = within_deadline(socket.recv(&mut buffer)).await.unwrap();
    serde_json::from_slice(&buffer[..length]).unwrap()
}

#[tokio::test]
async fn each_datagram_is_answered_with_json() {
    let server = start(EchoSettings::local(EchoMode::Udp).with_service("clock")).await;
    assert_eq!(
        ask(&server, b"what time is it").await,
        json!({"request": "what time is it", "namespace": "", "ingress": "", "service": "clock", "pod": "clock-0"})
    );
    assert_eq!(ask(&server, b"").await["request"], "");
    assert_eq!(server.counters().requests(), 2);
}

#[tokio::test]
async fn a_datagram_is_read_up_to_1024_bytes() {
    let server = start(EchoSettings::local(EchoMode::Udp)).await;
    assert_eq!(ask(&server, &[b'y'; 1500]).await["request"], "y".repeat(1024));
}

#[tokio::test]
async fn a_stopped_backend_frees_its_port() {
    let server = start(EchoSettings::local(EchoMode::Udp)).await;
    let address = server.addresses.plain;
    within_deadline(server.stop()).await;
    UdpSocket::bind(address).await.unwrap();
}
