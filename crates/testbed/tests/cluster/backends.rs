//! Backends of the kinds that the conformance suite has beside HTTP: lines over TCP and TLS, and datagrams.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use gatewright_testbed::certificates::{Authority, KeyKind};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::aws_lc_rs::default_provider,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::{Value, json};

use crate::{
    services::ask,
    world::{Namespace, eventually},
};

const GREETING: &str = "Gateway API Test TCP Server\n";

/// As the suite's `tcp-backend`, with a second container for datagrams on the number of the first one's port.
const MANIFESTS: &str = "
apiVersion: v1
kind: Pod
metadata: { name: both, labels: { app: both } }
spec:
  containers:
  - name: tcp
    image: registry.k8s.io/gateway-api/echo-basic:v1.5.1
    volumeMounts: [{ name: secret-volume, mountPath: /etc/secret-volume }]
    env:
    - { name: POD_NAME, valueFrom: { fieldRef: { fieldPath: metadata.name } } }
    - { name: NAMESPACE, valueFrom: { fieldRef: { fieldPath: metadata.namespace } } }
    - { name: TLS_SERVER_CERT, value: /etc/secret-volume/crt }
    - { name: TLS_SERVER_PRIV_KEY, value: /etc/secret-volume/key }
    - { name: TCP_ECHO_SERVER, value: '1' }
  - name: udp
    image: registry.k8s.io/gateway-api/echo-basic:v1.6.0-dev.2
    env: [{ name: UDP_ECHO_SERVER, value: '1' }, { name: UDP_PORT, value: '3000' }, { name: POD_NAME, value: udp }]
  volumes:
  - name: secret-volume
    secret: { secretName: serving, items: [{ key: tls.crt, path: crt }, { key: tls.key, path: key }] }
---
apiVersion: v1
kind: Service
metadata: { name: both }
spec:
  type: LoadBalancer
  selector: { app: both }
  ports:
  - { name: plain, port: 9300, targetPort: 3000, protocol: TCP }
  - { name: datagrams, port: 9300, targetPort: 3000, protocol: UDP }
  - { name: tls, port: 8443, targetPort: 8443, protocol: TCP }
";

#[test]
fn lines_and_datagrams_share_a_port_number_and_lines_come_over_tls_too() {
    let namespace = Namespace::make("backends");
    let authority = Authority::make().unwrap();
    let identity = authority.issue("abc.example.com", KeyKind::Rsa, 30).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "serving" }, "type": "kubernetes.io/tls",
        "stringData": { "tls.crt": identity.certificate, "tls.key": identity.key },
    });
    namespace.apply(&format!("{MANIFESTS}---\n{secret}\n"));
    let address = namespace.address("both");
    let plain = SocketAddr::new(address, 9300);
    let told = eventually("lines over TCP", || talk(connect(plain)?));
    assert_eq!((&told["pod"], &told["isTLS"]), (&json!("both"), &json!(false)));

    let answer = eventually("an answer over UDP", || ask(plain, b"hello"));
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["pod"], "udp");

    let told = eventually("lines over TLS", || {
        let stream = connect(SocketAddr::new(address, 8443))?;
        talk(secured(stream, &authority, "abc.example.com"))
    });
    assert_eq!((&told["namespace"], &told["isTLS"]), (&json!("backends"), &json!(true)));
    assert_eq!(told["tls"]["serverName"], "abc.example.com");
    assert_eq!(told["tls"]["version"], "TLS 1.3");
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let failed = |error: std::io::Error| error.to_string();
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(failed)?;
    Ok(stream)
}

fn secured(stream: TcpStream, authority: &Authority, name: &'static str) -> impl Read + Write {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    StreamOwned::new(connection, stream)
}

/// Waits for the greeting, then asks what the suite asks.
fn talk(stream: impl Read + Write) -> Result<Value, String> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).map_err(|error| error.to_string())?;
    if line != GREETING {
        return Err(format!("no greeting: {line:?}"));
    }
    let mut say = |word: &str| -> Result<String, String> {
        let mut answer = String::new();
        let failed = |error: std::io::Error| error.to_string();
        stream.get_mut().write_all(word.as_bytes()).map_err(failed)?;
        stream.get_mut().flush().map_err(failed)?;
        stream.read_line(&mut answer).map_err(failed)?;
        Ok(answer)
    };
    assert_eq!(say("PING\n")?, "PONG\n");
    let told = say("TEST\n")?;
    serde_json::from_str(&told).map_err(|_| told)
}
