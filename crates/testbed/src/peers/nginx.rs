//! nginx, as a proxy of the comparison and as the backend behind all of them.

use std::{
    fmt, fs,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use super::{HOST, write};

/// What the backend answers: 200 bytes.
pub const BODY: &str = concat!(
    "0123456789012345678901234567890123456789012345678\n",
    "0123456789012345678901234567890123456789012345678\n",
    "0123456789012345678901234567890123456789012345678\n",
    "0123456789012345678901234567890123456789012345678\n",
);

/// A reverse proxy.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Where requests go.
    pub backend: SocketAddrV4,
}

/// A reverse proxy that ends TLS.
#[derive(Clone, Debug)]
pub struct Terminating {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Where requests go.
    pub backend: SocketAddrV4,
    /// The file of its certificate.
    pub certificate: PathBuf,
    /// The file of its key.
    pub key: PathBuf,
}

/// A server that answers every request with the same text, and one with a file.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddrV4,
}

/// The path that the backend answers with a file.
pub const LARGE: &str = "/large";
/// How long that file is: more than any proxy holds back at once.
const LARGE_BYTES: usize = 8 << 20;

/// All run as one process that stays in the foreground, and keep everything they write in their own folder. Connections
/// are never closed for having served many requests, for the other proxies do not do that either.
const FRAME: &str = "\
daemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
error_log stderr error;
events {
    worker_connections 4096;
}
";
const HTTP: &str = "    \
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_timeout 60s;
    keepalive_requests 1000000000;
";

impl fmt::Display for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, backend } = self;
        write!(
            out,
            "{FRAME}http {{
{HTTP}    upstream backend {{
        server {backend};
        keepalive 256;
        keepalive_requests 1000000000;
        keepalive_timeout 60s;
    }}
    server {{
        listen {address};
        server_name {HOST};
        location / {{
            proxy_pass http://backend;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
        }}
    }}
}}
"
        )
    }
}

impl fmt::Display for Terminating {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            backend,
            certificate,
            key,
        } = self;
        let (certificate, key) = (certificate.display(), key.display());
        // Large answers go through memory only, in pieces of a size that TLS sends anyhow.
        write!(
            out,
            "{FRAME}http {{
{HTTP}    upstream backend {{
        server {backend};
        keepalive 256;
        keepalive_requests 1000000000;
        keepalive_timeout 60s;
    }}
    server {{
        listen {address} ssl;
        server_name {HOST};
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        proxy_buffer_size 16k;
        proxy_buffers 16 16k;
        proxy_busy_buffers_size 128k;
        proxy_max_temp_file_size 0;
        location / {{
            proxy_pass http://backend;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $http_host;
        }}
    }}
}}
"
        )
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        write!(
            out,
            "{FRAME}http {{
{HTTP}    server {{
        listen {address};
        location / {{
            return 200 \"{BODY}\";
        }}
        location = {LARGE} {{
            root .;
            sendfile on;
            tcp_nopush on;
        }}
    }}
}}
"
        )
    }
}

/// The command that serves a configuration from a folder of its own.
pub fn command(program: &Path, configuration: &str, folder: &Path) -> anyhow::Result<Command> {
    let file = write(folder, "nginx.conf", configuration)?;
    let mut command = Command::new(program);
    // Errors before the configuration is read go to stderr too, not to the system's log folder.
    command
        .arg("-p")
        .arg(folder)
        .arg("-e")
        .arg("stderr")
        .arg("-c")
        .arg(file);
    Ok(command)
}

/// The command that serves as a backend from a folder of its own.
pub fn backend(program: &Path, address: SocketAddrV4, folder: &Path) -> anyhow::Result<Command> {
    let command = command(program, &Backend { address }.to_string(), folder)?;
    let file = folder.join(LARGE.trim_start_matches('/'));
    fs::write(&file, vec![b'x'; LARGE_BYTES]).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(command)
}
