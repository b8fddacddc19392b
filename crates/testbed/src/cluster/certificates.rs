//! The keys and certificates of a cluster: made new for every cluster, kept only in its folder.
//!
//! One authority signs two certificates: one with which the API server and the node serve, and one with which an
//! administrator (and the control plane itself) asks. ServiceAccount tokens are signed with a key of their own.

use std::{
    fs,
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use serde_json::{Value, json};

/// Everything that is signed, as files and as text.
#[derive(Clone, Debug)]
pub(super) struct Certificates {
    /// The certificate of the authority.
    pub(super) authority: Pem,
    /// What servers show.
    pub(super) serving: Identity,
    /// What an administrator shows.
    pub(super) administrator: Identity,
    /// The key that signs ServiceAccount tokens, and the one that verifies them.
    pub(super) service_account_key: PathBuf,
    pub(super) service_account_public_key: PathBuf,
}

/// A certificate and its key.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) certificate: Pem,
    pub(super) key: Pem,
}

/// A text, and the file that holds it.
#[derive(Clone, Debug)]
pub(super) struct Pem {
    pub(super) text: String,
    pub(super) file: PathBuf,
}

impl Pem {
    fn write(folder: &Path, name: &str, text: String) -> anyhow::Result<Self> {
        let file = folder.join(name);
        fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { text, file })
    }

    fn base64(&self) -> anyhow::Result<Value> {
        Ok(serde_json::to_value(ByteString(self.text.clone().into_bytes()))?)
    }
}

impl Certificates {
    /// Makes all of them, for a control plane at an address.
    pub(super) fn make(folder: &Path, address: Ipv4Addr) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        let authority = authority()?;
        let names = [
            "localhost",
            "127.0.0.1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        let names = names.map(str::to_owned).into_iter().chain([address.to_string()]);
        let mut serving = CertificateParams::new(names.collect::<Vec<_>>())?;
        serving
            .distinguished_name
            .push(DnType::CommonName, "gatewright-testbed");
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let mut administrator = CertificateParams::default();
        administrator
            .distinguished_name
            .push(DnType::CommonName, "administrator");
        administrator
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        administrator.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let tokens = KeyPair::generate()?;
        Ok(Self {
            authority: Pem::write(folder, "authority.crt", authority.pem())?,
            serving: sign(serving, &authority, folder, "serving")?,
            administrator: sign(administrator, &authority, folder, "administrator")?,
            service_account_key: Pem::write(folder, "service-accounts.key", tokens.serialize_pem())?.file,
            service_account_public_key: Pem::write(folder, "service-accounts.pub", tokens.public_key_pem())?.file,
        })
    }

    /// What kubectl and clients need to reach the API server as administrators.
    pub(super) fn kubeconfig(&self, cluster: &str, server: &str) -> anyhow::Result<Value> {
        let name = format!("gatewright-testbed-{cluster}");
        Ok(json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": name,
                "cluster": { "server": server, "certificate-authority-data": self.authority.base64()? },
            }],
            "users": [{
                "name": "administrator",
                "user": {
                    "client-certificate-data": self.administrator.certificate.base64()?,
                    "client-key-data": self.administrator.key.base64()?,
                },
            }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": "administrator" } }],
            "current-context": name,
        }))
    }
}

fn authority() -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut parameters = CertificateParams::default();
    parameters
        .distinguished_name
        .push(DnType::CommonName, "gatewright-testbed-authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?)
}

fn sign(
    mut parameters: CertificateParams,
    authority: &CertifiedIssuer<'static, KeyPair>,
    folder: &Path,
    name: &str,
) -> anyhow::Result<Identity> {
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, authority)?;
    Ok(Identity {
        certificate: Pem::write(folder, &format!("{name}.crt"), certificate.pem())?,
        key: Pem::write(folder, &format!("{name}.key"), key.serialize_pem())?,
    })
}
