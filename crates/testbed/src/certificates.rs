//! Certificates for what is judged and measured: an authority made for the occasion, and what it signs.
//!
//! Used where several programs must show the same certificate, or trust the same authority. A cluster's own are made elsewhere.

use jiff::{Span, Zoned, civil::Date, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, date_time_ymd,
};

/// An authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What a certificate's key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on the curve P-256.
    Ecdsa,
    /// RSA with 2048 bits.
    Rsa,
}

/// A certificate with its key, both as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new one.
    pub fn make() -> anyhow::Result<Self> {
        let mut parameters = CertificateParams::default();
        parameters
            .distinguished_name
            .push(DnType::CommonName, "gatewright-testbed");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        valid_for(&mut parameters, 30)?;
        Ok(Self(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?))
    }

    /// Its own certificate, as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server's certificate for a name, valid from yesterday on for so many days.
    pub fn issue(&self, name: &str, kind: KeyKind, days: i32) -> anyhow::Result<Identity> {
        let mut parameters = CertificateParams::new([name.to_owned()])?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.use_authority_key_identifier_extension = true;
        valid_for(&mut parameters, days)?;
        let key = KeyPair::generate_for(match kind {
            KeyKind::Ecdsa => &PKCS_ECDSA_P256_SHA256,
            KeyKind::Rsa => &PKCS_RSA_SHA256,
        })?;
        Ok(Identity {
            certificate: parameters.signed_by(&key, &self.0)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn valid_for(parameters: &mut CertificateParams, days: i32) -> anyhow::Result<()> {
    let yesterday = Zoned::now().with_time_zone(TimeZone::UTC).date().yesterday()?;
    let day = |date: Date| {
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        date_time_ymd(date.year().into(), month, day)
    };
    parameters.not_before = day(yesterday);
    parameters.not_after = day(yesterday.checked_add(Span::new().try_days(days)?)?);
    Ok(())
}
