//! A minimal HTTP/1.1 client, and the echo backend to ask.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
};

use serde_json::Value;

use crate::process::{DEADLINE, Process, wait_for};

/// A response; status 0 means that there was none.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// Takes a whole response apart.
    pub(crate) fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self {
            status: status.unwrap_or_default(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// The Service whose echo answered.
    pub(crate) fn service(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        crate::process::text(&body, "service").to_owned()
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Response {
    request(address, &format!("GET {path}"), &address.to_string(), "")
}

/// Sends a request and reads to the end. Whatever goes wrong with the connection is status 0.
pub(crate) fn request(address: SocketAddr, line: &str, host: &str, body: &str) -> Response {
    exchange(address, line, host, body).unwrap_or_default()
}

fn exchange(address: SocketAddr, line: &str, host: &str, body: &str) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(Response::read(&text))
}

/// Echo backends named blue and green.
pub(crate) struct Backends {
    process: Process,
    pub(crate) blue: u16,
    pub(crate) green: u16,
}

impl Backends {
    pub(crate) fn start() -> Self {
        let arguments = [
            "echo",
            "--bind-address",
            "127.0.0.1",
            "--service",
            "blue=0",
            "--service",
            "green=0",
        ];
        let process = Process::start(Path::new("."), &arguments);
        let port = |name: &str| {
            let start = format!("echo {name} listens on 127.0.0.1:");
            wait_for(&start, || {
                let stdout = process.stdout();
                let line = stdout.lines().find_map(|line| line.strip_prefix(&start))?;
                line.parse().ok()
            })
        };
        let (blue, green) = (port("blue"), port("green"));
        Self { process, blue, green }
    }

    /// Whether a request for a path that begins like this has arrived.
    pub(crate) fn has_seen(&self, path: &str) -> bool {
        let line = format!("Echoing back request made to {path}");
        self.process.stdout().lines().any(|seen| seen.starts_with(&line))
    }
}
