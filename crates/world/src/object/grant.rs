//! ReferenceGrant, reduced.

use gatewright_api as api;
use gatewright_ir::Text;

use crate::Interner;

/// A ReferenceGrant: its namespace lets others refer to objects in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceGrant {
    /// Who may refer.
    pub from: Box<[GrantFrom]>,
    /// To what.
    pub to: Box<[GrantTo]>,
}

/// Objects of a kind in a namespace that may refer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantFrom {
    /// The group of the referring kind.
    pub group: Text,
    /// The referring kind.
    pub kind: Text,
    /// The namespace of the referring object.
    pub namespace: Text,
}

/// What may be referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantTo {
    /// The group of the kind referred to.
    pub group: Text,
    /// The kind referred to.
    pub kind: Text,
    /// One object, or all of the kind.
    pub name: Option<Text>,
}

impl ReferenceGrant {
    pub(crate) fn reduce(grant: &api::ReferenceGrant, names: &mut Interner) -> Self {
        let from = grant.spec.from.iter().map(|from| GrantFrom {
            group: names.text(&from.group),
            kind: names.text(&from.kind),
            namespace: names.text(&from.namespace),
        });
        let from = from.collect();
        let to = grant.spec.to.iter().map(|to| GrantTo {
            group: names.text(&to.group),
            kind: names.text(&to.kind),
            name: names.optional(to.name.as_deref().filter(|name| !name.is_empty())),
        });
        let to = to.collect();
        Self { from, to }
    }
}
