//! Clients and certificates for the tests. Every wait has a deadline.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use gatewright_echo::{EchoMode, EchoServer, EchoSettings, TlsMaterial};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    body::{Body, Incoming},
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Far above what anything here takes; reached only by a test that hangs.
const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) type SentBody = UnsyncBoxBody<Bytes, std::convert::Infallible>;

pub(crate) async fn within_deadline<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future)
        .await
        .expect("the deadline passed")
}

/// A named HTTP backend without TLS.
pub(crate) async fn http_server() -> EchoServer {
    start(EchoSettings::local(EchoMode::Http).with_service("cart")).await
}

pub(crate) async fn start(settings: EchoSettings) -> EchoServer {
    EchoServer::start(settings).await.unwrap()
}

/// Everything the backend sends in answer to these bytes, until it closes.
pub(crate) async fn raw(address: SocketAddr, request: &str) -> String {
    within_deadline(async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    })
    .await
}

/// A whole answer.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) async fn of(response: Response<Incoming>) -> Result<Self, hyper::Error> {
        let (head, body) = response.into_parts();
        let collected = within_deadline(body.collect()).await?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        Ok(Self {
            status: head.status,
            headers: head.headers,
            body: collected.to_bytes(),
            trailers,
        })
    }
}

/// One connection to a backend, kept alive between requests.
pub(crate) enum Client {
    One(http1::SendRequest<SentBody>),
    Two(http2::SendRequest<SentBody>),
}

impl Client {
    pub(crate) async fn http1(address: SocketAddr) -> Self {
        Self::http1_over(TcpStream::connect(address).await.unwrap()).await
    }

    pub(crate) async fn http1_over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        Self::One(sender)
    }

    pub(crate) async fn http2(address: SocketAddr) -> Self {
        Self::http2_over(TcpStream::connect(address).await.unwrap()).await
    }

    pub(crate) async fn http2_over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self::Two(sender)
    }

    pub(crate) async fn response(&mut self, request: Request<SentBody>) -> Result<Response<Incoming>, hyper::Error> {
        within_deadline(async {
            match self {
                Self::One(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Self::Two(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
            }
        })
        .await
    }

    pub(crate) async fn send(&mut self, request: Request<SentBody>) -> Result<Reply, hyper::Error> {
        Reply::of(self.response(request).await?).await
    }

    pub(crate) async fn get(&mut self, target: &str) -> Reply {
        let request = match self {
            Self::One(_) => Request::get(target).header("host", "shop.example"),
            Self::Two(_) => Request::get(format!("http://shop.example{target}")),
        };
        self.send(request.body(empty()).unwrap()).await.unwrap()
    }

    /// Completes when the backend has closed the connection.
    pub(crate) async fn closed(&mut self) {
        within_deadline(async {
            match self {
                Self::One(sender) => {
                    while sender.ready().await.is_ok() && !sender.is_closed() {
                        tokio::task::yield_now().await;
                    }
                }
                Self::Two(sender) => {
                    while sender.ready().await.is_ok() && !sender.is_closed() {
                        tokio::task::yield_now().await;
                    }
                }
            }
        })
        .await;
    }
}

/// One GET on a connection of its own.
pub(crate) async fn get(address: SocketAddr, target: &str) -> Reply {
    Client::http1(address).await.get(target).await
}

pub(crate) fn empty() -> SentBody {
    full("")
}

pub(crate) fn full(body: impl Into<Bytes>) -> SentBody {
    Full::new(body.into()).boxed_unsync()
}

pub(crate) fn sent(body: impl Body<Data = Bytes, Error = std::convert::Infallible> + Send + 'static) -> SentBody {
    body.boxed_unsync()
}

/// A certificate authority and what it signed.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    pub(crate) backend: TlsMaterial,
    pub(crate) client_certificate: String,
    pub(crate) client_key: String,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let signed = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let certificate = CertificateParams::new(vec![name.to_owned()])
                .unwrap()
                .signed_by(&key, &issuer)
                .unwrap();
            (certificate.pem(), key.serialize_pem())
        };
        let (certificate_chain, private_key) = signed("shop.example");
        let (client_certificate, client_key) = signed("visitor");
        Self {
            authority: issuer.pem(),
            backend: TlsMaterial {
                certificate_chain: certificate_chain.into_bytes(),
                private_key: private_key.into_bytes(),
                client_authorities: None,
            },
            client_certificate,
            client_key,
        }
    }

    pub(crate) fn verifying_clients(&self) -> TlsMaterial {
        TlsMaterial {
            client_authorities: Some(self.authority.clone().into_bytes()),
            ..self.backend.clone()
        }
    }

    /// Connects, offering these protocols; with the client certificate if asked.
    pub(crate) async fn connect(
        &self,
        address: SocketAddr,
        protocols: &[&str],
        shows_certificate: bool,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.authority.as_bytes()).unwrap())
            .unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = if shows_certificate {
            let chain = vec![CertificateDer::from_pem_slice(self.client_certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(self.client_key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        } else {
            builder.with_no_client_auth()
        };
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("shop.example").unwrap();
        within_deadline(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
    }
}
