//! The one hash for whatever is kept in a cluster: names of Leases, labels, what was applied last.

/// FNV-1a: the same in every build and version, for replicas must agree. Not for what somebody could gain by forging.
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
