//! Parsed certificates, and the choice of one for a client.
//!
//! Parsing a private key costs far more than comparing two pointers, so a table takes over what the table before it had
//! parsed. A certificate that does not parse keeps its place: clients that would get it are refused, the others are not
//! affected.

use std::sync::Arc;

use ahash::AHashMap;
use gatewright_ir::Certificate;
use rustls::{
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// A name without the dot that may end it; both forms mean the same.
pub(super) fn without_trailing_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// A certificate with its key, ready to sign, unless it is broken.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    certificate: Arc<Certificate>,
    key: Option<Arc<CertifiedKey>>,
}

impl Parsed {
    fn new(certificate: &Arc<Certificate>, provider: &CryptoProvider) -> Self {
        let chain = certificate.chain.iter().cloned().map(CertificateDer::from).collect();
        let key = PrivateKeyDer::try_from(certificate.key.expose().to_vec())
            .map_err(|error| rustls::Error::General(error.to_owned()))
            .and_then(|key| CertifiedKey::from_der(chain, key, provider))
            .map(|key| CertifiedKey {
                ocsp: certificate.staple.clone(),
                ..key
            });
        if let Err(error) = &key {
            tracing::warn!(certificate = %certificate.origin, %error, "a certificate cannot be used; handshakes that need it are refused");
        }
        Self {
            certificate: Arc::clone(certificate),
            key: key.ok().map(Arc::new),
        }
    }

    fn is_for(&self, name: &str) -> bool {
        self.certificate.names.iter().any(|pattern| pattern.contains(name))
    }
}

/// Everything that has been parsed, by the address of the certificate in memory. No other certificate can come to stand
/// at that address, because the entry holds the one that does.
#[derive(Debug, Default)]
pub(super) struct ParsedCertificates(AHashMap<usize, Parsed>);

impl ParsedCertificates {
    /// Parses a certificate, or takes it from what was parsed before.
    pub(super) fn parse(
        &mut self,
        certificate: &Arc<Certificate>,
        previous: Option<&Self>,
        provider: &CryptoProvider,
    ) -> Parsed {
        let address = Arc::as_ptr(certificate).addr();
        self.0
            .entry(address)
            .or_insert_with(|| {
                previous
                    .and_then(|previous| previous.0.get(&address).cloned())
                    .unwrap_or_else(|| Parsed::new(certificate, provider))
            })
            .clone()
    }
}

/// The certificates of one listener, in the order of their declaration.
#[derive(Debug)]
pub(super) struct ListenerCertificates(Vec<Parsed>);

impl ListenerCertificates {
    pub(super) fn new(certificates: Vec<Parsed>) -> Self {
        Self(certificates)
    }

    /// Whether there is any client that could be served.
    pub(super) fn is_any_usable(&self) -> bool {
        self.0.iter().any(|parsed| parsed.key.is_some())
    }

    /// Whether these are the given certificates, in the given order.
    pub(super) fn are(&self, certificates: &[Arc<Certificate>]) -> bool {
        self.0.len() == certificates.len()
            && self.0.iter().zip(certificates).all(|(parsed, certificate)| {
                Arc::ptr_eq(&parsed.certificate, certificate) || parsed.certificate == *certificate
            })
    }
}

impl ResolvesServerCert for ListenerCertificates {
    /// The first certificate for the name asked for, else the first of all.
    ///
    /// Of several for one name, the first that can sign in a way the client understands: an ECDSA certificate may then
    /// stand before an RSA certificate for old clients.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(without_trailing_dot).unwrap_or_default();
        let mut first_for_name = None;
        for parsed in self.0.iter().filter(|parsed| parsed.is_for(name)) {
            if let Some(key) = &parsed.key
                && key.key.choose_scheme(hello.signature_schemes()).is_some()
            {
                return Some(Arc::clone(key));
            }
            first_for_name = first_for_name.or(Some(parsed));
        }
        first_for_name.or(self.0.first()).and_then(|parsed| parsed.key.clone())
    }
}
