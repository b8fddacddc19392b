//! Base64 encoding, for PEM and for the WebSocket handshake.
//!
//! Encoding only, standard alphabet, padded. Two short callers do not justify a dependency.

#[cfg(test)]
mod tests;

const ALPHABET: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The padded base64 text of `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            text.push(if position <= group.len() {
                symbol(word >> (18 - 6 * position))
            } else {
                '='
            });
        }
    }
    text
}

/// A PEM block with lines of 64 characters.
pub(crate) fn pem(label: &str, bytes: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for (position, character) in encode(bytes).chars().enumerate() {
        if position > 0 && position % 64 == 0 {
            text.push('\n');
        }
        text.push(character);
    }
    text + &format!("\n-----END {label}-----\n")
}

fn symbol(word: u32) -> char {
    let index = usize::try_from(word & 63).unwrap_or_default();
    ALPHABET.get(index).copied().map_or('=', char::from)
}
