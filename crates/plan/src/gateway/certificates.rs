//! Certificates that listeners present and that a Gateway shows to backends, resolved from Secrets.

use std::sync::Arc;

use gatewright_api::Kind;
use gatewright_ir::{Certificate, Text};
use gatewright_world::{
    Validity, World,
    desired::Reason,
    object::{ObjectRef, Secret},
    origin,
    resolve::{Granted, Referrer, Refused},
};

use super::{Frame, Trouble};

/// The certificates of an earlier frame. What is equal is shared, so that data planes see what did not change.
pub(super) struct Known<'a>(Vec<&'a Arc<Certificate>>);

impl<'a> Known<'a> {
    pub(super) fn of(previous: Option<&'a Frame>) -> Self {
        let frames = previous.into_iter();
        let known = frames.flat_map(|frame| {
            let listeners = frame.listeners.iter();
            let presented = listeners.flat_map(|listener| &listener.certificates);
            presented.chain(&frame.identity)
        });
        Self(known.collect())
    }

    pub(super) fn share(&self, certificate: Certificate) -> Arc<Certificate> {
        let known = self.0.iter().find(|known| ****known == certificate);
        known.map_or_else(|| Arc::new(certificate), |known| Arc::clone(known))
    }
}

/// Who asks.
pub(super) struct Asking<'a> {
    pub(super) world: &'a World,
    pub(super) kind: Kind,
    pub(super) namespace: &'a Text,
    /// What it shows when the Secret is not there or cannot be used.
    pub(super) invalid: Reason,
}

/// The certificate of a Secret. One that is not valid now is presented all the same: it is for whoever sees it to judge,
/// and not to present it would help nobody. It comes with what there is to tell.
pub(super) fn resolve(asking: &Asking<'_>, reference: &ObjectRef) -> Result<(Certificate, Option<Trouble>), Trouble> {
    let Asking {
        world,
        kind,
        namespace,
        invalid,
    } = asking;
    let shown = reference.key(namespace);
    let invalid = |message: String| Trouble::new(*invalid, message);
    let from = Referrer::Namespaced(*kind, namespace);
    let granted: Granted<Secret> = world
        .resolve(from, reference.as_reference())
        .map_err(|refused| match refused {
            Refused::InvalidKind => {
                let ObjectRef { group, kind, .. } = reference;
                invalid(format!(
                    "a certificate must be a Secret of the core group, not a {kind} of group {group:?}"
                ))
            }
            Refused::NotPermitted => {
                let message = format!(
                    "no ReferenceGrant in the namespace of Secret {shown} lets {kind}s of namespace {namespace} use it"
                );
                Trouble::new(Reason::RefNotPermitted, message)
            }
            Refused::NotFound => invalid(format!("Secret {shown} does not exist")),
        })?;
    let material = match world.read(&granted).map(|secret| &secret.tls) {
        Some(Ok(material)) => material,
        Some(Err(problem)) => return Err(invalid(format!("Secret {shown} cannot be used: {problem}"))),
        None => return Err(invalid(format!("Secret {shown} does not exist"))),
    };
    let trouble = match world.validity(&granted) {
        Validity::Valid => None,
        Validity::NotAfter(time) => Some(format!("has expired on {}", date(time))),
        Validity::NotBefore(time) => Some(format!("is not valid before {}", date(time))),
    };
    let trouble = trouble.map(|when| {
        invalid(format!(
            "the certificate in Secret {shown} {when}; it is presented until there is another"
        ))
    });
    let certificate = Certificate {
        origin: origin::object(Kind::Secret, granted.key()),
        names: material.names.clone(),
        chain: material.chain.clone(),
        key: material.key.clone(),
        staple: material.staple.clone(),
    };
    Ok((certificate, trouble))
}

/// A time for people, in UTC.
fn date(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds);
    time.map_or_else(|_| format!("second {seconds}"), |time| time.to_string())
}
