//! Connections routed as a whole to backends that are to be spoken to over TLS: it is spoken, or nothing is sent.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use gatewright_ir::{Endpoint, Endpoints, Protocol, Security, Termination, Trust, UpstreamProtocol, UpstreamTls};
use tokio::{io::AsyncWriteExt, net::UdpSocket};

use crate::support::{
    Plan, Running,
    pki::{Ca, TlsFront},
    plain::{Plain, assert_refused, dial, expect, rest},
    running::{free_port, here},
    tls::{certificate, connect, trusting},
    to, until,
};

fn named(hostname: &str, ca: &Ca) -> Security {
    Security::Tls(Arc::new(UpstreamTls {
        hostname: hostname.into(),
        trust: Trust::Given(vec![Arc::clone(&ca.authority)]),
        names: Vec::new(),
    }))
}

fn refused(running: &Running, reason: &str) -> u64 {
    let refused = running.proxy.metrics().refused_streams;
    refused
        .iter()
        .filter(|count| count.reason == reason)
        .map(|count| count.count)
        .sum()
}

#[tokio::test]
async fn tls_is_spoken_to_backends_of_connections_in_clear_text_and_of_terminated_ones() {
    let ca = Ca::new("ca");
    let cert = certificate(&["a.test"]);
    let backend = Plain::named("inner").await;
    let front = TlsFront::before(backend.address, &ca.issue(&["shop.internal"]), &["h2"]).await;
    let (raw, ended) = (free_port(), free_port());
    let terminated = Protocol::Tls(Termination {
        certificates: vec![cert.clone()],
        clients: None,
    });
    let plan = Plan::new()
        .listener("raw", raw, Protocol::Tcp)
        .whole("", to("b"))
        .listener("ended", ended, terminated)
        .whole("", to("b"))
        .tcp_cluster("b", &[front.address])
        .secured("b", named("shop.internal", &ca));
    let _running = Running::serving(plan).await;
    let mut client = dial(here(raw)).await;
    expect(&mut client, b"inner").await;
    client.write_all(b"and back").await.unwrap();
    expect(&mut client, b"and back").await;
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await.unwrap(), b"");
    let mut client = connect(here(ended), &trusting(&[&cert], &[]), "a.test").await.unwrap();
    expect(&mut client, b"inner").await;
    client.write_all(b"and back").await.unwrap();
    expect(&mut client, b"and back").await;
    let greetings = front.greetings();
    assert_eq!(greetings.len(), 2);
    assert!(
        greetings
            .iter()
            .all(|greeting| greeting.name.as_deref() == Some("shop.internal"))
    );
    assert!(
        greetings.iter().all(|greeting| greeting.protocol.is_none()),
        "nothing is agreed on"
    );
}

#[tokio::test]
async fn a_backend_that_cannot_be_trusted_gets_nothing() {
    let (ca, other) = (Ca::new("ca"), Ca::new("other"));
    let mut backend = Plain::manual().await;
    let front = TlsFront::before(backend.address, &other.issue(&["shop.internal"]), &[]).await;
    let (untrusted, refusing, passed, datagrams) = (free_port(), free_port(), free_port(), free_port());
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoints = Endpoints::Known(vec![Endpoint {
        address: udp.local_addr().unwrap(),
    }]);
    let plan = Plan::new()
        .listener("untrusted", untrusted, Protocol::Tcp)
        .whole("", to("untrusted"))
        .tcp_cluster("untrusted", &[front.address])
        .secured("untrusted", named("shop.internal", &ca))
        .listener("refusing", refusing, Protocol::Tcp)
        .whole("", to("refused"))
        .tcp_cluster("refused", &[backend.address])
        .secured("refused", Security::Refused)
        .listener("passed", passed, Protocol::Passthrough)
        .whole("", to("refused"))
        .listener("datagrams", datagrams, Protocol::Udp)
        .whole("", to("datagrams"))
        .cluster_of("datagrams", UpstreamProtocol::Udp, endpoints)
        .secured("datagrams", named("shop.internal", &ca));
    let running = Running::serving(plan).await;
    for port in [untrusted, refusing] {
        assert_refused(here(port)).await;
    }
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    client.send_to(b"secret", here(datagrams)).await.unwrap();
    until("all are counted", || {
        refused(&running, "tls_handshake_failed") == 1 && refused(&running, "backend_tls_refused") == 2
    })
    .await;
    let heard = tokio::time::timeout(Duration::from_millis(50), udp.recv(&mut [0; 16])).await;
    assert!(heard.is_err(), "a datagram went out in clear text");
    // Whose backend makes the handshake itself has nothing to fear from what is demanded of others.
    let name = rustls::pki_types::ServerName::try_from("a.test").unwrap();
    let mut connection = rustls::ClientConnection::new(trusting(&[&certificate(&["a.test"])], &[]), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    let mut client = dial(here(passed)).await;
    client.write_all(&hello).await.unwrap();
    expect(&mut backend.accept().await, &hello).await;
}
