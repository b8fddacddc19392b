//! ConfigMap, reduced to the certificates of authorities that it holds, or to the reason why it holds none.

use std::{fmt, sync::Arc};

use gatewright_api::{self as api, AUTHORITIES_KEY};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_parser::prelude::FromDer;

/// The most that are read: the bundles of operating systems have about a hundred and fifty.
const MOST: usize = 512;

/// A ConfigMap.
#[derive(Clone, Debug, PartialEq)]
pub struct Authorities {
    /// Its certificates in DER.
    pub certificates: Result<Arc<Vec<Vec<u8>>>, AuthorityProblem>,
}

/// Why a ConfigMap holds no authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityProblem {
    /// It has no such key, or nothing in it.
    Missing,
    /// What is there is not a list of certificates in PEM.
    Unreadable,
    /// It has more than are read.
    TooMany,
}

impl fmt::Display for AuthorityProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(out, "it has no {AUTHORITIES_KEY}"),
            Self::Unreadable => write!(out, "its {AUTHORITIES_KEY} is not a list of certificates in PEM"),
            Self::TooMany => write!(out, "its {AUTHORITIES_KEY} has more than {MOST} certificates"),
        }
    }
}

impl Authorities {
    pub(crate) fn reduce(map: &api::ConfigMap) -> Self {
        let text = map
            .data
            .as_ref()
            .and_then(|data| data.get(AUTHORITIES_KEY))
            .map(String::as_bytes);
        let binary = || {
            let data = map.binary_data.as_ref()?;
            data.get(AUTHORITIES_KEY).map(|value| value.0.as_slice())
        };
        let pem = text.or_else(binary).filter(|pem| !pem.is_empty());
        Self {
            certificates: pem.ok_or(AuthorityProblem::Missing).and_then(parse).map(Arc::new),
        }
    }
}

fn parse(pem: &[u8]) -> Result<Vec<Vec<u8>>, AuthorityProblem> {
    let certificates = CertificateDer::pem_slice_iter(pem).take(MOST + 1);
    let certificates: Vec<CertificateDer<'_>> = certificates
        .collect::<Result<_, _>>()
        .map_err(|_| AuthorityProblem::Unreadable)?;
    if certificates.len() > MOST {
        return Err(AuthorityProblem::TooMany);
    }
    let is_certificate = |der: &CertificateDer<'_>| x509_parser::certificate::X509Certificate::from_der(der).is_ok();
    if certificates.is_empty() || !certificates.iter().all(is_certificate) {
        return Err(AuthorityProblem::Unreadable);
    }
    Ok(certificates.iter().map(|certificate| certificate.to_vec()).collect())
}

#[cfg(test)]
mod tests;
