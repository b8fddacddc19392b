//! HTTPS: protocols by ALPN, client certificates, what the echo tells of the handshake.

use gatewright_echo::{EchoError, EchoMode, EchoServer, EchoSettings, TlsMaterial};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::support::{Certificates, Client, start, within_deadline};

#[tokio::test]
async fn alpn_chooses_http_2_or_http_1() {
    let certificates = Certificates::new();
    let server = start(EchoSettings::local(EchoMode::Http).with_tls(0, certificates.backend.clone())).await;
    let address = server.addresses.tls.unwrap();

    let stream = certificates.connect(address, &["h2", "http/1.1"], false).await.unwrap();
    let echo = Client::http2_over(stream).await.get("/two").await.json();
    assert_eq!(
        (&echo["proto"], &echo["tls"]["negotiatedProtocol"]),
        (&json!("HTTP/2.0"), &json!("h2"))
    );
    assert_eq!(echo["tls"]["version"], "TLSv1.3");
    assert_eq!(echo["tls"]["serverName"], "shop.example");
    assert!(
        echo["tls"]["cipherSuite"].as_str().unwrap().starts_with("TLS_AES_"),
        "{echo}"
    );
    assert_eq!(echo["tls"].get("peerCertificates"), None);

    let stream = certificates.connect(address, &["http/1.1"], false).await.unwrap();
    let echo = Client::http1_over(stream).await.get("/one").await.json();
    assert_eq!(
        (&echo["proto"], &echo["tls"]["negotiatedProtocol"]),
        (&json!("HTTP/1.1"), &json!("http/1.1"))
    );

    let stream = certificates.connect(address, &[], false).await.unwrap();
    let echo = Client::http1_over(stream).await.get("/none").await.json();
    assert_eq!(
        (&echo["proto"], echo["tls"].get("negotiatedProtocol")),
        (&json!("HTTP/1.1"), None)
    );
}

#[tokio::test]
async fn without_a_certificate_there_is_no_tls_port_and_no_tls_in_the_echo() {
    let server = start(EchoSettings::local(EchoMode::Http)).await;
    assert_eq!(server.addresses.tls, None);
    assert_eq!(
        Client::http1(server.addresses.plain)
            .await
            .get("/")
            .await
            .json()
            .get("tls"),
        None
    );
}

#[tokio::test]
async fn a_client_certificate_is_verified_and_shown_but_not_demanded() {
    let certificates = Certificates::new();
    let server = start(EchoSettings::local(EchoMode::Http).with_tls(0, certificates.verifying_clients())).await;
    let address = server.addresses.tls.unwrap();

    let stream = certificates.connect(address, &["http/1.1"], true).await.unwrap();
    let echo = Client::http1_over(stream).await.get("/").await.json();
    let shown = echo["tls"]["peerCertificates"][0].as_str().unwrap();
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        certificates.client_certificate.lines().collect::<Vec<_>>()
    );

    let stream = certificates.connect(address, &["http/1.1"], false).await.unwrap();
    assert_eq!(Client::http1_over(stream).await.get("/").await.status, 200);
}

#[tokio::test]
async fn a_client_certificate_of_another_authority_is_refused() {
    let certificates = Certificates::new();
    let server = start(EchoSettings::local(EchoMode::Http).with_tls(0, certificates.verifying_clients())).await;
    let stranger = Certificates::new();
    let mixed = Certificates {
        authority: certificates.authority.clone(),
        backend: certificates.backend.clone(),
        client_certificate: stranger.client_certificate,
        client_key: stranger.client_key,
    };
    let refused = within_deadline(async {
        // In TLS 1.3 the client's handshake is done before the backend has judged its certificate.
        let mut stream = mixed
            .connect(server.addresses.tls.unwrap(), &["http/1.1"], true)
            .await?;
        stream.read(&mut [0; 1]).await
    })
    .await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn unusable_material_is_an_error() {
    let certificates = Certificates::new();
    let broken = TlsMaterial {
        private_key: b"no key".to_vec(),
        ..certificates.backend.clone()
    };
    let result = EchoServer::start(EchoSettings::local(EchoMode::Http).with_tls(0, broken)).await;
    assert!(matches!(result.map(|_| ()), Err(EchoError::Tls(_))));
    let other_key = TlsMaterial {
        private_key: Certificates::new().backend.private_key,
        ..certificates.backend
    };
    let result = EchoServer::start(EchoSettings::local(EchoMode::Http).with_tls(0, other_key)).await;
    assert!(matches!(result.map(|_| ()), Err(EchoError::Tls(_))));
}
