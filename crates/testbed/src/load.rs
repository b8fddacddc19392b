//! Load: as much as goes (requests by wrk, connections and TLS by generators of our own), or requests at a fixed rate.

pub mod paced;
pub mod streams;
pub mod tls;
pub mod wrk;

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddrV4, TcpStream},
    time::Duration,
};

use anyhow::{Context, ensure};

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

/// How long an answer's head and its body are, once the head is there. The answer must be 200 and say its length.
fn head(received: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(head) = received.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(received.get(..head).unwrap_or_default())?;
    let mut lines = text.lines();
    let status = lines.next().unwrap_or_default();
    ensure!(status.starts_with("HTTP/1.1 200"), "the answer was {status}");
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.context("an answer has no content-length")?;
    Ok(Some((head + END.len(), length)))
}
