//! Who one is and whom one believes over TLS: certificate chains with their keys, and authorities, already parsed.
//!
//! The key shows in no log, dump or golden file: its `Debug` and `Serialize` say only that it is there.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

use crate::{HostPattern, Origin, Text};

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
    /// What its authority says about its validity (an OCSP response in DER), to be sent along.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "staple_length")]
    pub staple: Option<Vec<u8>>,
}

/// How a listener terminates TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Termination {
    /// The first is presented when none names the host asked for. Without any, every handshake is refused: the listener's
    /// names still belong to it, and must not fall to another listener on the port.
    pub certificates: Vec<Arc<Certificate>>,
    /// Which clients may connect; absent means all, and none is asked for a certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Arc<ClientValidation>>,
}

/// Which clients may connect to a listener.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientValidation {
    /// Clients must show a certificate of one of these.
    pub authorities: Vec<Arc<Authority>>,
    /// Whether clients without a certificate, or with one that is not valid, may connect all the same.
    pub is_optional: bool,
}

/// Certificates of authorities, in DER.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Authority {
    /// Where they come from.
    pub origin: Origin,
    /// At least one; shared with whoever else believes them.
    #[serde(serialize_with = "chain_length")]
    pub certificates: Arc<Vec<Vec<u8>>>,
}

/// How to speak TLS to a backend, and how to know it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UpstreamTls {
    /// The name to ask for. Unless `names` says otherwise, the backend's certificate must hold it.
    pub hostname: Text,
    /// Who may have signed the backend's certificate.
    pub trust: Trust,
    /// The backend's certificate must hold one of these instead of `hostname`, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<SubjectName>,
}

/// Whom to believe who a backend is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Trust {
    /// Those that this system believes.
    System,
    /// These alone.
    Given(Vec<Arc<Authority>>),
}

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum SubjectName {
    /// A DNS name; with a wildcard it stands for that very text in the certificate, or any name that it covers.
    Dns(HostPattern),
    /// A URI, for example a SPIFFE id.
    Uri(Text),
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

#[expect(clippy::ref_option, reason = "serde hands over the field as it is")]
fn staple_length<S: Serializer>(staple: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{} bytes", staple.as_ref().map_or(0, Vec::len)))
}

fn chain_length<S: Serializer>(chain: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{} certificates", chain.len()))
}
