//! Legal names of Leases and legal labels for identities of any form.
//!
//! What is legal is kept as it is. Anything else is cut to what is legal and gets a hash of the whole, so that two identities
//! never share a Lease.

use crate::kube::stable_hash;

const PREFIX: &str = "gatewright-replica-";
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;
/// A hyphen and the hash.
const HASH: usize = 17;

/// The name of a replica's Lease.
pub(super) fn lease(identity: &str) -> String {
    format!("{PREFIX}{}", legal(identity, LONGEST_NAME - PREFIX.len()))
}

/// The value of the label of an installation.
pub(super) fn label(installation: &str) -> String {
    legal(installation, LONGEST_LABEL)
}

fn legal(text: &str, longest: usize) -> String {
    if is_legal(text) && text.len() <= longest {
        return text.to_owned();
    }
    let spelled = text.chars().map(|letter| letter.to_ascii_lowercase());
    let spelled = spelled.map(|letter| if is_plain(letter) { letter } else { '-' });
    let start: String = spelled.take(longest - HASH).collect();
    let hash = stable_hash(text.as_bytes());
    format!("{}-{hash:016x}", start.trim_matches('-'))
        .trim_start_matches('-')
        .to_owned()
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit()
}

/// A part of a DNS name, with hyphens inside. Dots are legal in names only between such parts, and not worth the exceptions.
fn is_legal(text: &str) -> bool {
    let is_inside = |letter: char| is_plain(letter) || letter == '-';
    text.starts_with(is_plain) && text.ends_with(is_plain) && text.chars().all(is_inside)
}

#[cfg(test)]
mod tests;
