//! Which clients a listener believes to be who they say.
//!
//! Compiled with the listener's configuration. Where certificates are only asked for, a client is let in without one and
//! with one that nobody vouches for; but whoever shows one must also hold its key.

use std::sync::Arc;

use gatewright_ir::{Authority, ClientValidation};
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::{
        WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};

use super::provider::PROVIDER;

/// What checks the clients of a listener. Fails when no client could ever be let in.
pub(super) fn verifier(validation: Option<&ClientValidation>) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let Some(ClientValidation {
        authorities,
        is_optional,
    }) = validation
    else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let roots = roots(authorities);
    if *is_optional {
        return Ok(Arc::new(Lenient {
            hints: roots.subjects(),
            algorithms: PROVIDER.signature_verification_algorithms,
        }));
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER))
        .build()
        .map_err(|error| Error::General(error.to_string()))
}

/// The roots among certificates. What cannot be one vouches for nobody.
pub(crate) fn roots(authorities: &[Arc<Authority>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        for certificate in authority.certificates.iter() {
            if let Err(error) = roots.add(CertificateDer::from(certificate.clone())) {
                tracing::warn!(authority = %authority.origin, %error, "a certificate cannot be used as an authority");
            }
        }
    }
    roots
}

/// Asks for certificates and lets everybody in.
#[derive(Debug)]
struct Lenient {
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for Lenient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
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
