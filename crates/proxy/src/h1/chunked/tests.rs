use super::{Chunks, MalformedChunk, Step, write_end, write_size};

/// What a body holds, or that it is refused. Incomplete bodies count as refused.
fn decode(mut chunks: Chunks, mut bytes: &[u8]) -> Result<(Vec<u8>, usize), MalformedChunk> {
    let mut payload = Vec::new();
    loop {
        match chunks.step(bytes)? {
            Step::Framing(count) => bytes = &bytes[count..],
            Step::Payload(count) => {
                payload.extend_from_slice(&bytes[..count]);
                chunks.used(count);
                bytes = &bytes[count..];
            }
            Step::NeedMore => return Err(MalformedChunk),
            Step::End(_, trailers) => return Ok((payload, trailers.map_or(0, |trailers| trailers.len()))),
        }
    }
}

#[test]
fn chunks_are_put_together() {
    let body = b"3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\n\r\n";
    assert_eq!(decode(Chunks::strict(), body), Ok((b"abc0123456789".to_vec(), 0)));
    let body = b"1\r\na\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n";
    assert_eq!(decode(Chunks::strict(), body), Ok((b"a".to_vec(), 2)));
}

#[test]
fn anything_but_plain_sizes_and_line_ends_is_refused() {
    for body in [
        "0x1\r\na\r\n0\r\n\r\n",
        "+1\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0_1\r\na\r\n0\r\n\r\n",
        " 1\r\na\r\n0\r\n\r\n",
        "1 \r\na\r\n0\r\n\r\n",
        "\r\na\r\n0\r\n\r\n",
        "1\na\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1;a\nb\r\na\r\n0\r\n\r\n",
        "1;a\rb\r\na\r\n0\r\n\r\n",
        "1;a\0b\r\na\r\n0\r\n\r\n",
        "11111111111111111\r\na\r\n0\r\n\r\n",
        "0\r\nX : 1\r\n\r\n",
        "0\r\nX: 1\n\r\n",
        "0\r\n folded\r\n\r\n",
        "0\r\nContent-Length: 3\r\n\r\n",
        "0\r\nHost: other\r\n\r\n",
    ] {
        assert_eq!(
            decode(Chunks::strict(), body.as_bytes()),
            Err(MalformedChunk),
            "{body:?}"
        );
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let mut chunks = Chunks::strict();
    assert_eq!(
        chunks.step(format!("1;{}", "x".repeat(600)).as_bytes()),
        Err(MalformedChunk)
    );
    let mut chunks = Chunks::strict();
    chunks.step(b"0\r\n").unwrap();
    assert_eq!(
        chunks.step(format!("X: {}", "x".repeat(20_000)).as_bytes()),
        Err(MalformedChunk)
    );
}

#[test]
fn backends_may_pad_sizes() {
    assert_eq!(
        decode(Chunks::lenient(), b"1  \r\na\r\n0\r\n\r\n"),
        Ok((b"a".to_vec(), 0))
    );
}

#[test]
fn sizes_are_written_as_plain_hexadecimal() {
    for (size, text) in [
        (0, "0\r\n"),
        (1, "1\r\n"),
        (255, "ff\r\n"),
        (4096, "1000\r\n"),
        (usize::MAX, "ffffffffffffffff\r\n"),
    ] {
        let mut out = Vec::new();
        write_size(&mut out, size);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
    let mut out = Vec::new();
    write_end(&mut out, None);
    assert_eq!(out, b"0\r\n\r\n");
}
