//! A strict reader of HTTP/1.1 messages, for both ends of the proxy.
//!
//! It takes nothing that two readers could understand differently, so that a backend which reads with it notices at once
//! when the proxy sent something ambiguous.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The head of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The first line.
    pub(crate) line: String,
    /// Names as they were sent.
    pub(crate) fields: Vec<(String, String)>,
}

impl Head {
    /// The values of a field, in any case.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = |(field, _): &&(String, String)| field.eq_ignore_ascii_case(name);
        self.fields
            .iter()
            .filter(named)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    /// The value of a field that must not occur twice.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} occurs {} times in {self:?}", all.len());
        all.first().copied()
    }

    /// The three parts of the first line.
    pub(crate) fn parts(&self) -> [&str; 3] {
        let mut parts = self.line.splitn(3, ' ');
        [(); 3].map(|()| parts.next().unwrap_or_default())
    }
}

/// How long a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// Until the connection ends.
    Close,
}

/// Reads messages from a stream and keeps every byte that it read.
#[derive(Debug)]
pub(crate) struct Reader<S> {
    pub(crate) stream: S,
    pub(crate) buffer: Vec<u8>,
    /// All bytes ever read.
    pub(crate) raw: Vec<u8>,
    keeps_raw: bool,
}

fn bad(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

impl<S: AsyncRead + Unpin> Reader<S> {
    pub(crate) fn new(stream: S, keeps_raw: bool) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
            raw: Vec::new(),
            keeps_raw,
        }
    }

    /// Reads more bytes; how many.
    pub(crate) async fn more(&mut self) -> io::Result<usize> {
        let before = self.buffer.len();
        self.buffer.reserve(16 * 1024);
        let count = self.stream.read_buf(&mut self.buffer).await?;
        if self.keeps_raw {
            self.raw.extend_from_slice(&self.buffer[before..]);
        }
        Ok(count)
    }

    /// Exactly so many bytes.
    pub(crate) async fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..count).collect())
    }

    /// The bytes up to an end mark, without it.
    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let mut line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                line.truncate(end);
                if line.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
                    return Err(bad(format!("a stray control byte in {line:?}")));
                }
                return Ok(line);
            }
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn fields(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(fields);
            }
            let line = String::from_utf8(line).map_err(|error| bad(error.to_string()))?;
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| bad(format!("no colon in {line:?}")))?;
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                return Err(bad(format!("no field name: {name:?}")));
            }
            fields.push((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()));
        }
    }

    /// The head of the next message; nothing when the stream ended between messages.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        if self.buffer.is_empty() && self.more().await? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8(self.line().await?).map_err(|error| bad(error.to_string()))?;
        let fields = self.fields().await?;
        Ok(Some(Head { line, fields }))
    }

    /// The data of the next chunk; nothing after the last, which leaves the trailers to be read.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line().await?;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let is_size = !size.is_empty() && size.len() <= 16 && size.iter().all(u8::is_ascii_hexdigit);
        let size = std::str::from_utf8(size).ok().filter(|_| is_size);
        let size = size.and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or_else(|| bad(format!("no chunk size: {line:?}")))?;
        if size == 0 {
            return Ok(None);
        }
        let data = self.take(size).await?;
        if self.take(2).await? != b"\r\n" {
            return Err(bad("a chunk is longer than its size"));
        }
        Ok(Some(data))
    }

    /// The body and the trailers.
    pub(crate) async fn body(&mut self, framing: Framing) -> io::Result<(Vec<u8>, Vec<(String, String)>)> {
        match framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).map_err(|_| bad("too long"))?;
                Ok((self.take(length).await?, Vec::new()))
            }
            Framing::Chunked => {
                let mut body = Vec::new();
                while let Some(data) = self.chunk().await? {
                    body.extend_from_slice(&data);
                }
                Ok((body, self.fields().await?))
            }
            Framing::Close => {
                while self.more().await? > 0 {}
                Ok((std::mem::take(&mut self.buffer), Vec::new()))
            }
        }
    }

    /// The trailers after the last chunk.
    pub(crate) async fn trailers(&mut self) -> io::Result<Vec<(String, String)>> {
        self.fields().await
    }
}

/// The framing that fields declare, if there is exactly one way to read them.
pub(crate) fn declared(head: &Head) -> io::Result<Option<Framing>> {
    match (
        head.all("transfer-encoding").as_slice(),
        head.all("content-length").as_slice(),
    ) {
        ([], []) => Ok(None),
        (["chunked"], []) => Ok(Some(Framing::Chunked)),
        ([], [length]) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => length
            .parse()
            .map(|length| Some(Framing::Length(length)))
            .map_err(|_| bad("length too large")),
        (codings, lengths) => Err(bad(format!("ambiguous: {codings:?} {lengths:?}"))),
    }
}
