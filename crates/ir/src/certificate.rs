//! A certificate chain with its private key, already parsed and known to fit together.
//!
//! The key shows in no log, dump or golden file: its `Debug` and `Serialize` say only that it is there.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::{HostPattern, Origin};

/// What a TLS listener presents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The Secret this comes from.
    pub origin: Origin,
    /// The names the leaf certificate is valid for.
    pub names: Vec<HostPattern>,
    /// The chain in DER, leaf first.
    #[serde(serialize_with = "chain_length")]
    pub chain: Vec<Vec<u8>>,
    /// The private key.
    pub key: PrivateKey,
}

/// A private key in DER (PKCS#8, PKCS#1 or SEC1).
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(Vec<u8>);

impl PrivateKey {
    /// Wraps a key in DER.
    pub fn new(der: Vec<u8>) -> Self {
        Self(der)
    }

    /// The key in DER, for whoever opens the listener.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PrivateKey(redacted)")
    }
}

impl Serialize for PrivateKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("redacted")
    }
}

fn chain_length<S: Serializer>(chain: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{} certificates", chain.len()))
}
