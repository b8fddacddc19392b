//! What listeners present: OCSP responses, the certificate that a client understands, and nothing where there is nothing.

use std::sync::Arc;

use gatewright_ir::Certificate;
use parking_lot::Mutex;
use rcgen::{KeyPair, PKCS_RSA_SHA256};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime},
    version::{TLS12, TLS13},
};

use crate::support::{
    Backend, Client, Plan, Running,
    pki::Ca,
    running::{free_port, here},
    tls::{connect, presented},
    until,
};

/// Checks certificates as the library does, understands some signatures, and remembers what came along.
#[derive(Debug)]
struct Attentive {
    inner: Arc<WebPkiServerVerifier>,
    understands: fn(SignatureScheme) -> bool,
    staple: Arc<Mutex<Vec<u8>>>,
}

impl ServerCertVerifier for Attentive {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        staple: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.staple.lock() = staple.to_vec();
        self.inner.verify_server_cert(leaf, intermediates, name, &[], now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let all = self.inner.supported_verify_schemes().into_iter();
        all.filter(|scheme| (self.understands)(*scheme)).collect()
    }
}

struct Asking {
    config: Arc<ClientConfig>,
    staple: Arc<Mutex<Vec<u8>>>,
}

/// A client that believes an authority, and understands these suites and signatures.
fn asking(
    ca: &Ca,
    version: &'static SupportedProtocolVersion,
    suites: fn(CipherSuite) -> bool,
    understands: fn(SignatureScheme) -> bool,
) -> Asking {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suites(suite.suite()));
    let provider = Arc::new(provider);
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(ca.roots()), Arc::clone(&provider))
        .build()
        .unwrap();
    let staple = Arc::<Mutex<Vec<u8>>>::default();
    let verifier = Attentive {
        inner,
        understands,
        staple: Arc::clone(&staple),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Asking {
        config: Arc::new(config),
        staple,
    }
}

#[tokio::test]
async fn what_the_authority_says_about_a_certificate_is_sent_along() {
    let ca = Ca::new("ca");
    let mut certificate = Certificate::clone(&ca.issue(&["a.test"]));
    let port = free_port();
    let plan = |certificate: &Certificate| Plan::new().https("web", port, &[&Arc::new(certificate.clone())]);
    let running = Running::serving(plan(&certificate)).await;
    // A certificate that stays the same while what is said about it changes.
    for staple in [None, Some(b"good".to_vec()), Some(b"still good".to_vec()), None] {
        certificate.staple = staple.clone();
        running.apply([plan(&certificate)]).await;
        for version in [&TLS13, &TLS12] {
            let client = asking(&ca, version, |_| true, |_| true);
            connect(here(port), &client.config, "a.test").await.unwrap();
            assert_eq!(*client.staple.lock(), staple.clone().unwrap_or_default(), "{version:?}");
        }
    }
}

#[tokio::test]
async fn of_two_certificates_for_a_name_a_client_gets_the_one_it_understands() {
    let ca = Ca::new("ca");
    let ecdsa = ca.issue(&["a.test"]);
    let rsa = ca.issue_with(&["a.test"], &KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap(), |_| {});
    let is_rsa = |scheme: SignatureScheme| scheme == SignatureScheme::RSA_PSS_SHA256;
    let is_ecdsa = |scheme: SignatureScheme| scheme == SignatureScheme::ECDSA_NISTP256_SHA256;
    for order in [[&ecdsa, &rsa], [&rsa, &ecdsa]] {
        let port = free_port();
        let _running = Running::serving(Plan::new().https("web", port, &order)).await;
        for (client, expected) in [
            // Those who understand both get what comes first.
            (asking(&ca, &TLS13, |_| true, |_| true), order[0]),
            (asking(&ca, &TLS12, |_| true, |_| true), order[0]),
            (asking(&ca, &TLS13, |_| true, is_rsa), &rsa),
            (asking(&ca, &TLS13, |_| true, is_ecdsa), &ecdsa),
            (asking(&ca, &TLS12, |_| true, is_rsa), &rsa),
            (asking(&ca, &TLS12, |_| true, is_ecdsa), &ecdsa),
            // Before TLS 1.3 the suite names the signature too.
            (
                asking(
                    &ca,
                    &TLS12,
                    |suite| suite == CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                    |_| true,
                ),
                &rsa,
            ),
            (
                asking(
                    &ca,
                    &TLS12,
                    |suite| suite == CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                    |_| true,
                ),
                &ecdsa,
            ),
        ] {
            let stream = connect(here(port), &client.config, "a.test").await.unwrap();
            assert_eq!(presented(&stream), expected.chain[0]);
        }
    }
}

#[tokio::test]
async fn a_listener_without_certificates_refuses_its_names_while_others_serve_theirs() {
    let ca = Ca::new("ca");
    let backend = Backend::answering("hello").await;
    let certificate = ca.issue(&["any.test", "*.wild.test", "own.wild.test"]);
    let port = free_port();
    let plan = |own: &[&Arc<Certificate>]| {
        Plan::new()
            .https("any", port, &[&certificate])
            .all_to("backend")
            .https("wild", port, &[&certificate])
            .hostname("*.wild.test")
            .all_to("backend")
            .https("own", port, own)
            .hostname("own.wild.test")
            .all_to("backend")
            .cluster("backend", &[backend.address])
    };
    let running = Running::serving(plan(&[&certificate])).await;
    let client = ca.client(None, &[&TLS13, &TLS12], &["http/1.1"]);
    let serves = async |name: &str| match connect(here(port), &client, name).await {
        Ok(stream) => {
            assert_eq!(Client::on(stream).get(name, "/").await.status, 200);
            true
        }
        Err(_) => false,
    };
    assert!(serves("own.wild.test").await);
    // Its certificate goes away, and comes back.
    running.apply([plan(&[])]).await;
    for (name, expected) in [
        ("own.wild.test", false),
        ("other.wild.test", true),
        ("any.test", true),
        ("own.wild.test", false),
    ] {
        assert_eq!(serves(name).await, expected, "{name}");
    }
    until("refusals are counted", || {
        let failures = running.proxy.metrics().tls_failures;
        failures
            .iter()
            .any(|failure| failure.reason == "unusable_certificate" && failure.count == 2)
    })
    .await;
    running.apply([plan(&[&certificate])]).await;
    assert!(serves("own.wild.test").await);
}
