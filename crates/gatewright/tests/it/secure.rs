//! An authority for tests, what it signs, and a client that believes it.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{PrivateKeyDer, ServerName},
};

use crate::process::DEADLINE;

/// An authority.
pub(crate) struct Authority {
    pub(crate) certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(parameters, key),
        }
    }

    pub(crate) fn sign(&self, name: &str) -> Identity {
        let parameters = CertificateParams::new([name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate, key }
    }

    /// A client that believes this authority, and shows who it is if it has a certificate.
    pub(crate) fn client(&self, identity: Option<&Identity>) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                builder
                    .with_client_auth_cert(vec![certificate.der().clone()], key)
                    .unwrap()
            }
        };
        Client(Arc::new(config))
    }
}

impl Identity {
    /// A Secret with it.
    pub(crate) fn secret(&self, namespace: &str, name: &str) -> String {
        let (chain, key) = (indented(&self.certificate.pem()), indented(&self.key.serialize_pem()));
        format!(
            "---
apiVersion: v1
kind: Secret
metadata: {{name: {name}, namespace: {namespace}}}
type: kubernetes.io/tls
stringData:
  tls.crt: |
{chain}  tls.key: |
{key}"
        )
    }
}

/// A text as the lines of a block in YAML.
pub(crate) fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}\n")).collect();
    lines.concat()
}

/// A client.
pub(crate) struct Client(Arc<ClientConfig>);

impl Client {
    /// Sends this to whoever has the name, and reads the answer up to a limit, or to the end. None if anything goes wrong.
    pub(crate) fn ask(&self, port: u16, name: &str, question: &str, most: u64) -> Option<String> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), DEADLINE).ok()?;
        stream.set_read_timeout(Some(DEADLINE)).ok()?;
        let name = ServerName::try_from(name.to_owned()).ok()?;
        let connection = ClientConnection::new(Arc::clone(&self.0), name).ok()?;
        let mut stream = StreamOwned::new(connection, stream);
        stream.write_all(question.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.take(most).read_to_string(&mut answer).ok()?;
        Some(answer).filter(|answer| !answer.is_empty())
    }

    /// Asks for `/` by HTTP; gives the status.
    pub(crate) fn get(&self, port: u16, name: &str) -> Option<u16> {
        let question = format!("GET / HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n");
        let answer = self.ask(port, name, &question, 1024)?;
        answer.split(' ').nth(1)?.parse().ok()
    }
}
