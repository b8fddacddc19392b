//! sslyze, which judges how a server does TLS, run against our proxy.
//!
//! `tests/cluster/sslyze.rs` calls [`judge`] and demands that Mozilla's "intermediate" configuration is kept. sslyze is the published one, from
//! its Python package. It is given the authority of our certificates, for whom the public trusts is not what is judged.

mod program;
mod scan;

use std::{
    fs,
    net::{SocketAddrV4, TcpStream},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::Context;
use serde_json::{Value, json};

pub use self::scan::Scan;
use crate::{
    certificates::{Authority, Identity, KeyKind},
    peers::gatewright,
    process::{Running, free_address},
};

/// What a certificate may last at most, by the configuration that is judged.
const LONGEST: i32 = 366;
/// How long the program may take until it serves.
const START: Duration = Duration::from_mins(1);

/// What is served where it is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// A certificate as it should be, with an ECDSA key.
    Ecdsa,
    /// A certificate as it should be, with an RSA key.
    Rsa,
    /// A certificate that lasts longer than it may: what sslyze must find wrong.
    LongLived,
}

impl Served {
    /// All.
    pub const ALL: [Self; 3] = [Self::Ecdsa, Self::Rsa, Self::LongLived];

    fn label(self) -> &'static str {
        match self {
            Self::Ecdsa => "ecdsa",
            Self::Rsa => "rsa",
            Self::LongLived => "long-lived",
        }
    }

    fn identity(self, authority: &Authority) -> anyhow::Result<Identity> {
        match self {
            Self::Ecdsa => authority.issue("localhost", KeyKind::Ecdsa, LONGEST - 1),
            Self::Rsa => authority.issue("localhost", KeyKind::Rsa, LONGEST - 1),
            Self::LongLived => authority.issue("localhost", KeyKind::Ecdsa, 2 * LONGEST),
        }
    }
}

/// Scans an HTTPS listener for each kind of certificate. Files are kept in `folder`.
pub fn judge(gatewright: &Path, folder: &Path) -> anyhow::Result<Vec<(Served, Scan)>> {
    let sslyze = program::find()?;
    let authority = Authority::make()?;
    let authority_file = folder.join("authority.pem");
    fs::write(&authority_file, authority.pem())?;
    let mut listeners = Vec::new();
    for served in Served::ALL {
        listeners.push((served, free_address()?, served.identity(&authority)?));
    }
    let served = folder.join("objects");
    fs::create_dir_all(&served)?;
    fs::write(served.join("objects.json"), objects(&listeners).to_string())?;
    let command = gatewright::serve(gatewright, &served);
    let mut running = Running::start("gatewright", &command, None, folder)?;
    for (_, address, _) in &listeners {
        running.wait_until("an open port", START, || TcpStream::connect(address).is_ok())?;
    }
    // Each takes some seconds, most of which it waits.
    thread::scope(|scope| {
        let scan = |address: &SocketAddrV4| scan::run(&sslyze, *address, &authority_file);
        let scans: Vec<_> = listeners
            .iter()
            .map(|(served, address, _)| (*served, scope.spawn(move || scan(address))))
            .collect();
        let ended = scans.into_iter().map(|(served, thread)| {
            let scan = thread.join().ok().context("a thread panicked")??;
            Ok((served, scan))
        });
        ended.collect()
    })
}

/// A Gateway with a listener for each certificate, and a route that needs no backend.
fn objects(listeners: &[(Served, SocketAddrV4, Identity)]) -> Value {
    let api = "gateway.networking.k8s.io/v1";
    let named = |name: &str| json!({ "name": name, "namespace": "judged" });
    let listener = |(served, address, _): &(Served, SocketAddrV4, Identity)| {
        json!({
            "name": served.label(), "port": address.port(), "protocol": "HTTPS",
            "tls": { "certificateRefs": [{ "name": served.label() }] },
        })
    };
    let secret = |(served, _, identity): &(Served, SocketAddrV4, Identity)| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": named(served.label()), "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": identity.certificate, "tls.key": identity.key },
        })
    };
    let mut items = vec![
        json!({
            "apiVersion": api, "kind": "GatewayClass", "metadata": { "name": "edge" },
            "spec": { "controllerName": crate::worlds::CONTROLLER },
        }),
        json!({
            "apiVersion": api, "kind": "Gateway", "metadata": named("edge"),
            "spec": { "gatewayClassName": "edge", "listeners": listeners.iter().map(listener).collect::<Vec<_>>() },
        }),
        json!({
            "apiVersion": api, "kind": "HTTPRoute", "metadata": named("all"),
            "spec": {
                "parentRefs": [{ "name": "edge" }],
                "rules": [{ "filters": [{ "type": "RequestRedirect", "requestRedirect": { "hostname": "example.com" } }] }],
            },
        }),
    ];
    items.extend(listeners.iter().map(secret));
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}
