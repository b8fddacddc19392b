//! A minimal HTTP/1.1 client, with and without TLS.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, pem::PemObject},
};
use serde_json::Value;

/// Nothing that answers takes this long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    body: String,
}

impl Response {
    fn read(text: &str) -> Result<Self, String> {
        let (head, body) = text
            .split_once("\r\n\r\n")
            .ok_or_else(|| format!("no head in {text:?}"))?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Self {
            status: status.ok_or_else(|| format!("no status in {head:?}"))?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    /// The Service whose echo answered.
    pub(crate) fn service(&self) -> String {
        self.echoed("service")
    }

    /// What the echo says about itself or the request.
    pub(crate) fn echoed(&self, field: &str) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body[field].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(crate) fn body(&self) -> &str {
        &self.body
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Result<Response, String> {
    ask(address, path, &address.ip().to_string(), &[])
}

/// Asks for a path of a host, with headers.
pub(crate) fn ask(address: SocketAddr, path: &str, host: &str, headers: &[(&str, &str)]) -> Result<Response, String> {
    let stream = connect(address).map_err(|error| format!("cannot connect to {address}: {error}"))?;
    exchange(stream, path, host, headers).map_err(|error| format!("no answer of {address}: {error}"))?
}

/// The same with TLS, as `localhost`, trusting one certificate.
pub(crate) fn ask_secretly(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    trusted: &str,
) -> Result<Response, String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap())
        .unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = connect(address).map_err(|error| format!("cannot connect to {address}: {error}"))?;
    exchange(StreamOwned::new(connection, stream), path, "localhost", headers)
        .map_err(|error| format!("no answer of {address}: {error}"))?
}

pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn exchange(
    mut stream: impl Read + Write,
    path: &str,
    host: &str,
    headers: &[(&str, &str)],
) -> io::Result<Result<Response, String>> {
    let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers = headers.collect::<Vec<_>>().concat();
    // In one piece, so that it leaves in one.
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes())?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(Response::read(&String::from_utf8_lossy(&text)))
}
