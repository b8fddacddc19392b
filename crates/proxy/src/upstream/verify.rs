//! Who a backend must prove to be over TLS.
//!
//! The chain, the times and the signatures are checked by the TLS library itself. Ours is only the choice of names: the one
//! that was asked for, or any of those that the policy lists instead.

use std::sync::Arc;

use gatewright_ir::{HostPattern, SubjectName};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor, verify_server_name,
    },
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use webpki::EndEntityCert;

/// Checks the certificates of backends.
#[derive(Debug)]
pub(super) struct BackendVerifier {
    pub(super) roots: Arc<RootCertStore>,
    /// If there are any, one of them must be in the certificate; else the name that was asked for.
    pub(super) names: Vec<SubjectName>,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for BackendVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        _staple: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, self.algorithms.all)?;
        if self.names.is_empty() {
            verify_server_name(&certificate, asked)?;
        } else if !self.holds_one(&certificate, leaf) {
            return Err(CertificateError::NotValidForName.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl BackendVerifier {
    fn holds_one(&self, certificate: &ParsedCertificate<'_>, leaf: &CertificateDer<'_>) -> bool {
        let Ok(parsed) = EndEntityCert::try_from(leaf) else {
            return false;
        };
        self.names.iter().any(|name| match name {
            SubjectName::Dns(HostPattern::Exact(name)) => {
                ServerName::try_from(&**name).is_ok_and(|name| verify_server_name(certificate, &name).is_ok())
            }
            SubjectName::Dns(pattern @ HostPattern::Wildcard(_)) => {
                let text = pattern.to_string();
                parsed
                    .valid_dns_names()
                    .map(str::to_ascii_lowercase)
                    .any(|held| held == text || pattern.contains(&held))
            }
            // Any name at all would be no proof of anything.
            SubjectName::Dns(HostPattern::Any) => false,
            SubjectName::Uri(uri) => parsed.valid_uri_names().any(|held| *held == **uri),
        })
    }
}
