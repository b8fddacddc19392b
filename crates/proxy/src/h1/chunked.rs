//! The chunked transfer coding: where the chunks are in the bytes read, and how chunks are written.
//!
//! Decoding happens in place: a step says how many bytes of framing to forget or how many bytes of payload stand at the
//! front. Sizes are plain hexadecimal digits and lines end in CR LF; all else is refused, because the next party might read
//! it differently. Chunk extensions are dropped.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use httparse::Status;

use super::head::has_bare_line_feed;

/// Longest line with a chunk's size and its extensions.
const LONGEST_SIZE_LINE: usize = 512;
/// Most bytes of trailers.
const MOST_TRAILER_BYTES: usize = 16 * 1024;
/// Most trailers.
const MOST_TRAILERS: usize = 32;

/// How far into a chunked body the reader is.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
    /// Whether the sender may pad sizes with spaces, as some old backends do.
    is_lenient: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    Done,
}

/// What stands at the front of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Framing of so many bytes, to be forgotten.
    Framing(usize),
    /// So many bytes of payload.
    Payload(usize),
    /// Not enough to tell.
    NeedMore,
    /// The end of the body, after so many bytes, with the trailers if there are any.
    End(usize, Option<Box<HeaderMap>>),
}

/// The body is not chunked as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedChunk;

impl Chunks {
    /// The reader of a client's body.
    pub(crate) fn strict() -> Self {
        Self::default()
    }

    /// The reader of a backend's body.
    pub(crate) fn lenient() -> Self {
        Self {
            is_lenient: true,
            ..Self::default()
        }
    }

    /// Looks at the bytes that come next.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> Result<Step, MalformedChunk> {
        match self.state {
            State::Size => self.size(bytes),
            State::Data(left) => {
                let there = usize::try_from(left).map_or(bytes.len(), |left| bytes.len().min(left));
                Ok(if there == 0 {
                    Step::NeedMore
                } else {
                    Step::Payload(there)
                })
            }
            State::DataEnd => match bytes {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Ok(Step::Framing(2))
                }
                [] | [b'\r'] => Ok(Step::NeedMore),
                _ => Err(MalformedChunk),
            },
            State::Trailers => self.trailers(bytes),
            State::Done => Ok(Step::End(0, None)),
        }
    }

    /// Notes that payload was used.
    pub(crate) fn used(&mut self, count: usize) {
        if let State::Data(left) = self.state {
            let left = left.saturating_sub(count as u64);
            self.state = if left == 0 { State::DataEnd } else { State::Data(left) };
        }
    }

    fn size(&mut self, bytes: &[u8]) -> Result<Step, MalformedChunk> {
        let mut size = 0_u64;
        let mut digits = 0;
        for byte in bytes {
            let Some(digit) = char::from(*byte).to_digit(16) else {
                break;
            };
            digits += 1;
            if digits > 16 {
                return Err(MalformedChunk);
            }
            size = (size << 4) | u64::from(digit);
        }
        let rest = bytes.get(digits..).unwrap_or_default();
        let Some(next) = rest.first() else {
            return Ok(Step::NeedMore);
        };
        let begins_well = matches!(next, b'\r' | b';') || (self.is_lenient && matches!(next, b' ' | b'\t'));
        if digits == 0 || !begins_well {
            return Err(MalformedChunk);
        }
        let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
        let Some(end) = rest.iter().position(is_control) else {
            return if bytes.len() > LONGEST_SIZE_LINE {
                Err(MalformedChunk)
            } else {
                Ok(Step::NeedMore)
            };
        };
        match rest.get(end..) {
            Some([b'\r', b'\n', ..]) => {}
            Some([b'\r']) => return Ok(Step::NeedMore),
            _ => return Err(MalformedChunk),
        }
        self.state = if size == 0 { State::Trailers } else { State::Data(size) };
        Ok(Step::Framing(digits + end + 2))
    }

    fn trailers(&mut self, bytes: &[u8]) -> Result<Step, MalformedChunk> {
        if bytes.starts_with(b"\r\n") {
            self.state = State::Done;
            return Ok(Step::End(2, None));
        }
        let mut slots = [httparse::EMPTY_HEADER; MOST_TRAILERS];
        let (length, fields) = match httparse::parse_headers(bytes, &mut slots) {
            Ok(Status::Complete(parsed)) => parsed,
            Ok(Status::Partial) if bytes.len() > MOST_TRAILER_BYTES => return Err(MalformedChunk),
            Ok(Status::Partial) => return Ok(Step::NeedMore),
            Err(_) => return Err(MalformedChunk),
        };
        if has_bare_line_feed(bytes.get(..length).unwrap_or_default()) {
            return Err(MalformedChunk);
        }
        let mut trailers = HeaderMap::with_capacity(fields.len());
        for field in fields {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| MalformedChunk)?;
            // Had it come in time, it would have framed the message.
            if !self.is_lenient && [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::HOST].contains(&name) {
                return Err(MalformedChunk);
            }
            let value = HeaderValue::from_bytes(field.value).map_err(|_| MalformedChunk)?;
            trailers.append(name, value);
        }
        self.state = State::Done;
        Ok(Step::End(length, Some(Box::new(trailers))))
    }
}

/// Writes a chunk's size line.
pub(crate) fn write_size(out: &mut Vec<u8>, size: usize) {
    let mut digits = [0_u8; 16];
    let mut left = size;
    let mut count = 0;
    for place in digits.iter_mut().rev() {
        *place = b"0123456789abcdef".get(left & 15).copied().unwrap_or(b'0');
        left >>= 4;
        count += 1;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(16 - count..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

/// Writes the last chunk and the trailers.
pub(crate) fn write_end(out: &mut Vec<u8>, trailers: Option<&HeaderMap>) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.into_iter().flatten() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
