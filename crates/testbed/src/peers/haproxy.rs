//! HAProxy's configuration.

use std::{fmt, net::SocketAddrV4, path::Path, process::Command};

use super::{HOST, Streams};

/// A reverse proxy.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Where requests go.
    pub backend: SocketAddrV4,
}

impl fmt::Display for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, backend } = self;
        write!(
            out,
            "\
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend front
    bind {address}
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    use_backend back if {{ hdr(host) -i {HOST} }} {{ path_beg / }}
backend back
    server one {backend}
"
        )
    }
}

/// A proxy that passes connections on by port.
#[derive(Clone, Copy, Debug)]
pub struct Tcp {
    /// Where it listens for those without end.
    pub bulk: SocketAddrV4,
    /// Where it listens for those with a line.
    pub line: SocketAddrV4,
    /// Where they go.
    pub backend: Streams,
}

/// A proxy that passes connections on by the name that their first message asks for.
#[derive(Clone, Copy, Debug)]
pub struct Passthrough {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Where connections go.
    pub backend: Streams,
}

/// Bytes need not be copied where the kernel can move them. HAProxy does that when asked; `splice-auto` would leave it to a guess, which is
/// no here. Pipes are as large as ours.
const STREAMS: &str = "\
global
    nbthread 1
    maxconn 4096
    maxpipes 1024
    tune.pipesize 262144
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    option splice-request
    option splice-response
";

impl fmt::Display for Tcp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bulk, line, backend } = self;
        write!(
            out,
            "{STREAMS}\
frontend bulk
    bind {bulk}
    default_backend bulk
frontend line
    bind {line}
    default_backend line
{}",
            backends(*backend)
        )
    }
}

impl fmt::Display for Passthrough {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, backend } = self;
        let (bulk, line) = (Streams::BULK_NAME, Streams::LINE_NAME);
        write!(
            out,
            "{STREAMS}\
frontend front
    bind {address}
    tcp-request inspect-delay 5s
    tcp-request content accept if {{ req.ssl_hello_type 1 }}
    use_backend bulk if {{ req.ssl_sni -i {bulk} }}
    use_backend line if {{ req.ssl_sni -i {line} }}
{}",
            backends(*backend)
        )
    }
}

fn backends(backend: Streams) -> String {
    let Streams { bulk, line } = backend;
    format!("backend bulk\n    server one {bulk}\nbackend line\n    server one {line}\n")
}

/// The command that serves a configuration, in the foreground and quietly.
pub fn command(program: &Path, configuration: &str, folder: &Path, name: &str) -> anyhow::Result<Command> {
    let file = super::write(folder, name, configuration)?;
    let mut command = Command::new(program);
    command.args(["-db", "-q", "-f"]).arg(file);
    Ok(command)
}
