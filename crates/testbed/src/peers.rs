//! The proxies that are compared, each with a configuration that asks the same of it.
//!
//! One worker, upstream connections kept open, no access log, routing by host and path, and `X-Forwarded-For`, `-Proto` and
//! `-Host` for the backend. Every configuration is a type that renders itself, so that what was measured can be read here.

pub mod envoy;
pub mod gatewright;
pub mod haproxy;
pub mod nginx;

use std::{
    fs,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;

use crate::{
    load::request,
    process::{Running, free_address},
    programs::Programs,
};

/// The host that every proxy routes by.
pub const HOST: &str = "bench.example.com";

/// How long a program may take until it serves.
const START: Duration = Duration::from_mins(1);

/// A proxy of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Peer {
    /// Ours.
    Gatewright,
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Envoy.
    Envoy,
}

impl Peer {
    /// All, in the order in which they take turns.
    pub const ALL: [Peer; 4] = [Peer::Gatewright, Peer::Nginx, Peer::Haproxy, Peer::Envoy];

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gatewright => "Gatewright",
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Envoy => "Envoy",
        }
    }

    /// The name in figures and files.
    pub fn label(self) -> &'static str {
        match self {
            Self::Gatewright => "gatewright",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
        }
    }

    /// Starts the proxy in front of a backend, and waits until it serves.
    pub fn start(
        self,
        programs: &Programs,
        backend: SocketAddrV4,
        core: usize,
        folder: &Path,
    ) -> anyhow::Result<Server> {
        let address = free_address()?;
        let command = match self {
            Self::Gatewright => {
                let objects = gatewright::objects(address, backend);
                gatewright::command(&programs.gatewright, &objects, &folder.join("gatewright"))?
            }
            Self::Nginx => {
                let text = nginx::Proxy { address, backend }.to_string();
                nginx::command(&programs.nginx, &text, &folder.join("nginx-proxy"))?
            }
            Self::Haproxy => {
                let text = haproxy::Proxy { address, backend }.to_string();
                haproxy::command(&programs.haproxy, &text, folder, "haproxy.cfg")?
            }
            Self::Envoy => {
                let file = write(folder, "envoy.json", &envoy::Proxy { address, backend }.render()?)?;
                envoy::command(&programs.envoy, &file)
            }
        };
        Server::start(self.label(), &command, core, address, folder)
    }
}

/// Where connections that are passed on as a whole end.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    /// Those without end.
    pub bulk: SocketAddrV4,
    /// Those with a line.
    pub line: SocketAddrV4,
}

impl Streams {
    /// The name by which those without end are asked for.
    pub const BULK_NAME: &str = "bulk.bench.example.com";
    /// The name by which those with a line are asked for.
    pub const LINE_NAME: &str = "line.bench.example.com";
}

/// A program that serves.
#[derive(Debug)]
pub struct Server {
    /// Where.
    pub address: SocketAddrV4,
    running: Running,
}

impl Server {
    /// Starts the backend behind every proxy.
    pub fn backend(programs: &Programs, core: usize, folder: &Path) -> anyhow::Result<Self> {
        let address = free_address()?;
        let command = nginx::backend(&programs.nginx, address, &folder.join("nginx-backend"))?;
        Self::start("backend", &command, core, address, folder)
    }

    /// Starts a program and waits until it answers 200 for the root path.
    pub fn start(
        name: &str,
        command: &Command,
        core: usize,
        address: SocketAddrV4,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_for(name, command, core, address, "/", folder)
    }

    /// Starts a program and waits until it answers 200 for a path.
    pub fn start_for(
        name: &str,
        command: &Command,
        core: usize,
        address: SocketAddrV4,
        path: &str,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_until(name, command, core, address, folder, || {
            request(address, HOST, path).is_ok_and(|code| code == 200)
        })
    }

    /// Starts a program and waits until it serves, by whatever is said to show it.
    pub fn start_until(
        name: &str,
        command: &Command,
        core: usize,
        address: SocketAddrV4,
        folder: &Path,
        is_served: impl FnMut() -> bool,
    ) -> anyhow::Result<Self> {
        let mut running = Running::start(name, command, Some(core), folder)?;
        running.wait_until("its first answer", START, is_served)?;
        Ok(Self { address, running })
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.running.id()
    }
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
