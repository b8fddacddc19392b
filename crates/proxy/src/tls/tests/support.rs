//! Certificates, listeners and clients for the tests of TLS.

use std::{io, sync::Arc, time::Duration};

use gatewright_ir::{Certificate, HostPattern, Listener, ListenerSettings, Origin, PrivateKey, Protocol, Termination};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, SignatureScheme, SupportedProtocolVersion,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::super::{
    TlsTable,
    accept::{self, Accepted, Begun, TlsError},
};

pub(super) fn certificate(names: &[&str]) -> Arc<Certificate> {
    let made = rcgen::generate_simple_self_signed(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    Arc::new(Certificate {
        origin: Origin::new("Secret/test"),
        names: names.iter().map(|name| HostPattern::parse(name).unwrap()).collect(),
        chain: vec![made.cert.der().to_vec()],
        key: PrivateKey::new(made.signing_key.serialize_der()),
        staple: None,
    })
}

/// A certificate whose key is another's.
pub(super) fn broken(names: &[&str]) -> Arc<Certificate> {
    let mut broken = Arc::unwrap_or_clone(certificate(names));
    broken.key = PrivateKey::new(b"not a key".to_vec());
    Arc::new(broken)
}

pub(super) fn listener(origin: &str, hostname: &str, certificates: &[&Arc<Certificate>]) -> Arc<Listener> {
    Arc::new(Listener {
        origin: Origin::new(origin),
        name: origin.into(),
        addresses: Vec::new(),
        port: 443,
        bind: 443,
        protocol: Protocol::Https(Termination {
            certificates: certificates.iter().copied().cloned().collect(),
            clients: None,
        }),
        hostname: HostPattern::parse(hostname).unwrap(),
        settings: Arc::new(ListenerSettings::default()),
        hosts: imbl::OrdMap::new(),
    })
}

pub(super) fn client() -> Arc<ClientConfig> {
    client_with_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
}

/// A client that takes any certificate; the tests look at which one it was.
pub(super) fn client_with_versions(versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TakesAny))
        .with_no_client_auth();
    Arc::new(config)
}

#[derive(Debug)]
struct TakesAny;

impl ServerCertVerifier for TakesAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Makes a handshake that no backend makes.
pub(super) async fn accept(
    stream: DuplexStream,
    table: &TlsTable,
    timeout: Duration,
) -> Result<Accepted<DuplexStream>, TlsError> {
    accept::accept(stream, table, timeout).await.map(|begun| match begun {
        Begun::Terminated(accepted) => accepted,
        Begun::Passed(passed) => panic!("passed on: {passed:?}"),
    })
}

/// Both ends of a connection after the handshake.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) accepted: Accepted<DuplexStream>,
    pub(super) client: TlsStream<DuplexStream>,
}

impl Connected {
    /// The leaf certificate that the client saw.
    pub(super) fn presented(&self) -> &[u8] {
        self.client.get_ref().1.peer_certificates().unwrap()[0].as_ref()
    }

    pub(super) fn kind(&self) -> HandshakeKind {
        self.client.get_ref().1.handshake_kind().unwrap()
    }

    /// Lets a byte pass, so that the tickets before it arrive.
    pub(super) async fn receive_tickets(mut self) {
        self.accepted.stream.write_all(b"x").await.unwrap();
        self.accepted.stream.flush().await.unwrap();
        self.client.read_u8().await.unwrap();
    }
}

type Ends = (
    Result<Accepted<DuplexStream>, TlsError>,
    io::Result<TlsStream<DuplexStream>>,
);

/// Makes a handshake and gives what both ends say about it.
pub(super) async fn handshake(table: &TlsTable, client: &Arc<ClientConfig>, name: Option<&str>) -> Ends {
    let (near, far) = tokio::io::duplex(65_536);
    let connector = TlsConnector::from(Arc::clone(client));
    // A client that connects to an address sends no name.
    let name = ServerName::try_from(name.unwrap_or("127.0.0.1").to_owned()).unwrap();
    let client = connector.connect(name, near);
    tokio::join!(accept(far, table, Duration::from_secs(10)), client)
}

pub(super) async fn connect(
    table: &TlsTable,
    client: &Arc<ClientConfig>,
    name: Option<&str>,
) -> Result<Connected, String> {
    match handshake(table, client, name).await {
        (Ok(accepted), Ok(client)) => Ok(Connected { accepted, client }),
        (accepted, client) => Err(format!("{accepted:?} {client:?}")),
    }
}

/// Makes a client's handshake with every byte of the first message in a record and a write of its own.
pub(super) async fn one_byte_at_a_time(
    mut stream: DuplexStream,
    client: &Arc<ClientConfig>,
    name: &'static str,
) -> Result<DuplexStream, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let mut connection = ClientConnection::new(Arc::clone(client), ServerName::try_from(name).unwrap()).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    for byte in &hello[5..] {
        for part in [22, 3, 1, 0, 1, *byte] {
            stream.write_u8(part).await.map_err(|error| text(&error))?;
            // Lets the other end read before there is more.
            tokio::task::yield_now().await;
        }
    }
    let mut buffer = [0; 4096];
    while connection.is_handshaking() {
        let count = stream.read(&mut buffer).await.map_err(|error| text(&error))?;
        if count == 0 {
            return Err("closed".to_owned());
        }
        let mut received = &buffer[..count];
        while !received.is_empty() {
            connection.read_tls(&mut received).map_err(|error| text(&error))?;
            connection.process_new_packets().map_err(|error| text(&error))?;
        }
        let mut answer = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut answer).unwrap();
        }
        stream.write_all(&answer).await.map_err(|error| text(&error))?;
    }
    Ok(stream)
}

/// A first message as an old client writes it: no `supported_versions`, so the version field counts.
pub(crate) fn client_hello(version: [u8; 2], name: &str) -> Vec<u8> {
    fn prefixed(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
    }
    let server_name = prefixed(&[&[0][..], &prefixed(name.as_bytes())].concat());
    let extensions = [
        &[0, 0][..],
        &prefixed(&server_name),
        // Signature algorithms: ECDSA and RSA with SHA-256.
        &[0, 13],
        &prefixed(&prefixed(&[4, 3, 4, 1])),
        // Groups: x25519.
        &[0, 10],
        &prefixed(&prefixed(&[0, 29])),
    ]
    .concat();
    let body = [
        &version[..],
        &[7; 32],
        &[0],
        // ECDHE with AES-128-CBC, all that these versions have in common with ours.
        &prefixed(&[0xc0, 0x09, 0xc0, 0x13]),
        &[1, 0],
        &prefixed(&extensions),
    ]
    .concat();
    let message = [&[1, 0][..], &prefixed(&body)].concat();
    [&[22, 3, 1][..], &prefixed(&message)].concat()
}
