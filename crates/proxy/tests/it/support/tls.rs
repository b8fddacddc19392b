//! Certificates and TLS clients.

use std::{io, net::SocketAddr, sync::Arc};

use gatewright_ir::{Certificate, HostPattern, Origin, PrivateKey};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::soon;

/// A certificate for these names, signed by itself.
pub(crate) fn certificate(names: &[&str]) -> Arc<Certificate> {
    let made = rcgen::generate_simple_self_signed(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    Arc::new(Certificate {
        origin: Origin::new("Secret/test"),
        names: names.iter().map(|name| HostPattern::parse(name).unwrap()).collect(),
        chain: vec![made.cert.der().to_vec()],
        key: PrivateKey::new(made.signing_key.serialize_der()),
        staple: None,
    })
}

/// A client that trusts these certificates and offers these protocols.
pub(crate) fn trusting(certificates: &[&Arc<Certificate>], protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(CertificateDer::from(certificate.chain[0].clone())).unwrap();
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Makes a handshake, asking for a name.
pub(crate) async fn connect(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    name: &str,
) -> io::Result<TlsStream<TcpStream>> {
    soon("a handshake", async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::clone(config)).connect(name, stream).await
    })
    .await
}

/// The leaf certificate that the proxy presented.
pub(crate) fn presented(stream: &TlsStream<TcpStream>) -> &[u8] {
    stream.get_ref().1.peer_certificates().unwrap()[0].as_ref()
}
