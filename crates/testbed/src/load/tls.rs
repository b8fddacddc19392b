//! Load over TLS: new connections with a full handshake for one small answer each, or a few that carry large answers.
//!
//! Everybody is asked for the same: TLS 1.3, one cipher suite, one key exchange, HTTP/1.1. Nothing is resumed. Runs as a process of
//! its own, called by the benchmarks of TLS.

use std::{
    net::SocketAddrV4,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rustls::{
    ClientConfig, RootCertStore,
    client::Resumption,
    crypto::aws_lc_rs::{cipher_suite::TLS13_AES_128_GCM_SHA256, default_provider, kx_group},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::TLS13,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::streams::Load;
use crate::peers::HOST;

/// Connections at once that are made for one answer.
const SHORT: usize = 16;
/// Connections at once that carry large answers.
const BULK: usize = 4;
/// What is read at once.
const BUFFER: usize = 256 * 1024;
/// Longer than anything takes on a machine that is not stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Asked {
    /// One small answer on each connection.
    Handshakes,
    /// Large answers on a few.
    Bulk,
}

impl Asked {
    /// The name on a command line.
    pub fn label(self) -> &'static str {
        match self {
            Self::Handshakes => "handshakes",
            Self::Bulk => "bulk",
        }
    }
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to connect.
    pub address: SocketAddrV4,
    /// The authority whose certificates are trusted, in a file.
    pub authority: PathBuf,
    /// What is asked for.
    pub asked: Asked,
    /// The path to ask for.
    pub path: String,
    /// For how long.
    pub time: Duration,
}

/// Asks, and counts connections and the bytes of answers' bodies. Fails if any answer is not 200.
pub fn run(plan: &Plan) -> anyhow::Result<Load> {
    let connector = TlsConnector::from(Arc::new(configuration(&plan.authority)?));
    let request: Arc<[u8]> = format!("GET {} HTTP/1.1\r\nhost: {HOST}\r\n\r\n", plan.path)
        .into_bytes()
        .into();
    let (count, is_kept) = match plan.asked {
        Asked::Handshakes => (SHORT, false),
        Asked::Bulk => (BULK, true),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let deadline = Instant::now() + plan.time;
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let client = Client {
                address: plan.address,
                connector: connector.clone(),
                request: Arc::clone(&request),
            };
            tasks.spawn(client.run(is_kept, deadline));
        }
        let mut all = Load::default();
        while let Some(ended) = tasks.join_next().await {
            let ended = ended??;
            all.connections += ended.connections;
            all.bytes += ended.bytes;
        }
        Ok(all)
    })
}

/// One request; for whoever waits for a proxy to serve.
pub fn is_served(address: SocketAddrV4, authority: &Path) -> bool {
    let once = Plan {
        address,
        authority: authority.to_owned(),
        asked: Asked::Handshakes,
        path: "/".to_owned(),
        time: Duration::ZERO,
    };
    run(&once).is_ok()
}

fn configuration(authority: &Path) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)? {
        roots.add(certificate?)?;
    }
    let mut provider = default_provider();
    provider.cipher_suites = vec![TLS13_AES_128_GCM_SHA256];
    provider.kx_groups = vec![kx_group::X25519];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(config)
}

struct Client {
    address: SocketAddrV4,
    connector: TlsConnector,
    request: Arc<[u8]>,
}

impl Client {
    /// Asks again and again until the time is up, and at least once.
    async fn run(self, is_kept: bool, deadline: Instant) -> anyhow::Result<Load> {
        let mut load = Load::default();
        let mut buffer = vec![0; BUFFER];
        let mut kept = None;
        loop {
            let mut stream = if let Some(stream) = kept.take() {
                stream
            } else {
                load.connections += 1;
                timeout(PATIENCE, self.connect()).await.context("no handshake")??
            };
            load.bytes += timeout(PATIENCE, self.ask(&mut stream, &mut buffer))
                .await
                .context("no answer")??;
            if is_kept {
                kept = Some(stream);
            } else {
                // The answer is there; how the other side takes the farewell is not measured.
                let _ = stream.shutdown().await;
            }
            if Instant::now() >= deadline {
                return Ok(load);
            }
        }
    }

    async fn connect(&self) -> anyhow::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(self.connector.connect(ServerName::try_from(HOST)?, stream).await?)
    }

    /// Asks once, and returns how long the body was.
    async fn ask(&self, stream: &mut TlsStream<TcpStream>, buffer: &mut [u8]) -> anyhow::Result<u64> {
        stream.write_all(&self.request).await?;
        stream.flush().await?;
        let mut filled = 0;
        let (head, length) = loop {
            let rest = buffer.get_mut(filled..).unwrap_or_default();
            let count = stream.read(rest).await?;
            ensure!(count > 0, "a connection was closed");
            filled += count;
            if let Some(found) = super::head(buffer.get(..filled).unwrap_or_default())? {
                break found;
            }
        };
        let mut missing = (head + length).saturating_sub(filled);
        while missing > 0 {
            let count = stream.read(buffer).await?;
            ensure!(count > 0, "a connection was closed within an answer");
            missing = missing.saturating_sub(count);
        }
        Ok(u64::try_from(length)?)
    }
}
