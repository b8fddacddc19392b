//! The TCP mode.

use gatewright_echo::{EchoMode, EchoSettings};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufStream},
    net::TcpStream,
};

use crate::support::{Certificates, start, within_deadline};

struct Lines<S>(BufStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> Lines<S> {
    async fn next(&mut self) -> String {
        let mut line = String::new();
        within_deadline(self.0.read_line(&mut line)).await.unwrap();
        line
    }

    async fn ask(&mut self, line: &str) -> String {
        self.0.write_all(line.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
        self.next().await
    }
}

#[tokio::test]
async fn the_backend_greets_first_and_answers_lines() {
    let server = start(EchoSettings::local(EchoMode::Tcp).with_service("queue")).await;
    let mut lines = Lines(BufStream::new(
        TcpStream::connect(server.addresses.plain).await.unwrap(),
    ));
    assert_eq!(lines.next().await, "Gateway API Test TCP Server\n");
    assert_eq!(lines.ask("PING\n").await, "PONG\n");
    assert_eq!(lines.ask("IS_TLS\r\n").await, "false\n");
    assert_eq!(lines.ask("something else\n").await, "something else\n");
    let answer: Value = serde_json::from_str(&lines.ask("TEST\n").await).unwrap();
    assert_eq!(
        answer,
        json!({
            "namespace": "", "ingress": "", "service": "queue", "pod": "queue-0",
            "tcpport": server.addresses.plain.port().to_string(), "isTLS": false,
        })
    );
    lines.0.shutdown().await.unwrap();
    assert_eq!(lines.next().await, "", "the backend closes after the client");
    assert_eq!((server.counters().connections(), server.counters().requests()), (1, 4));
}

#[tokio::test]
async fn over_tls_it_tells_what_was_negotiated() {
    let certificates = Certificates::new();
    let server = start(EchoSettings::local(EchoMode::Tcp).with_tls(0, certificates.backend.clone())).await;
    let address = server.addresses.tls.unwrap();
    let mut lines = Lines(BufStream::new(certificates.connect(address, &[], false).await.unwrap()));
    assert_eq!(lines.next().await, "Gateway API Test TCP Server\n");
    assert_eq!(lines.ask("IS_TLS\n").await, "true\n");
    let answer: Value = serde_json::from_str(&lines.ask("TEST\n").await).unwrap();
    assert_eq!(answer["isTLS"], true);
    assert_eq!(answer["tlsport"], address.port().to_string());
    assert_eq!(answer["tls"]["version"], "TLS 1.3");
    assert_eq!(answer["tls"]["serverName"], "shop.example");
    assert!(
        answer["tls"]["cipherSuite"].as_str().unwrap().starts_with("TLS_AES_"),
        "{answer}"
    );
    assert!(!answer["tls"]["curves"].as_str().unwrap().is_empty(), "{answer}");
}

#[tokio::test]
async fn stopping_closes_open_conversations() {
    let server = start(EchoSettings::local(EchoMode::Tcp)).await;
    let mut lines = Lines(BufStream::new(
        TcpStream::connect(server.addresses.plain).await.unwrap(),
    ));
    lines.next().await;
    within_deadline(server.stop()).await;
    assert_eq!(lines.next().await, "");
}
