//! The proxies that h2spec judges, each with a configuration that asks the same of it: a port for cleartext and one for TLS,
//! and a route of everything to one backend.

use std::{
    fs,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;
use serde_json::{Value, json};

use crate::{
    load::request,
    peers::{envoy, gatewright},
    process::{Running, free_address},
};

/// How long a program may take until it serves.
const START: Duration = Duration::from_mins(1);

/// Who is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// Ours.
    Gatewright,
    /// Envoy.
    Envoy,
}

impl Proxy {
    /// The name in files.
    pub fn label(self) -> &'static str {
        match self {
            Self::Gatewright => "gatewright",
            Self::Envoy => "envoy",
        }
    }

    /// How long a case waits for something to happen. Ours makes no case wait, so that only a busy machine would feel a short
    /// time; Envoy leaves some thirty cases to it.
    pub(super) fn patience(self) -> Duration {
        match self {
            Self::Gatewright => Duration::from_secs(10),
            Self::Envoy => Duration::from_secs(2),
        }
    }
}

/// A kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// HTTP/2 with prior knowledge, on the port that speaks HTTP/1.1 as well.
    Cleartext,
    /// HTTP/2 by agreement within TLS.
    Tls,
}

impl Security {
    /// All.
    pub const ALL: [Self; 2] = [Self::Cleartext, Self::Tls];

    /// The name in files.
    pub fn label(self) -> &'static str {
        match self {
            Self::Cleartext => "cleartext",
            Self::Tls => "tls",
        }
    }
}

/// The certificate that both have.
pub(super) struct Material {
    certificate: String,
    key: String,
    certificate_file: PathBuf,
    key_file: PathBuf,
}

impl Material {
    pub(super) fn make(folder: &Path) -> anyhow::Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        Ok(Self {
            certificate_file: write(folder, "certificate.pem", &certificate)?,
            key_file: write(folder, "key.pem", &key)?,
            certificate,
            key,
        })
    }
}

/// A proxy that serves.
pub(super) struct Judged {
    cleartext: SocketAddrV4,
    tls: SocketAddrV4,
    _running: Running,
}

impl Judged {
    pub(super) fn address(&self, security: Security) -> SocketAddrV4 {
        match security {
            Security::Cleartext => self.cleartext,
            Security::Tls => self.tls,
        }
    }
}

/// The backend behind both: our echo.
pub(super) fn backend(gatewright: &Path, folder: &Path) -> anyhow::Result<(Running, SocketAddrV4)> {
    let address = free_address()?;
    let mut command = Command::new(gatewright);
    command
        .args(["echo", "--quiet", "--bind-address", &address.ip().to_string()])
        .arg(format!("--service=back={}", address.port()));
    let running = started("backend", &command, address, folder)?;
    Ok((running, address))
}

/// Starts a proxy in front of a backend, and waits until it serves.
pub(super) fn start(
    proxy: Proxy,
    program: &Path,
    backend: SocketAddrV4,
    material: &Material,
    folder: &Path,
) -> anyhow::Result<Judged> {
    let (cleartext, tls) = (free_address()?, free_address()?);
    let command = match proxy {
        Proxy::Gatewright => {
            let folder = folder.join("objects");
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            write(
                &folder,
                "objects.json",
                &objects(cleartext, tls, backend, material).to_string(),
            )?;
            gatewright::serve(program, &folder)
        }
        Proxy::Envoy => {
            let text = bootstrap(cleartext, tls, backend, material).to_string();
            envoy::command(program, &write(folder, "envoy.json", &text)?)
        }
    };
    Ok(Judged {
        cleartext,
        tls,
        _running: started(proxy.label(), &command, cleartext, folder)?,
    })
}

fn started(name: &str, command: &Command, address: SocketAddrV4, folder: &Path) -> anyhow::Result<Running> {
    let mut running = Running::start(name, command, None, folder)?;
    running.wait_until("its first answer", START, || {
        request(address, "localhost", "/").is_ok_and(|code| code == 200)
    })?;
    Ok(running)
}

/// What we are told.
fn objects(cleartext: SocketAddrV4, tls: SocketAddrV4, backend: SocketAddrV4, material: &Material) -> Value {
    let api = "gateway.networking.k8s.io/v1";
    let named = |name: &str| json!({ "name": name, "namespace": "judged" });
    let slice = json!({
        "name": "back", "namespace": "judged", "labels": { "kubernetes.io/service-name": "back" },
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": api, "kind": "GatewayClass", "metadata": { "name": "edge" },
            "spec": { "controllerName": crate::worlds::CONTROLLER },
        },
        {
            "apiVersion": api, "kind": "Gateway", "metadata": named("edge"),
            "spec": { "gatewayClassName": "edge", "listeners": [
                { "name": "http", "port": cleartext.port(), "protocol": "HTTP" },
                {
                    "name": "https", "port": tls.port(), "protocol": "HTTPS",
                    "tls": { "certificateRefs": [{ "name": "edge" }] },
                },
            ] },
        },
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": named("edge"), "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": material.certificate, "tls.key": material.key },
        },
        {
            "apiVersion": api, "kind": "HTTPRoute", "metadata": named("all"),
            "spec": {
                "parentRefs": [{ "name": "edge" }],
                "rules": [{ "backendRefs": [{ "name": "back", "port": 80 }] }],
            },
        },
        {
            "apiVersion": "v1", "kind": "Service", "metadata": named("back"),
            "spec": { "ports": [{ "port": 80 }] },
        },
        {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice, "addressType": "IPv4",
            "endpoints": [{ "addresses": [backend.ip().to_string()], "conditions": { "ready": true } }],
            "ports": [{ "port": backend.port() }],
        },
    ] })
}

/// What Envoy is told.
fn bootstrap(cleartext: SocketAddrV4, tls: SocketAddrV4, backend: SocketAddrV4, material: &Material) -> Value {
    let typed = |name: &str, kind: &str, mut config: Value| {
        if let Some(fields) = config.as_object_mut() {
            fields.insert("@type".to_owned(), format!("type.googleapis.com/{kind}").into());
        }
        json!({ "name": name, "typed_config": config })
    };
    let socket = |address: SocketAddrV4| json!({ "socket_address": { "address": address.ip().to_string(), "port_value": address.port() } });
    let router = typed(
        "envoy.filters.http.router",
        "envoy.extensions.filters.http.router.v3.Router",
        json!({}),
    );
    let manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        json!({
            "stat_prefix": "front",
            // By prior knowledge and by agreement, and HTTP/1.1 beside it.
            "codec_type": "AUTO",
            "use_remote_address": true,
            "route_config": { "virtual_hosts": [{
                "name": "all", "domains": ["*"],
                "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "back" } }],
            }] },
            "http_filters": [router],
        }),
    );
    let secured = typed(
        "envoy.transport_sockets.tls",
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        json!({ "common_tls_context": {
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificates": [{
                "certificate_chain": { "filename": material.certificate_file },
                "private_key": { "filename": material.key_file },
            }],
        } }),
    );
    let listener = |name: &str, address, chain: Value| json!({ "name": name, "address": socket(address), "filter_chains": [chain] });
    json!({ "static_resources": {
        "listeners": [
            listener("http", cleartext, json!({ "filters": [manager] })),
            listener("https", tls, json!({ "filters": [manager], "transport_socket": secured })),
        ],
        "clusters": [{
            "name": "back", "type": "STATIC", "connect_timeout": "5s",
            "load_assignment": { "cluster_name": "back", "endpoints": [{ "lb_endpoints": [
                { "endpoint": { "address": socket(backend) } },
            ] }] },
        }],
    } })
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
