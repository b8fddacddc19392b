//! The first message of a TLS client, read without judging it: only the name that it asks for is looked up.
//!
//! Used where backends make the handshake. They may understand versions, ciphers and extensions that are unknown here, so
//! a library that refuses those would refuse clients that a backend serves. Exactly the records of that message are read
//! and kept, however they were cut into pieces; what follows them stays in the connection.

use std::{io, net::IpAddr, sync::Arc};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::certificates::without_trailing_dot;

/// Most bytes of a first message with its record headers. Post-quantum key shares take a few kilobytes; the rest is room.
pub(super) const LIMIT: usize = 64 * 1024;

const RECORD_HEADER: usize = 5;
/// Most bytes of a record that is not encrypted.
const LONGEST_RECORD: usize = 1 << 14;
const HANDSHAKE_RECORD: u8 = 22;
const MESSAGE_HEADER: usize = 4;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME_EXTENSION: u16 = 0;
const HOST_NAME: u8 = 0;

/// A first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its records as they came.
    pub(super) records: Vec<u8>,
    /// The name that it asks for, in lower case without a trailing dot.
    pub(super) name: Option<Arc<str>>,
}

/// The bytes are not what they should be.
#[derive(Clone, Copy, Debug)]
struct Malformed;

impl From<Malformed> for Unseen {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Why no first message can be had.
#[derive(Debug)]
pub(super) enum Unseen {
    /// It is larger than any real one.
    TooLarge,
    /// It is not TLS, or names what is no host name.
    Malformed,
    /// The connection broke.
    Connection(io::Error),
}

impl From<io::Error> for Unseen {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

/// Reads the first message of a client.
pub(super) async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Seen, Unseen> {
    let mut records = Vec::new();
    // The message without record headers, once it takes more than one record.
    let mut joined = Vec::new();
    loop {
        let mut header = [0; RECORD_HEADER];
        stream.read_exact(&mut header).await?;
        let length = record_length(header).ok_or(Unseen::Malformed)?;
        let begin = records.len() + RECORD_HEADER;
        if begin + length > LIMIT {
            return Err(Unseen::TooLarge);
        }
        records.extend_from_slice(&header);
        records.resize(begin + length, 0);
        let body = records.get_mut(begin..).unwrap_or_default();
        stream.read_exact(body).await?;
        let message = if begin == RECORD_HEADER {
            &*body
        } else {
            if joined.is_empty() {
                let first = begin - RECORD_HEADER;
                joined.extend_from_slice(records.get(RECORD_HEADER..first).unwrap_or_default());
            }
            joined.extend_from_slice(records.get(begin..).unwrap_or_default());
            &joined
        };
        match look(message)? {
            Look::Incomplete => {}
            Look::Name(name) => return Ok(Seen { records, name }),
        }
    }
}

/// How long the body of a record is that may begin a handshake.
fn record_length(header: [u8; RECORD_HEADER]) -> Option<usize> {
    let [kind, major, _, high, low] = header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    (kind == HANDSHAKE_RECORD && major == 3 && (1..=LONGEST_RECORD).contains(&length)).then_some(length)
}

/// What can be said about the beginning of a message.
enum Look {
    Incomplete,
    Name(Option<Arc<str>>),
}

fn look(message: &[u8]) -> Result<Look, Unseen> {
    // A message of another kind never becomes the right one.
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(Unseen::Malformed);
    }
    let Some(([_, length @ ..], body)) = message.split_first_chunk::<MESSAGE_HEADER>() else {
        return Ok(Look::Incomplete);
    };
    let [high, middle, low] = *length;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    if length > LIMIT {
        return Err(Unseen::TooLarge);
    }
    match body.get(..length) {
        None => Ok(Look::Incomplete),
        Some(hello) => Ok(Look::Name(server_name(hello)?)),
    }
}

/// The name in the body of a first message, if it has one.
fn server_name(hello: &[u8]) -> Result<Option<Arc<str>>, Malformed> {
    let mut bytes = Bytes(hello);
    bytes.take(2 + 32)?;
    bytes.short_list()?;
    bytes.long_list()?;
    bytes.short_list()?;
    if bytes.0.is_empty() {
        return Ok(None);
    }
    let mut extensions = Bytes(bytes.long_list()?);
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let content = extensions.long_list()?;
        if kind == SERVER_NAME_EXTENSION {
            // A second one would leave it to each reader which of them counts.
            if found.is_some() {
                return Err(Malformed);
            }
            found = Some(host_name(content)?);
        }
    }
    Ok(found.flatten())
}

/// The name in the extension. An address is not a name, and means none.
fn host_name(content: &[u8]) -> Result<Option<Arc<str>>, Malformed> {
    let mut content = Bytes(content);
    let mut names = Bytes(content.long_list()?);
    let kind = names.take(1)?;
    let name = names.long_list()?;
    // There is one kind of name, and of each kind only one.
    if kind != [HOST_NAME] || !names.0.is_empty() || !content.0.is_empty() {
        return Err(Malformed);
    }
    let name = std::str::from_utf8(name).map_err(|_| Malformed)?;
    let name = without_trailing_dot(name).to_ascii_lowercase();
    if name.parse::<IpAddr>().is_ok() {
        return Ok(None);
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > 253 || !name.bytes().all(is_legal) {
        return Err(Malformed);
    }
    Ok(Some(name.into()))
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(front)
    }

    fn number(&mut self) -> Result<u16, Malformed> {
        let bytes = self.take(2)?.try_into().map_err(|_| Malformed)?;
        Ok(u16::from_be_bytes(bytes))
    }

    /// A list whose length is one byte.
    fn short_list(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.take(1)?.first().copied().ok_or(Malformed)?;
        self.take(length.into())
    }

    /// A list whose length is two bytes.
    fn long_list(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.number()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests;
