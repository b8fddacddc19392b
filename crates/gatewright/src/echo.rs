//! `gatewright echo`: the echo backend as a process, or several named ones in one.
//!
//! Without `--service` it is the backend that the environment describes, which is the contract of Gateway API's conformance
//! suite. With it, each service listens on a port of its own and everything else comes from the environment.

use std::fmt::Write as _;
use std::{net::IpAddr, process::ExitCode, str::FromStr, sync::Arc};

use clap::Args;
use gatewright_echo::{EchoError, EchoMode, EchoServer, EchoSettings};

use crate::{failure::Failure, run::block_on, signals::Signals, ui};

/// The arguments of `echo`.
#[derive(Args)]
pub(crate) struct EchoArgs {
    /// A service to answer as, on a port of its own; may be given several times
    #[arg(long = "service", value_name = "NAME=PORT")]
    services: Vec<NamedService>,
    /// Where to listen; else BIND_ADDRESS, else all addresses
    #[arg(long, value_name = "IP")]
    bind_address: Option<IpAddr>,
    /// What to speak: http, grpc, tcp or udp; else what the environment says
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    mode: Option<EchoMode>,
    /// The main port; else HTTP_PORT, TCP_PORT or UDP_PORT, else 3000 (UDP 8080)
    #[arg(long, value_name = "PORT", conflicts_with = "services")]
    port: Option<u16>,
    /// Do not print a line per request
    #[arg(long, short)]
    quiet: bool,
}

/// A name and a port.
#[derive(Clone, Debug)]
pub(crate) struct NamedService {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl FromStr for NamedService {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (name, port) = text.split_once('=')?;
            let port = port.parse().ok()?;
            (!name.is_empty()).then(|| Self {
                name: name.to_owned(),
                port,
            })
        };
        read().ok_or_else(|| "write NAME=PORT, for example cart=9001".to_owned())
    }
}

fn parse_mode(text: &str) -> Result<EchoMode, String> {
    match text {
        "http" => Ok(EchoMode::Http),
        "grpc" => Ok(EchoMode::Grpc),
        "tcp" => Ok(EchoMode::Tcp),
        "udp" => Ok(EchoMode::Udp),
        _ => Err("write http, grpc, tcp or udp".to_owned()),
    }
}

/// Serves until a signal ends it.
pub(crate) fn run(args: &EchoArgs) -> Result<ExitCode, Failure> {
    let all = settings(args)?;
    block_on(async {
        let mut signals = Signals::catch()?;
        let mut servers = Vec::new();
        for settings in all {
            servers.push(start(settings).await?);
        }
        signals.stop().await;
        for server in servers {
            server.stop().await;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn settings(args: &EchoArgs) -> Result<Vec<EchoSettings>, Failure> {
    let mut base = EchoSettings::from_env().map_err(|error| Failure::usage(error.to_string()))?;
    if let Some(mode) = args.mode {
        base.mode = mode;
    }
    if let Some(address) = args.bind_address {
        base.bind_address = address;
    }
    if let Some(port) = args.port {
        base.port = port;
    }
    if !args.quiet {
        base = base.with_lines(Arc::new(ui::data));
    }
    if args.services.is_empty() {
        return Ok(vec![base]);
    }
    // Named services share the process: the ports that the environment names can belong to only one of them.
    let named = args.services.iter().map(|service| {
        let mut settings = base.clone().with_service(&service.name).with_h2c_port(None);
        settings.port = service.port;
        settings.tls = None;
        settings
    });
    Ok(named.collect())
}

/// Starts a backend and says where it listens.
pub(crate) async fn start(settings: EchoSettings) -> Result<EchoServer, Failure> {
    let name = settings.identity.service.clone();
    let server = EchoServer::start(settings).await.map_err(|error| {
        let failure = Failure::new(format!("echo {name}: {error}"));
        match error {
            EchoError::Listen { .. } => failure.hint("free the port: another echo or demo may be running"),
            EchoError::Variable { .. } | EchoError::File { .. } | EchoError::Tls(_) => failure,
        }
    })?;
    let addresses = server.addresses;
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(" {name}")
    };
    let mut line = format!("echo{name} listens on {}", addresses.plain);
    if let Some(address) = addresses.h2c {
        let _ = write!(line, ", {address} (HTTP/2)");
    }
    if let Some(address) = addresses.tls {
        let _ = write!(line, ", {address} (TLS)");
    }
    ui::data(&line);
    Ok(server)
}
