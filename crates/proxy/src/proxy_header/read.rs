//! Reads a header, and not a byte beyond it.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use tokio::{io::AsyncReadExt, net::TcpStream};

use super::SIGNATURE;

/// What every header of version 1 begins with.
const WORD: &[u8] = b"PROXY ";
/// The longest header of version 1.
const LONGEST_LINE: usize = 107;
/// The longest that is read of version 2. Fronts add what they know about the client's certificate.
const LONGEST_BODY: usize = 16 * 1024;

/// Who a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Introduced {
    /// Where it comes from.
    pub(crate) client: SocketAddr,
    /// Where it connected to.
    pub(crate) local: SocketAddr,
}

/// Reads a header. Nobody is introduced by a front that speaks for itself, to see whether we are here.
pub(crate) async fn read(stream: &mut TcpStream) -> io::Result<Option<Introduced>> {
    // Both versions are longer than this.
    let mut begin = [0; SIGNATURE.len()];
    stream.read_exact(&mut begin).await?;
    if begin == SIGNATURE {
        let mut header = [0; 4];
        stream.read_exact(&mut header).await?;
        let [kind, family, high, low] = header;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > LONGEST_BODY {
            return Err(malformed());
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        binary(kind, family, &body)
    } else if begin.starts_with(WORD) {
        let mut line = begin.to_vec();
        read_line(stream, &mut line).await?;
        text(&line)
    } else {
        Err(malformed())
    }
}

/// Reads to the end of a line. What follows it is looked at, but left for others to read.
async fn read_line(stream: &mut TcpStream, line: &mut Vec<u8>) -> io::Result<()> {
    while line.last() != Some(&b'\n') {
        let mut ahead = [0; LONGEST_LINE];
        let room = ahead.get_mut(line.len()..).unwrap_or_default();
        if room.is_empty() {
            return Err(malformed());
        }
        let count = stream.peek(room).await?;
        let seen = room.get(..count).unwrap_or_default();
        let end = memchr::memchr(b'\n', seen).map_or(count, |at| at + 1);
        let piece = room.get_mut(..end).unwrap_or_default();
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        stream.read_exact(piece).await?;
        line.extend_from_slice(piece);
    }
    Ok(())
}

/// What a header of version 1 says.
pub(super) fn text(line: &[u8]) -> io::Result<Option<Introduced>> {
    let line = line.strip_suffix(b"\r\n").ok_or_else(malformed)?;
    let line = std::str::from_utf8(line).map_err(|_| malformed())?;
    let mut words = line.split(' ').skip(1);
    let mut next = || words.next().ok_or_else(malformed);
    let introduced = match next()? {
        "UNKNOWN" => return Ok(None),
        "TCP4" => {
            let (client, local) = (parsed::<Ipv4Addr>(next()?)?, parsed::<Ipv4Addr>(next()?)?);
            Introduced {
                client: (client, port(next()?)?).into(),
                local: (local, port(next()?)?).into(),
            }
        }
        "TCP6" => {
            let (client, local) = (parsed::<Ipv6Addr>(next()?)?, parsed::<Ipv6Addr>(next()?)?);
            Introduced {
                client: (client, port(next()?)?).into(),
                local: (local, port(next()?)?).into(),
            }
        }
        _ => return Err(malformed()),
    };
    match words.next() {
        None => Ok(Some(introduced)),
        Some(_) => Err(malformed()),
    }
}

fn parsed<T: FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| malformed())
}

fn port(text: &str) -> io::Result<u16> {
    // The standard library would take a sign.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { parsed(text) } else { Err(malformed()) }
}

/// What a header of version 2 says.
pub(super) fn binary(kind: u8, family: u8, body: &[u8]) -> io::Result<Option<Introduced>> {
    match (kind, family) {
        (0x21, 0x11) => {
            let (client, rest) = body.split_first_chunk::<4>().ok_or_else(malformed)?;
            let (local, rest) = rest.split_first_chunk::<4>().ok_or_else(malformed)?;
            let [client_port, local_port] = ports_of(rest)?;
            Ok(Some(Introduced {
                client: (Ipv4Addr::from(*client), client_port).into(),
                local: (Ipv4Addr::from(*local), local_port).into(),
            }))
        }
        (0x21, 0x21) => {
            let (client, rest) = body.split_first_chunk::<16>().ok_or_else(malformed)?;
            let (local, rest) = rest.split_first_chunk::<16>().ok_or_else(malformed)?;
            let [client_port, local_port] = ports_of(rest)?;
            Ok(Some(Introduced {
                client: (Ipv6Addr::from(*client), client_port).into(),
                local: (Ipv6Addr::from(*local), local_port).into(),
            }))
        }
        // The front speaks for itself, or knows nothing that could be said here.
        (0x20 | 0x21, _) => Ok(None),
        _ => Err(malformed()),
    }
}

fn ports_of(bytes: &[u8]) -> io::Result<[u16; 2]> {
    let ([a, b, c, d], _) = bytes.split_first_chunk::<4>().ok_or_else(malformed)?;
    Ok([u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])])
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
