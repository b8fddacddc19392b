//! TLS of the backend: its configuration, and what a finished handshake tells.
//!
//! Called by the server for each TLS port and each connection on it. Names are written as the contract's clients
//! expect them, which are Go's.

use std::{fmt, sync::Arc};

use rustls::{
    NamedGroup, ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, crypto::aws_lc_rs,
    server::WebPkiClientVerifier,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::TlsAcceptor;

use crate::{EchoError, base64};

/// Certificate and key of a backend, as PEM.
#[derive(Clone)]
pub struct TlsMaterial {
    /// The certificate chain, the backend's own first.
    pub certificate_chain: Vec<u8>,
    /// The private key of the first certificate.
    pub private_key: Vec<u8>,
    /// Authorities that client certificates are verified against; without them no client certificate is asked for.
    pub client_authorities: Option<Vec<u8>>,
}

impl fmt::Debug for TlsMaterial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsMaterial")
            .field("client_authorities", &self.client_authorities.is_some())
            .finish_non_exhaustive()
    }
}

/// Makes an acceptor that offers the given application protocols.
pub(crate) fn acceptor(material: &TlsMaterial, protocols: &[&str]) -> Result<TlsAcceptor, EchoError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let builder = match &material.client_authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authorities)? {
                roots.add(certificate).map_err(unusable)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(unusable)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(&material.private_key).map_err(unusable)?;
    let mut config = builder
        .with_single_cert(certificates(&material.certificate_chain)?, key)
        .map_err(unusable)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, EchoError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(unusable)
}

fn unusable(error: impl fmt::Display) -> EchoError {
    EchoError::Tls(error.to_string())
}

/// What is known of a connection after its handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFacts {
    /// `1.3` or `1.2`; the contract's servers write different words before it.
    pub(crate) version: &'static str,
    pub(crate) server_name: String,
    pub(crate) negotiated_protocol: String,
    pub(crate) cipher_suite: String,
    pub(crate) curve: String,
    /// Certificates the client showed, as PEM.
    pub(crate) peer_certificates: Vec<String>,
}

impl TlsFacts {
    pub(crate) fn of(connection: &ServerConnection) -> Self {
        Self {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "1.3",
                Some(ProtocolVersion::TLSv1_2) => "1.2",
                _ => "",
            },
            server_name: connection.server_name().unwrap_or_default().to_owned(),
            negotiated_protocol: connection
                .alpn_protocol()
                .map(|protocol| String::from_utf8_lossy(protocol).into_owned())
                .unwrap_or_default(),
            // rustls marks the suites of TLS 1.3 in their name, the registry does not.
            cipher_suite: connection
                .negotiated_cipher_suite()
                .map(|suite| format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1))
                .unwrap_or_default(),
            curve: connection
                .negotiated_key_exchange_group()
                .map(|group| match group.name() {
                    NamedGroup::secp256r1 => "CurveP256".to_owned(),
                    NamedGroup::secp384r1 => "CurveP384".to_owned(),
                    NamedGroup::secp521r1 => "CurveP521".to_owned(),
                    other => format!("{other:?}"),
                })
                .unwrap_or_default(),
            peer_certificates: connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|certificate| base64::pem("CERTIFICATE", certificate))
                .collect(),
        }
    }
}
