//! Load: as much as goes (closed loop, by wrk), or at a fixed rate (by a generator of our own).

pub mod paced;
pub mod wrk;

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddrV4, TcpStream},
    time::Duration,
};

use anyhow::Context;

/// Asks once for a path, and returns the status code.
pub fn request(address: SocketAddrV4, host: &str, path: &str) -> anyhow::Result<u16> {
    let limit = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address.into(), limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let code = line.split(' ').nth(1).context("no status line")?;
    code.parse().context("no status code")
}
