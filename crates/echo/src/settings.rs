//! What one echo backend is told before it starts.
//!
//! Filled by the binary from its environment ([`EchoSettings::from_env`], the variables of the conformance contract) or
//! by tests with [`EchoSettings::local`] and the `with_` functions. Knows nothing of sockets.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use serde::Serialize;

use crate::{EchoError, TlsMaterial};

#[cfg(test)]
mod tests;

/// Where the lines go that the contract wants on stdout; called with one line, without its end.
pub type LineSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Which protocol a backend speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    /// HTTP/1, HTTP/2, WebSocket, HTTPS.
    Http,
    /// Unary gRPC.
    Grpc,
    /// Lines over TCP or TLS.
    Tcp,
    /// Datagrams.
    Udp,
}

/// Who answers: repeated in every answer, so that a test knows which backend was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The namespace of the pod.
    pub namespace: String,
    /// The ingress the pod was made for.
    pub ingress: String,
    /// The service the pod belongs to.
    pub service: String,
    /// The name of the pod.
    pub pod: String,
}

/// One echo backend.
#[derive(Clone)]
pub struct EchoSettings {
    /// The protocol.
    pub mode: EchoMode,
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The main port; 0 lets the system choose.
    pub port: u16,
    /// The port for HTTP/2 with prior knowledge, in HTTP mode; none if absent.
    pub h2c_port: Option<u16>,
    /// The port for TLS, opened only if `tls` is given.
    pub tls_port: u16,
    /// Certificate and key.
    pub tls: Option<TlsMaterial>,
    /// What the answers say about the backend.
    pub identity: Identity,
    /// Where lines go.
    pub lines: Option<LineSink>,
    /// How long open connections may finish after a stop.
    pub drain_timeout: Duration,
}

impl EchoSettings {
    /// A backend on 127.0.0.1 with ports chosen by the system.
    pub fn local(mode: EchoMode) -> Self {
        Self {
            mode,
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            h2c_port: Some(0),
            tls_port: 0,
            tls: None,
            identity: Identity::default(),
            lines: None,
            drain_timeout: Duration::from_secs(5),
        }
    }

    /// The backend that the process environment describes.
    pub fn from_env() -> Result<Self, EchoError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// The backend that the given variables describe; an empty variable counts as absent.
    pub fn from_lookup(lookup: impl Fn(&'static str) -> Option<String>) -> Result<Self, EchoError> {
        let lookup = |name| lookup(name).filter(|value| !value.is_empty());
        let mode = if lookup("GRPC_ECHO_SERVER").is_some() {
            EchoMode::Grpc
        } else if lookup("TCP_ECHO_SERVER").is_some() {
            EchoMode::Tcp
        } else if lookup("UDP_ECHO_SERVER").is_some() {
            EchoMode::Udp
        } else {
            EchoMode::Http
        };
        let (port, tls_port, key_name) = match mode {
            // The contract spells the key's variable differently in its servers.
            EchoMode::Http => (("HTTP_PORT", 3000), ("HTTPS_PORT", 8443), "TLS_SERVER_PRIVKEY"),
            EchoMode::Grpc => (("HTTP_PORT", 3000), ("HTTPS_PORT", 8443), "TLS_SERVER_PRIV_KEY"),
            EchoMode::Tcp => (("TCP_PORT", 3000), ("TLS_PORT", 8443), "TLS_SERVER_PRIV_KEY"),
            EchoMode::Udp => (("UDP_PORT", 8080), ("TLS_PORT", 8443), "TLS_SERVER_PRIV_KEY"),
        };
        let bind_address = match lookup("BIND_ADDRESS") {
            None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Some(value) => value.parse().map_err(|_| EchoError::Variable {
                name: "BIND_ADDRESS",
                value,
                expected: "an IP address",
            })?,
        };
        Ok(Self {
            mode,
            bind_address,
            port: port_from(&lookup, port)?,
            h2c_port: Some(port_from(&lookup, ("H2C_PORT", 3001))?),
            tls_port: port_from(&lookup, tls_port)?,
            tls: tls_from(&lookup, key_name)?,
            identity: Identity {
                namespace: lookup("NAMESPACE").unwrap_or_default(),
                ingress: lookup("INGRESS_NAME").unwrap_or_default(),
                service: lookup("SERVICE_NAME").unwrap_or_default(),
                pod: lookup("POD_NAME").unwrap_or_default(),
            },
            lines: None,
            drain_timeout: Duration::from_secs(5),
        })
    }

    /// Names the backend: the answers carry the service name, and the pod `<name>-0`.
    #[must_use]
    pub fn with_service(mut self, name: &str) -> Self {
        name.clone_into(&mut self.identity.service);
        self.identity.pod = format!("{name}-0");
        self
    }

    /// Sets everything the answers say about the backend.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// Sets address and main port.
    #[must_use]
    pub fn with_address(mut self, bind_address: IpAddr, port: u16) -> Self {
        self.bind_address = bind_address;
        self.port = port;
        self
    }

    /// Sets or removes the port for HTTP/2 with prior knowledge.
    #[must_use]
    pub fn with_h2c_port(mut self, port: Option<u16>) -> Self {
        self.h2c_port = port;
        self
    }

    /// Opens the TLS port.
    #[must_use]
    pub fn with_tls(mut self, port: u16, material: TlsMaterial) -> Self {
        self.tls_port = port;
        self.tls = Some(material);
        self
    }

    /// Sets where lines go.
    #[must_use]
    pub fn with_lines(mut self, lines: LineSink) -> Self {
        self.lines = Some(lines);
        self
    }

    /// Sets how long open connections may finish after a stop.
    #[must_use]
    pub fn with_drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }
}

impl fmt::Debug for EchoSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EchoSettings")
            .field("mode", &self.mode)
            .field("bind_address", &self.bind_address)
            .field("port", &self.port)
            .field("h2c_port", &self.h2c_port)
            .field("tls_port", &self.tls_port)
            .field("tls", &self.tls)
            .field("identity", &self.identity)
            .field("lines", &self.lines.is_some())
            .field("drain_timeout", &self.drain_timeout)
            .finish()
    }
}

fn port_from(
    lookup: &impl Fn(&'static str) -> Option<String>,
    (name, default): (&'static str, u16),
) -> Result<u16, EchoError> {
    match lookup(name) {
        None => Ok(default),
        Some(value) => value.parse().map_err(|_| EchoError::Variable {
            name,
            value,
            expected: "a port number",
        }),
    }
}

fn tls_from(
    lookup: &impl Fn(&'static str) -> Option<String>,
    key_name: &'static str,
) -> Result<Option<TlsMaterial>, EchoError> {
    let (Some(certificate), Some(key)) = (lookup("TLS_SERVER_CERT"), lookup(key_name)) else {
        return Ok(None);
    };
    Ok(Some(TlsMaterial {
        certificate_chain: read("TLS_SERVER_CERT", certificate)?,
        private_key: read(key_name, key)?,
        client_authorities: match lookup("TLS_CLIENT_CACERTS") {
            None => None,
            Some(path) => Some(read("TLS_CLIENT_CACERTS", path)?),
        },
    }))
}

fn read(name: &'static str, path: String) -> Result<Vec<u8>, EchoError> {
    let path = PathBuf::from(path);
    std::fs::read(&path).map_err(|source| EchoError::File { name, path, source })
}
