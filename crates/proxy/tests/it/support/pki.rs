//! Certificate authorities of the tests, and backends behind TLS.

use std::{net::SocketAddr, sync::Arc};

use gatewright_ir::{Authority, Certificate, ClientValidation, HostPattern, Origin, PrivateKey};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::{
    ClientConfig, HandshakeKind, RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
    sign::{CertifiedKey, SingleCertAndKey},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};
use tokio_rustls::TlsAcceptor;

/// A certificate authority.
pub(crate) struct Ca {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) authority: Arc<Authority>,
    pub(crate) pem: String,
}

impl Ca {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            pem: certificate.pem(),
            authority: Arc::new(Authority {
                origin: Origin::new(format!("ConfigMap/{name}")),
                certificates: vec![certificate.der().to_vec()].into(),
            }),
        }
    }

    /// A certificate for these names. Those with `://` in them are URIs.
    pub(crate) fn issue(&self, names: &[&str]) -> Arc<Certificate> {
        self.issue_with(names, &KeyPair::generate().unwrap(), |_| {})
    }

    /// One whose time is over.
    pub(crate) fn expired(&self, names: &[&str]) -> Arc<Certificate> {
        self.issue_with(names, &KeyPair::generate().unwrap(), |params| {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        })
    }

    pub(crate) fn issue_with(
        &self,
        names: &[&str],
        key: &KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<Certificate> {
        let (uris, hosts): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.contains("://"));
        let mut params = CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        let uris = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap()));
        params.subject_alt_names.extend(uris);
        change(&mut params);
        let certificate = params.signed_by(key, &self.issuer).unwrap();
        Arc::new(Certificate {
            origin: Origin::new("Secret/test"),
            names: hosts.iter().map(|name| HostPattern::parse(name).unwrap()).collect(),
            chain: vec![certificate.der().to_vec()],
            key: PrivateKey::new(key.serialize_der()),
            staple: None,
        })
    }

    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        for certificate in self.authority.certificates.iter() {
            roots.add(CertificateDer::from(certificate.clone())).unwrap();
        }
        roots
    }

    /// Clients must show a certificate of this authority.
    pub(crate) fn required(&self) -> Arc<ClientValidation> {
        self.validation(false)
    }

    /// Clients are asked for a certificate of this authority.
    pub(crate) fn optional(&self) -> Arc<ClientValidation> {
        self.validation(true)
    }

    fn validation(&self, is_optional: bool) -> Arc<ClientValidation> {
        Arc::new(ClientValidation {
            authorities: vec![Arc::clone(&self.authority)],
            is_optional,
        })
    }

    /// A client that believes this authority, shows a certificate if it has one, and speaks these versions.
    pub(crate) fn client(
        &self,
        shown: Option<&Arc<Certificate>>,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.roots());
        let mut config = match shown {
            Some(shown) => builder.with_client_auth_cert(chain(shown), key(shown)).unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// A client that shows a certificate and signs with a key, whether they belong together or not.
    pub(crate) fn client_with_any_key(
        &self,
        shown: &Arc<Certificate>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let signing = aws_lc_rs::sign::any_supported_type(&key(shown)).unwrap();
        let shown = CertifiedKey::new(chain(shown), signing);
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.roots())
            .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        Arc::new(config)
    }
}

fn chain(certificate: &Certificate) -> Vec<CertificateDer<'static>> {
    certificate.chain.iter().cloned().map(CertificateDer::from).collect()
}

fn key(certificate: &Certificate) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(certificate.key.expose().to_vec()).unwrap()
}

/// What a backend heard from the proxy in a handshake.
#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub(crate) name: Option<String>,
    pub(crate) protocol: Option<String>,
    /// The leaf of what it showed.
    pub(crate) shown: Option<Vec<u8>>,
    pub(crate) is_resumed: bool,
}

#[derive(Debug, Default)]
struct Log {
    greetings: Mutex<Vec<Greeting>>,
    failures: Mutex<Vec<String>>,
}

/// TLS in front of a backend that speaks clear text.
#[derive(Debug)]
pub(crate) struct TlsFront {
    pub(crate) address: SocketAddr,
    log: Arc<Log>,
    task: AbortHandle,
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TlsFront {
    /// Terminates TLS before a backend.
    pub(crate) async fn before(backend: SocketAddr, certificate: &Certificate, protocols: &[&str]) -> Self {
        Self::demanding(backend, certificate, protocols, None).await
    }

    /// The same, for those who show a certificate of this authority.
    pub(crate) async fn demanding(
        backend: SocketAddr,
        certificate: &Certificate,
        protocols: &[&str],
        clients: Option<&Ca>,
    ) -> Self {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = match clients {
            Some(ca) => WebPkiClientVerifier::builder_with_provider(Arc::new(ca.roots()), Arc::clone(&provider))
                .build()
                .unwrap(),
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain(certificate), key(certificate))
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Log>::default();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let task = tokio::spawn({
            let log = Arc::clone(&log);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, acceptor.clone(), backend, Arc::clone(&log)));
                }
            }
        });
        Self {
            address,
            log,
            task: task.abort_handle(),
        }
    }

    /// The handshakes that were made.
    pub(crate) fn greetings(&self) -> Vec<Greeting> {
        self.log.greetings.lock().clone()
    }

    /// The handshakes that failed.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.log.failures.lock().clone()
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, backend: SocketAddr, log: Arc<Log>) {
    let mut stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return log.failures.lock().push(error.to_string()),
    };
    let connection = stream.get_ref().1;
    log.greetings.lock().push(Greeting {
        name: connection.server_name().map(str::to_owned),
        protocol: connection
            .alpn_protocol()
            .map(|name| String::from_utf8(name.to_vec()).unwrap()),
        shown: connection.peer_certificates().map(|chain| chain[0].to_vec()),
        is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
    });
    let mut inner = TcpStream::connect(backend).await.unwrap();
    inner.set_nodelay(true).unwrap();
    _ = tokio::io::copy_bidirectional(&mut stream, &mut inner).await;
}
