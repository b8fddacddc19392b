//! What a byte stream of requests means, if there is only one way to understand it.
//!
//! Written for the tests, and much simpler than the proxy: the whole input is there, and anything unusual ends the list.

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) body: Vec<u8>,
}

/// What a connection's bytes mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Understood {
    /// The requests before the first doubtful one.
    pub(super) requests: Vec<Request>,
    /// Whether the last one is not complete.
    pub(super) is_cut_short: bool,
    /// Whether something doubtful came.
    pub(super) is_doubtful: bool,
}

impl Understood {
    /// Whether everything was understood.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_cut_short && !self.is_doubtful
    }
}

enum Stop {
    Incomplete,
    Doubtful,
}

pub(super) fn understand(mut bytes: &[u8]) -> Understood {
    let mut understood = Understood::default();
    while !bytes.is_empty() {
        match request(&mut bytes) {
            Ok((request, closes)) => {
                understood.requests.push(request);
                if closes {
                    return understood;
                }
            }
            Err(Stop::Incomplete) => {
                understood.is_cut_short = true;
                return understood;
            }
            Err(Stop::Doubtful) => {
                understood.is_doubtful = true;
                return understood;
            }
        }
    }
    // The connection stays open after the last request, so the client has to end it.
    understood.is_cut_short = true;
    understood
}

/// A line that ends in CR LF and holds neither by itself.
fn line<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, Stop> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        // A stray CR decides it even before the line is complete.
        let body = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        return Err(if body.contains(&b'\r') || body.contains(&0) {
            Stop::Doubtful
        } else {
            Stop::Incomplete
        });
    };
    let text = bytes[..end].strip_suffix(b"\r").ok_or(Stop::Doubtful)?;
    *bytes = &bytes[end + 1..];
    let is_text = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    if !text.iter().all(is_text) {
        return Err(Stop::Doubtful);
    }
    std::str::from_utf8(text).map_err(|_| Stop::Doubtful)
}

fn request(bytes: &mut &[u8]) -> Result<(Request, bool), Stop> {
    // An empty line before a request means nothing, to anybody.
    while let Some(rest) = bytes.strip_prefix(b"\r\n") {
        *bytes = rest;
    }
    let first = line(bytes)?;
    let parts: Vec<_> = first.split(' ').collect();
    let [method, target, "HTTP/1.1"] = parts.as_slice() else {
        return Err(Stop::Doubtful);
    };
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_alphabetic()) || !target.starts_with('/') {
        return Err(Stop::Doubtful);
    }
    let (mut lengths, mut codings, mut hosts, mut closes) = (Vec::new(), Vec::new(), 0, false);
    loop {
        let line = line(bytes)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or(Stop::Doubtful)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(Stop::Doubtful);
        }
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_str() {
            "content-length" => lengths.push(value),
            "transfer-encoding" => codings.push(value),
            "host" => hosts += 1,
            "connection" => closes |= value == "close",
            _ => {}
        }
    }
    let body = match (lengths.as_slice(), codings.as_slice()) {
        _ if hosts != 1 => return Err(Stop::Doubtful),
        ([], []) => Vec::new(),
        ([length], []) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
            take(bytes, length.parse().map_err(|_| Stop::Doubtful)?)?
        }
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => chunks(bytes)?,
        _ => return Err(Stop::Doubtful),
    };
    let request = Request {
        method: (*method).to_owned(),
        target: (*target).to_owned(),
        body,
    };
    Ok((request, closes))
}

fn take(bytes: &mut &[u8], count: usize) -> Result<Vec<u8>, Stop> {
    if bytes.len() < count {
        return Err(Stop::Incomplete);
    }
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    Ok(taken.to_vec())
}

fn chunks(bytes: &mut &[u8]) -> Result<Vec<u8>, Stop> {
    let mut body = Vec::new();
    loop {
        let line = line(bytes)?;
        let (size, _extension) = line.split_once(';').unwrap_or((line, ""));
        // Some allow blanks before the semicolon and at the end of the line; doubtful, but not dangerous: either way.
        if size.is_empty() || size.len() > 15 || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Stop::Doubtful);
        }
        let size = usize::from_str_radix(size, 16).map_err(|_| Stop::Doubtful)?;
        if size == 0 {
            break;
        }
        body.extend_from_slice(&take(bytes, size)?);
        let end = take(bytes, 2.min(bytes.len()))?;
        match end.as_slice() {
            b"\r\n" => {}
            b"\r" | b"" => return Err(Stop::Incomplete),
            _ => return Err(Stop::Doubtful),
        }
    }
    loop {
        let line = line(bytes)?;
        if line.is_empty() {
            return Ok(body);
        }
        let (name, _) = line.split_once(':').ok_or(Stop::Doubtful)?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(Stop::Doubtful);
        }
    }
}
