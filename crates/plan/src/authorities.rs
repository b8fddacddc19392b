//! Certificates of authorities that Gateways and policies refer to.

use std::sync::Arc;

use gatewright_api::Kind;
use gatewright_ir::{Authority, Text};
use gatewright_world::{
    World,
    desired::Reason,
    object::{Authorities, ObjectRef},
    origin,
    resolve::{Granted, Referrer, Refused},
};

use crate::gateway::Trouble;

/// Who asks.
pub(crate) struct Asking<'a> {
    pub(crate) world: &'a World,
    pub(crate) kind: Kind,
    pub(crate) namespace: &'a Text,
    /// What it shows when the object is no ConfigMap: each kind has its own word for it.
    pub(crate) wrong_kind: Reason,
}

/// The authorities that are there and may be used, and the first trouble with the others.
pub(crate) fn resolve(asking: &Asking<'_>, references: &[ObjectRef]) -> (Vec<Arc<Authority>>, Option<Trouble>) {
    let mut found = Vec::new();
    let mut trouble = None;
    for reference in references {
        match resolve_one(asking, reference) {
            Ok(authority) => found.push(Arc::new(authority)),
            Err(error) => _ = trouble.get_or_insert(error),
        }
    }
    (found, trouble)
}

fn resolve_one(asking: &Asking<'_>, reference: &ObjectRef) -> Result<Authority, Trouble> {
    let Asking {
        world,
        kind,
        namespace,
        wrong_kind,
    } = asking;
    let shown = reference.key(namespace);
    let invalid = |message: String| Trouble::new(Reason::InvalidCACertificateRef, message);
    let from = Referrer::Namespaced(*kind, namespace);
    let granted: Granted<Authorities> =
        world
            .resolve(from, reference.as_reference())
            .map_err(|refused| match refused {
                Refused::InvalidKind => {
                    let ObjectRef { group, kind, .. } = reference;
                    let message = format!("authorities must be in a ConfigMap, not in a {kind} of group {group:?}");
                    Trouble::new(*wrong_kind, message)
                }
                Refused::NotPermitted => {
                    let message = format!(
                        "no ReferenceGrant in the namespace of ConfigMap {shown} lets {kind}s of namespace {namespace} use it"
                    );
                    Trouble::new(Reason::RefNotPermitted, message)
                }
                Refused::NotFound => invalid(format!("ConfigMap {shown} does not exist")),
            })?;
    match world.read(&granted).map(|map| &map.certificates) {
        Some(Ok(certificates)) => Ok(Authority {
            origin: origin::object(Kind::ConfigMap, granted.key()),
            certificates: Arc::clone(certificates),
        }),
        Some(Err(problem)) => Err(invalid(format!("ConfigMap {shown} cannot be used: {problem}"))),
        None => Err(invalid(format!("ConfigMap {shown} does not exist"))),
    }
}
