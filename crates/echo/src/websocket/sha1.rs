//! SHA-1, which the WebSocket handshake is defined with.
//!
//! It protects nothing there and must not be used for anything else; hence no dependency for it.

#[cfg(test)]
mod tests;

/// The SHA-1 digest of a message.
pub(super) fn digest(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    let bits = u64::try_from(message.len()).unwrap_or_default() * 8;
    padded.extend_from_slice(&bits.to_be_bytes());

    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0_u32];
    for block in padded.chunks_exact(64) {
        let rounds = compress(state, block);
        for (sum, value) in state.iter_mut().zip(rounds) {
            *sum = sum.wrapping_add(value);
        }
    }
    let mut digest = [0; 20];
    for (target, word) in digest.chunks_exact_mut(4).zip(state) {
        target.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[expect(clippy::many_single_char_names, reason = "the names of FIPS 180-4")]
fn compress(state: [u32; 5], block: &[u8]) -> [u32; 5] {
    let mut schedule = [0_u32; 16];
    for (word, bytes) in schedule.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| (word << 8) | u32::from(*byte));
    }
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for round in 0..80 {
        let (mix, constant) = match round {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999_u32),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(schedule[0]);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        // The schedule is a window that slides over the message's expansion.
        let expanded = (schedule[13] ^ schedule[8] ^ schedule[2] ^ schedule[0]).rotate_left(1);
        schedule.rotate_left(1);
        schedule[15] = expanded;
    }
    [a, b, c, d, e]
}
