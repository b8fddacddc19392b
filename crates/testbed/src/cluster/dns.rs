//! A name server that answers every question about an IPv4 address with the same one.
//!
//! It stands for CoreDNS in tests that send questions over UDP through a gateway, and only want an answer. `cluster dns` runs it.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use anyhow::Context;

/// From the range for documentation: nobody's.
const ANSWER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);

const HEADER: usize = 12;

/// Answers for as long as the process lives.
pub fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let socket = UdpSocket::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let mut buffer = [0; 4096];
    loop {
        let (length, peer) = socket.recv_from(&mut buffer)?;
        if let Some(answer) = buffer.get(..length).and_then(answer) {
            // A peer that is gone gets no answer.
            let _ = socket.send_to(&answer, peer);
        }
    }
}

/// The answer to a question; none to what is no question.
fn answer(question: &[u8]) -> Option<Vec<u8>> {
    let (header, rest) = question.split_at_checked(HEADER)?;
    let is_answer = header.get(2)? & 0x80 != 0;
    if is_answer || header.get(4..6)? != [0, 1] {
        return None;
    }
    // The name is labels with their lengths, up to an empty one; type and class follow.
    let mut end = 0;
    while let Some(length) = rest
        .get(end)
        .map(|length| usize::from(*length))
        .filter(|length| *length > 0)
    {
        if length > 63 {
            return None;
        }
        end += length + 1;
    }
    let asked = rest.get(..end + 5)?;
    let is_address = asked.get(end + 1..)? == [0, 1, 0, 1];
    let mut answer = header.get(..2)?.to_vec();
    // An authoritative answer without error; the wish for recursion is repeated.
    answer.extend([
        0x84 | (header.get(2)? & 0x01),
        0,
        0,
        1,
        0,
        u8::from(is_address),
        0,
        0,
        0,
        0,
    ]);
    answer.extend(asked);
    if is_address {
        // The name as in the question, an address of the Internet, for one minute, four bytes long.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(ANSWER.octets());
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::answer;

    const QUESTION: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03foo\x03bar\x03com\x00\x00\x01\x00\x01";

    #[test]
    fn a_question_for_an_address_is_answered_with_its_own_number() {
        let answer = answer(QUESTION).unwrap();
        assert_eq!(&answer[..2], b"\x12\x34");
        assert_eq!(answer[2] & 0x80, 0x80, "it is an answer");
        assert_eq!(&answer[4..8], [0, 1, 0, 1], "one question, one answer");
        assert_eq!(&answer[12..29], &QUESTION[12..]);
        assert_eq!(&answer[answer.len() - 4..], [192, 0, 2, 53]);
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        assert_eq!(answer(b""), None);
        assert_eq!(answer(&QUESTION[..20]), None);
        let mut reply = QUESTION.to_vec();
        reply[2] |= 0x80;
        assert_eq!(answer(&reply), None, "two servers would talk forever");
    }
}
