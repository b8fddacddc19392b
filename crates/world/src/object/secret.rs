//! Secret, reduced to a certificate that can be presented, or to the reason why it cannot.
//!
//! Certificates are parsed and checked once, on arrival; nothing behind this sees PEM.

use std::{fmt, sync::Arc};

use gatewright_api as api;
use gatewright_ir::{HostPattern, PrivateKey};
use rustls::{crypto::aws_lc_rs::sign::any_supported_type, sign::CertifiedKey};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use x509_parser::{extensions::GeneralName, prelude::FromDer};

/// The longest chain we read: a Secret must not be able to fill the memory of every handshake.
const LONGEST_CHAIN: usize = 16;

/// The key of a Secret with an OCSP response.
const STAPLE: &str = "tls.ocsp-staple";

/// A Secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Secret {
    /// Its certificate.
    pub tls: Result<Arc<TlsMaterial>, TlsProblem>,
}

/// A certificate chain and the key that fits it.
#[derive(Debug, PartialEq)]
pub struct TlsMaterial {
    /// The names in the leaf certificate.
    pub names: Vec<HostPattern>,
    /// The chain in DER, leaf first.
    pub chain: Vec<Vec<u8>>,
    /// The key.
    pub key: PrivateKey,
    /// When the leaf certificate begins and ceases to be valid, in seconds since 1970.
    pub validity: (i64, i64),
    /// What its authority says about it, an OCSP response in DER.
    pub staple: Option<Vec<u8>>,
}

/// Why a Secret holds no usable certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// A key of the Secret is missing or empty.
    Missing(&'static str),
    /// A part cannot be read.
    Unreadable(&'static str),
    /// The chain has more certificates than we read.
    TooLong,
    /// The private key belongs to another certificate.
    Mismatch,
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(key) => write!(out, "it has no {key}"),
            Self::Unreadable(key @ "tls.crt") => write!(out, "its {key} is not a certificate in PEM"),
            Self::Unreadable(key) => write!(out, "its {key} is not a private key in PEM"),
            Self::TooLong => write!(out, "its chain has more than {LONGEST_CHAIN} certificates"),
            Self::Mismatch => out.write_str("its tls.key does not belong to its tls.crt"),
        }
    }
}

impl Secret {
    pub(crate) fn reduce(secret: &api::Secret) -> Self {
        let data = |key: &'static str| {
            let encoded = secret
                .data
                .as_ref()
                .and_then(|data| data.get(key))
                .map(|value| value.0.clone());
            let plain = || {
                secret
                    .string_data
                    .as_ref()
                    .and_then(|data| data.get(key))
                    .map(|text| text.clone().into_bytes())
            };
            // `stringData` overrides `data`, as it does when an API server stores the object.
            plain()
                .or(encoded)
                .filter(|bytes| !bytes.is_empty())
                .ok_or(TlsProblem::Missing(key))
        };
        Self {
            tls: data("tls.crt")
                .and_then(|chain| parse(&chain, &data("tls.key")?, data(STAPLE).ok()))
                .map(Arc::new),
        }
    }
}

fn parse(chain: &[u8], key: &[u8], staple: Option<Vec<u8>>) -> Result<TlsMaterial, TlsProblem> {
    let certificates = CertificateDer::pem_slice_iter(chain)
        .take(LONGEST_CHAIN + 1)
        .collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| TlsProblem::Unreadable("tls.crt"))?;
    if certificates.len() > LONGEST_CHAIN {
        return Err(TlsProblem::TooLong);
    }
    let leaf = certificates.first().ok_or(TlsProblem::Unreadable("tls.crt"))?;
    let (names, validity) = facts_of(leaf).ok_or(TlsProblem::Unreadable("tls.crt"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsProblem::Unreadable("tls.key"))?;
    let signer = any_supported_type(&key).map_err(|_| TlsProblem::Unreadable("tls.key"))?;
    let certified = CertifiedKey::new(certificates.clone(), signer);
    certified.keys_match().map_err(|_| TlsProblem::Mismatch)?;
    Ok(TlsMaterial {
        names,
        chain: certificates.iter().map(|certificate| certificate.to_vec()).collect(),
        key: PrivateKey::new(key.secret_der().to_vec()),
        validity,
        staple,
    })
}

/// The DNS names of a certificate and when it is valid; `None` when it cannot be parsed.
fn facts_of(certificate: &CertificateDer<'_>) -> Option<(Vec<HostPattern>, (i64, i64))> {
    let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(certificate).ok()?;
    let extension = parsed.subject_alternative_name().ok()?;
    let names = extension
        .iter()
        .flat_map(|extension| extension.value.general_names.iter());
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => HostPattern::parse(name).ok(),
        _ => None,
    });
    let validity = parsed.validity();
    let validity = (validity.not_before.timestamp(), validity.not_after.timestamp());
    Some((names.collect(), validity))
}

#[cfg(test)]
mod tests;
