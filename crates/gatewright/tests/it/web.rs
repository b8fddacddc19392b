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
        crate::process::text(&self.echoed(), "service").to_owned()
    }

    /// What the echo saw of the request.
    pub(crate) fn echoed(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The values of a request header that the echo saw.
    pub(crate) fn echoed_header(&self, name: &str) -> Vec<String> {
        let echoed = self.echoed();
        let headers = echoed["headers"].as_object().into_iter().flatten();
        let values = headers.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        let values = values.flat_map(|(_, values)| values.as_array().into_iter().flatten());
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    }

    /// A header of the response, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find_map(|(found, value)| (found == name).then_some(value))
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Response {
    request(address, &format!("GET {path}"), &address.to_string(), "")
}

/// Sends a request and reads to the end. Whatever goes wrong with the connection is status 0.
pub(crate) fn request(address: SocketAddr, line: &str, host: &str, body: &str) -> Response {
    ask(address, line, &[("host", host)], body)
}

/// The same with any headers.
pub(crate) fn ask(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> Response {
    exchange(address, line, headers, body).unwrap_or_default()
}

fn exchange(address: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address, DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let length = body.len();
    let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers = headers.collect::<Vec<_>>().concat();
    write!(
        stream,
        "{line} HTTP/1.1\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(Response::read(&text))
}

/// Echo backends with names and ports of their own, in one process.
pub(crate) struct Echoes {
    process: Process,
    ports: Vec<u16>,
}

impl Echoes {
    /// Backends of these names that speak `http` or `grpc`.
    pub(crate) fn start(mode: &str, names: &[&str]) -> Self {
        let services: Vec<String> = names.iter().map(|name| format!("--service={name}=0")).collect();
        let mut arguments = vec!["echo", "--bind-address", "127.0.0.1", "--mode", mode];
        arguments.extend(services.iter().map(String::as_str));
        let process = Process::start(Path::new("."), &arguments);
        let port = |name: &&str| {
            let start = format!("echo {name} listens on 127.0.0.1:");
            wait_for(&start, || {
                let stdout = process.stdout();
                let line = stdout.lines().find_map(|line| line.strip_prefix(&start))?;
                line.parse().ok()
            })
        };
        let ports = names.iter().map(port).collect();
        Self { process, ports }
    }

    /// Their ports, in the order of their names.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Whether a request for a path that begins like this has arrived.
    pub(crate) fn has_seen(&self, path: &str) -> bool {
        let line = format!("Echoing back request made to {path}");
        self.process.stdout().lines().any(|seen| seen.starts_with(&line))
    }

    /// Demands that no request for a path that begins like this has arrived.
    pub(crate) fn saw_nothing_of(&self, path: &str) {
        // Lines come in order: when that of a later request is there, there is none of an earlier one to come.
        assert_eq!(get(([127, 0, 0, 1], self.ports[0]).into(), "/mark").status, 200);
        wait_for("mark", || self.has_seen("/mark").then_some(()));
        assert!(!self.has_seen(path), "{path} arrived");
    }
}

/// Echo backends named blue and green.
pub(crate) struct Backends {
    echoes: Echoes,
    pub(crate) blue: u16,
    pub(crate) green: u16,
}

impl Backends {
    pub(crate) fn start() -> Self {
        let echoes = Echoes::start("http", &["blue", "green"]);
        let [blue, green] = *echoes.ports() else {
            panic!("two names have two ports");
        };
        Self { echoes, blue, green }
    }

    /// Whether a request for a path that begins like this has arrived.
    pub(crate) fn has_seen(&self, path: &str) -> bool {
        self.echoes.has_seen(path)
    }
}
