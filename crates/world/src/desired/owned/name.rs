//! Names of the objects that we make for a Gateway: legal at any length, and different for different Gateways.
//!
//! A Gateway may be called by any DNS name of up to 253 characters; a Service only by a DNS label of up to 63. What fits is
//! taken as it is. What does not is named by a digest, with as much of the name as fits for people to read; because a name
//! cannot begin with a dash, the two forms never meet.

use aws_lc_rs::digest::{SHA256, digest};
use gatewright_ir::{Port, Transport};

use super::Family;

/// The longest Service name, and the longest label value.
const LONGEST: usize = 63;

/// The name of a Gateway's Service.
pub fn service_name(gateway: &str) -> String {
    let plain = format!("gatewright-{gateway}");
    if plain.len() <= LONGEST && !gateway.contains('.') {
        return plain;
    }
    let mut name = format!("gatewright--{}", short_digest(gateway));
    let room = LONGEST.saturating_sub(name.len() + 1);
    let readable: String = gateway.chars().take(room).collect::<String>().replace('.', "-");
    let readable = readable.trim_end_matches('-');
    if !readable.is_empty() {
        name.push('-');
        name.push_str(readable);
    }
    name
}

/// The name of the EndpointSlice for one port of a Gateway and one family of addresses. The last two parts are free of
/// dashes, so that no two Gateways can come to one name.
pub fn slice_name(gateway: &str, port: Port, family: Family) -> String {
    let family = match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    };
    let number = port.number;
    let port = match port.transport {
        Transport::Tcp => format!("{number}"),
        Transport::Udp => format!("udp{number}"),
    };
    format!("{}-{port}-{family}", service_name(gateway))
}

/// The name of a Gateway as the value of a label. Longer ones than a label can hold are cut and marked with a digest after
/// an underscore, which no Gateway can have in its name.
pub fn gateway_label(gateway: &str) -> String {
    if gateway.len() <= LONGEST {
        return gateway.to_owned();
    }
    let digest = short_digest(gateway);
    let readable: String = gateway.chars().take(LONGEST - 1 - digest.len()).collect();
    format!("{readable}_{digest}")
}

/// Half of a SHA-256 in 26 letters and digits: nobody can find two names that share it.
pub(crate) fn short_digest(text: &str) -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = digest(&SHA256, text.as_bytes());
    let mut bits = digest
        .as_ref()
        .iter()
        .take(16)
        .fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
    let mut short = String::with_capacity(26);
    for _ in 0..26 {
        // Five bits are always below 32.
        let letter = ALPHABET.get((bits & 31) as usize).copied().unwrap_or(b'a');
        short.push(char::from(letter));
        bits >>= 5;
    }
    short
}
