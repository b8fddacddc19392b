//! TLS that is routed by the name a client asks for: passed on as it is, terminated here, or served as HTTP, on one port.

use std::{io, sync::Arc, time::Duration};

use gatewright_ir::{Certificate, Protocol, Termination};
use rustls::{
    ClientConnection, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::support::{
    Backend, Client, Plan, Running,
    plain::{Plain, dial, expect, rest},
    running::{free_port, here},
    soon,
    tls::{certificate, connect, presented, trusting},
    to, until,
};

/// A backend that makes handshakes and says its name.
async fn secure(name: &'static str, certificate: &Arc<Certificate>) -> std::net::SocketAddr {
    let chain = certificate.chain.iter().cloned().map(CertificateDer::from).collect();
    let key = PrivateKeyDer::try_from(certificate.key.expose().to_vec()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"something".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    _ = stream.write_all(name.as_bytes()).await;
                    _ = stream.shutdown().await;
                }
            });
        }
    });
    address
}

fn terminating(certificates: &[&Arc<Certificate>]) -> Protocol {
    Protocol::Tls(Termination {
        certificates: certificates.iter().copied().cloned().collect(),
        clients: None,
    })
}

/// The first message of a client that asks for a name.
fn hello(name: &str, certificate: &Arc<Certificate>) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(trusting(&[certificate], &[]), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

#[tokio::test]
async fn three_kinds_of_listeners_share_a_port_and_are_told_apart_by_name() {
    let cert = certificate(&["web.test", "ended.test"]);
    let (inner, wild) = (certificate(&["passed.test"]), certificate(&["*.passed.test"]));
    let (exact_backend, wild_backend) = (secure("exact", &inner).await, secure("wild", &wild).await);
    let (web, raw) = (Backend::answering("web").await, Plain::named("plain").await);
    let port = free_port();
    let plan = Plan::new()
        .https("web", port, &[&cert])
        .hostname("web.test")
        .all_to("web")
        .listener("ended", port, terminating(&[&cert]))
        .hostname("ended.test")
        .whole("", to("plain"))
        .listener("passed", port, Protocol::Passthrough)
        .whole("passed.test", to("exact"))
        .whole("*.passed.test", to("wild"))
        .cluster("web", &[web.address])
        .tcp_cluster("plain", &[raw.address])
        .tcp_cluster("exact", &[exact_backend])
        .tcp_cluster("wild", &[wild_backend]);
    let running = Running::serving(plan).await;
    let config = trusting(&[&cert, &inner, &wild], &["something", "http/1.1"]);

    let stream = connect(here(port), &config, "web.test").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut client = Client::on(stream);
    assert_eq!(client.get("web.test", "/").await.text(), "web");
    // A request cannot cross over to what is not HTTP.
    assert_eq!(client.get("ended.test", "/").await.status, 421);

    let mut stream = connect(here(port), &config, "ended.test").await.unwrap();
    assert_eq!(presented(&stream), cert.chain[0]);
    assert_eq!(stream.get_ref().1.alpn_protocol(), None);
    expect(&mut stream, b"plain").await;
    stream.write_all(b"and back").await.unwrap();
    expect(&mut stream, b"and back").await;
    stream.shutdown().await.unwrap();
    assert_eq!(rest(&mut stream).await.unwrap(), b"");

    for (name, cert, said) in [("passed.test", &inner, "exact"), ("a.passed.test", &wild, "wild")] {
        let mut stream = connect(here(port), &config, name).await.unwrap();
        assert_eq!(presented(&stream), cert.chain[0]);
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"something"[..]));
        assert_eq!(rest(&mut stream).await.unwrap(), said.as_bytes());
    }

    // The listener for any name has no route for this one.
    let error = connect(here(port), &config, "nobody.test").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    until("it is counted", || {
        let refused = running.proxy.metrics().refused_streams;
        refused
            .iter()
            .any(|count| (count.listener.as_str(), count.reason, count.count) == ("gateway/passed", "no_route", 1))
    })
    .await;
}

#[tokio::test]
async fn a_hello_in_many_pieces_and_records_is_passed_on_unchanged() {
    let mut backend = Plain::manual().await;
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let plan = Plan::new()
        .listener("passed", port, Protocol::Passthrough)
        .hostname("a.test")
        .whole("", to("b"))
        .tcp_cluster("b", &[backend.address]);
    let _running = Running::serving(plan).await;
    let whole = hello("A.test", &cert);
    // As one record, in records of a few bytes, and followed by something the backend understands.
    let small: Vec<u8> = whole[5..]
        .chunks(7)
        .flat_map(|piece| [&[22, 3, 1, 0, u8::try_from(piece.len()).unwrap()], piece].concat())
        .collect();
    for bytes in [whole.clone(), small] {
        let mut client = dial(here(port)).await;
        for piece in bytes.chunks(11) {
            client.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        client.write_all(b"more").await.unwrap();
        let mut served = backend.accept().await;
        expect(&mut served, &bytes).await;
        expect(&mut served, b"more").await;
        served.write_all(b"anything").await.unwrap();
        expect(&mut client, b"anything").await;
    }
}

#[tokio::test]
async fn without_a_name_only_a_listener_for_any_is_reached() {
    let cert = certificate(&["a.test"]);
    let any = Plain::named("any").await;
    let port = free_port();
    let plan = |hostname: &str| {
        Plan::new()
            .listener("passed", port, Protocol::Passthrough)
            .hostname(hostname)
            .whole(hostname, to("any"))
            .tcp_cluster("any", &[any.address])
    };
    let (strict, open) = (plan("a.test"), plan(""));
    // Clients send no name for an address.
    let nameless = hello("192.0.2.1", &cert);
    let running = Running::serving(strict).await;
    let mut client = dial(here(port)).await;
    client.write_all(&nameless).await.unwrap();
    assert_eq!(
        rest(&mut client).await.unwrap(),
        b"",
        "no word is said where TLS is passed on"
    );
    running.apply([open]).await;
    let mut client = dial(here(port)).await;
    client.write_all(&nameless).await.unwrap();
    expect(&mut client, b"any").await;
}

#[tokio::test]
async fn what_is_no_tls_or_takes_too_long_is_refused() {
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let plan = Plan::new()
        .listener("passed", port, Protocol::Passthrough)
        .settings(|settings| settings.header_timeout = Duration::from_millis(300));
    let running = Running::serving(plan).await;
    let mut client = dial(here(port)).await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    // The alert may be overtaken by the end of the connection, which has unread bytes.
    _ = rest(&mut client).await;
    let mut slow = dial(here(port)).await;
    slow.write_all(&hello("a.test", &cert)[..100]).await.unwrap();
    let mut byte = [0];
    let ended: io::Result<usize> = soon("the end", slow.read(&mut byte)).await;
    assert!(matches!(ended, Ok(0) | Err(_)));
    until("both are counted", || {
        let failures = running.proxy.metrics().tls_failures;
        let has = |reason: &str| {
            failures
                .iter()
                .any(|failure| failure.reason == reason && failure.count == 1)
        };
        has("protocol") && has("timeout")
    })
    .await;
}

#[tokio::test]
async fn a_terminated_connection_that_leads_nowhere_is_cut() {
    let cert = certificate(&["a.test"]);
    let port = free_port();
    let plan = Plan::new().listener("ended", port, terminating(&[&cert]));
    let running = Running::serving(plan).await;
    let mut stream = connect(here(port), &trusting(&[&cert], &[]), "a.test").await.unwrap();
    assert!(rest(&mut stream).await.is_err());
    until("it is counted", || {
        let refused = running.proxy.metrics().refused_streams;
        refused
            .iter()
            .any(|count| (count.reason, count.count) == ("no_route", 1))
    })
    .await;
    drop(TcpStream::connect(here(port)).await.unwrap());
}
