//! Makes up connections: one request with something odd about its framing, whose body holds another request, and one more
//! request behind it.

/// The bytes of one connection.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) number: usize,
    pub(super) bytes: Vec<u8>,
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = self.next() % u64::try_from(of.len()).unwrap();
        &of[usize::try_from(index).unwrap()]
    }

    /// The first with the given chance in a hundred, else one of the others.
    fn usually<'a, T>(&mut self, chance: u64, of: &'a [T]) -> &'a T {
        if self.next() % 100 < chance {
            &of[0]
        } else {
            self.pick(&of[1..])
        }
    }
}

pub(super) fn cases(count: usize) -> Vec<Case> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    (0..count).map(|number| case(number, &mut random)).collect()
}

const NAMES_OF_LENGTH: &[&str] = &[
    "Content-Length",
    "content-length",
    "CONTENT-LENGTH",
    "Content-Length ",
    "Content_Length",
    " Content-Length",
    "Content-Length\t",
    "Content-\rLength",
    "X-Content-Length",
];
const NAMES_OF_CODING: &[&str] = &[
    "Transfer-Encoding",
    "transfer-encoding",
    "Transfer-Encoding ",
    "Transfer_Encoding",
    " Transfer-Encoding",
    "Transfer\u{0}-Encoding",
    "X-Transfer-Encoding",
    "X:Y\r\nTransfer-Encoding",
    "X: Y\nTransfer-Encoding",
];
const CODINGS: &[&str] = &[
    "chunked",
    "Chunked",
    "CHUNKED",
    "xchunked",
    "chunked, identity",
    "identity, chunked",
    "identity",
    "chunked,chunked",
    "\u{b}chunked",
    "\"chunked\"",
    "chunked\r",
    "chunk",
    "gzip",
    "",
    "chunked;x=y",
    "\tchunked",
    "chunked\t",
];
const SEPARATORS: &[&str] = &[": ", ":", ":  ", ":\t", " : ", ":\r\n ", ";", ":\u{0}", ": \u{b}"];
const ENDS: &[&str] = &["\r\n", "\n", "\r", "\r\r\n", "\n\r", "\r\n\r\n", "\r\n\t"];
const SIZES: &[&str] = &[
    "{x}",
    "0{x}",
    "000000000{x}",
    "0x{x}",
    "+{x}",
    "-{x}",
    "{x} ",
    " {x}",
    "{x};a=b",
    "{x};",
    "{x};a\n",
    "{x};a\r",
    "0_{x}",
    "{x}g",
    "1{x}",
    "",
    "ffffffffffffffff{x}",
    "{x}\u{0}",
    "{x}\t",
    "{X}",
];
const LENGTHS: &[&str] = &[
    "{n}", "0{n}", "+{n}", "-{n}", "{n}, {n}", "{n} ", "0x{n}", "{n}.0", "1{n}", "", "{n}\t", "{n},", "{m}", "0",
];

fn case(number: usize, random: &mut Random) -> Case {
    let hidden = format!("GET /case/{number}/hidden HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    let inner = match random.next() % 3 {
        0 => hidden.clone(),
        1 => format!("0\r\n\r\n{hidden}"),
        _ => "x".to_owned(),
    };
    // The body in both framings; which of them the head declares, and how well, is up to chance.
    let chunked = chunked_body(&inner, random);
    let uses_chunks = random.next().is_multiple_of(2);
    let body = if uses_chunks { chunked } else { inner };
    let mut lines = Vec::new();
    let kind = random.next() % 8;
    if uses_chunks || kind == 0 {
        lines.push(line(random, NAMES_OF_CODING, random_coding));
    }
    if !uses_chunks || kind == 1 {
        let length = body.len();
        let value = |random: &mut Random| length_text(random, length);
        lines.push(line(random, NAMES_OF_LENGTH, value));
    }
    if kind == 2 {
        let again = lines.last().cloned().unwrap_or_default();
        lines.push(again);
    }
    if kind == 3 {
        let length = body.len() / 2;
        lines.push(format!("Content-Length: {length}\r\n"));
    }
    lines.push("Host: a.test\r\n".to_owned());
    if random.next().is_multiple_of(2) {
        lines.reverse();
    }
    let method = *random.usually(80, &["POST", "GET", "PUT", "DELETE", "HEAD"]);
    // A response to HEAD has no body, which this test's client does not know about.
    let method = if method == "HEAD" { "PATCH" } else { method };
    let version = *random.usually(95, &["HTTP/1.1", "HTTP/1.2", "http/1.1", "HTTP/1.1 "]);
    let end = *random.usually(95, ENDS);
    let head = format!("{method} /case/{number}/first {version}{end}{}", lines.concat());
    let blank = *random.usually(92, &["\r\n", "\n", "\r\n\r\n", "\r", " \r\n"]);
    let last = format!("GET /case/{number}/last HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    Case {
        number,
        bytes: [head, blank.to_owned(), body, last].concat().into_bytes(),
    }
}

fn line(random: &mut Random, names: &[&str], value: impl Fn(&mut Random) -> String) -> String {
    let name = *random.usually(75, names);
    let separator = *random.usually(90, SEPARATORS);
    let value = value(random);
    let end = *random.usually(92, ENDS);
    format!("{name}{separator}{value}{end}")
}

fn random_coding(random: &mut Random) -> String {
    (*random.usually(65, CODINGS)).to_owned()
}

fn length_text(random: &mut Random, length: usize) -> String {
    let other = length + 1;
    random
        .usually(65, LENGTHS)
        .replace("{n}", &length.to_string())
        .replace("{m}", &other.to_string())
}

fn chunked_body(inner: &str, random: &mut Random) -> String {
    let mut body = String::new();
    let cut = inner.len() / 2;
    for piece in [&inner[..cut], &inner[cut..]] {
        if piece.is_empty() {
            continue;
        }
        let (lower, upper) = (format!("{:x}", piece.len()), format!("{:X}", piece.len()));
        let size = random.usually(80, SIZES).replace("{x}", &lower).replace("{X}", &upper);
        let (first_end, second_end) = (*random.usually(92, ENDS), *random.usually(92, ENDS));
        body.push_str(&[&size, first_end, piece, second_end].concat());
    }
    let zero = *random.usually(90, &["0", "00", "0;x", "-0", "", "0 ", "0x0"]);
    let trailer = *random.usually(
        80,
        &["", "X-Trailer: 1\r\n", "Content-Length: 3\r\n", "bad\r\n", "X: 1\n"],
    );
    let end = *random.usually(92, ENDS);
    body + zero + end + trailer + "\r\n"
}
