//! Connections that a proxy passes on as a whole: a few that carry all they can, or many that carry one line each.
//!
//! The other end is [`backend`], which sends by itself, so that nothing of a protocol above is measured. A connection may open with
//! a client's first message of TLS, for proxies that choose by the name in it; they look no further. Runs as a process of its own, called
//! by the benchmarks of connections.

pub mod backend;

use std::{
    net::SocketAddrV4,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore,
    crypto::aws_lc_rs::{default_provider, kx_group},
    pki_types::ServerName,
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

/// Connections that carry all they can, at once.
const BULK: usize = 8;
/// Connections that carry a line, at once.
const SHORT: usize = 32;
/// What is read at once.
const BUFFER: usize = 256 * 1024;
/// Longer than anything takes on a machine that is not stuck.
const PATIENCE: Duration = Duration::from_secs(10);

/// What connections carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Carried {
    /// All they can.
    Bulk,
    /// One line each.
    Line,
}

impl Carried {
    /// The name on a command line.
    pub fn label(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Line => "line",
        }
    }
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to connect.
    pub address: SocketAddrV4,
    /// The name to open with, as a client of TLS would; nothing is sent without one.
    pub name: Option<String>,
    /// What is carried.
    pub carried: Carried,
    /// For how long.
    pub time: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Connections that were made and used.
    pub connections: u64,
    /// Bytes that were received.
    pub bytes: u64,
}

impl Load {
    fn add(&mut self, other: Load) {
        self.connections += other.connections;
        self.bytes += other.bytes;
    }
}

/// Connects, and counts. Fails if anything else comes than what the backend sends.
pub fn run(plan: &Plan) -> anyhow::Result<Load> {
    let opening = plan.name.as_deref().map(client_hello).transpose()?.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let opening: Arc<[u8]> = opening.into();
        let deadline = Instant::now() + plan.time;
        let mut tasks = JoinSet::new();
        match plan.carried {
            Carried::Bulk => {
                for _ in 0..BULK {
                    tasks.spawn(receive(plan.address, Arc::clone(&opening), deadline));
                }
            }
            Carried::Line => {
                for _ in 0..SHORT {
                    tasks.spawn(lines(plan.address, Arc::clone(&opening), deadline));
                }
            }
        }
        let mut all = Load::default();
        while let Some(ended) = tasks.join_next().await {
            all.add(ended??);
        }
        Ok(all)
    })
}

/// One connection with one line; for whoever waits for a proxy to serve.
pub fn is_served(address: SocketAddrV4, name: Option<&str>) -> bool {
    let once = Plan {
        address,
        name: name.map(str::to_owned),
        carried: Carried::Line,
        time: Duration::ZERO,
    };
    run(&once).is_ok_and(|load| load.connections > 0)
}

/// Receives over one connection until the time is up.
async fn receive(address: SocketAddrV4, opening: Arc<[u8]>, deadline: Instant) -> anyhow::Result<Load> {
    let mut stream = open(address, &opening).await?;
    let mut buffer = vec![0; BUFFER];
    let mut load = Load {
        connections: 1,
        bytes: 0,
    };
    while Instant::now() < deadline {
        let count = timeout(PATIENCE, stream.read(&mut buffer))
            .await
            .context("nothing comes")??;
        ensure!(count > 0, "a connection was closed");
        let received = buffer.get(..count).unwrap_or_default();
        // Looking at all of it would be measured, too.
        ensure!(
            received.first() == Some(&backend::BYTE) && received.last() == Some(&backend::BYTE),
            "what came is not what was sent"
        );
        load.bytes += u64::try_from(count)?;
    }
    Ok(load)
}

/// Makes one connection after the other until the time is up, and at least one.
async fn lines(address: SocketAddrV4, opening: Arc<[u8]>, deadline: Instant) -> anyhow::Result<Load> {
    let mut load = Load::default();
    let mut line = Vec::new();
    loop {
        let mut stream = open(address, &opening).await?;
        line.clear();
        // One byte more would show that it is no line.
        let mut limited = (&mut stream).take(u64::try_from(backend::LINE.len())? + 1);
        timeout(PATIENCE, limited.read_to_end(&mut line))
            .await
            .context("no line comes")??;
        ensure!(
            line == backend::LINE,
            "what came is not the line: {}",
            String::from_utf8_lossy(&line)
        );
        load.connections += 1;
        load.bytes += u64::try_from(line.len())?;
        if Instant::now() >= deadline {
            return Ok(load);
        }
    }
}

async fn open(address: SocketAddrV4, opening: &[u8]) -> anyhow::Result<TcpStream> {
    let mut stream = timeout(PATIENCE, TcpStream::connect(address))
        .await
        .context("nobody takes the connection")??;
    stream.set_nodelay(true)?;
    stream.write_all(opening).await?;
    Ok(stream)
}

/// The first message of a client that asks for a name, with a key share as today's browsers send it, which makes it long.
fn client_hello(name: &str) -> anyhow::Result<Vec<u8>> {
    let mut provider = default_provider();
    provider.kx_groups = vec![kx_group::X25519MLKEM768, kx_group::X25519];
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut connection = ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned())?)?;
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use super::{Carried, Plan, backend, client_hello, run};
    use crate::process::free_address;

    #[test]
    fn what_the_backend_sends_is_counted_with_and_without_an_opening() {
        let (bulk, line) = (free_address().unwrap(), free_address().unwrap());
        thread::spawn(move || backend::serve(bulk, line));
        for name in [None, Some("bench.example.com".to_owned())] {
            let plan = |address, carried| Plan {
                address,
                name: name.clone(),
                carried,
                time: Duration::from_millis(50),
            };
            while std::net::TcpStream::connect(line).is_err() {
                thread::yield_now();
            }
            let lines = run(&plan(line, Carried::Line)).unwrap();
            assert_eq!(lines.bytes, lines.connections * backend::LINE.len() as u64);
            assert!(lines.connections >= 32, "{lines:?}");
            let bulk_load = run(&plan(bulk, Carried::Bulk)).unwrap();
            assert!(bulk_load.connections == 8 && bulk_load.bytes > 1 << 20, "{bulk_load:?}");
            assert!(run(&plan(bulk, Carried::Line)).is_err(), "that is no line");
        }
    }

    #[test]
    fn a_client_with_a_long_key_share_asks_for_the_name() {
        let hello = client_hello("bench.example.com").unwrap();
        assert!(hello.len() > 1_200, "{}", hello.len());
        let name = b"bench.example.com";
        assert!(hello.windows(name.len()).any(|window| window == name));
    }
}
