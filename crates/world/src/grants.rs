//! All ReferenceGrants, by the namespace that grants.

use std::collections::BTreeMap;

use gatewright_api::Kind;
use gatewright_ir::Text;

use crate::{Key, object::ReferenceGrant};

/// The ReferenceGrants of every namespace. Asked by the resolver alone.
#[derive(Debug, Default)]
pub struct Grants {
    namespaces: BTreeMap<Text, BTreeMap<Text, ReferenceGrant>>,
}

impl Grants {
    /// Stores a grant; tells whether anything changed.
    pub(crate) fn insert(&mut self, key: &Key, grant: ReferenceGrant) -> bool {
        let grants = self.namespaces.entry(key.namespace.clone()).or_default();
        let is_new = grants.get(&key.name) != Some(&grant);
        grants.insert(key.name.clone(), grant);
        is_new
    }

    /// Removes a grant; tells whether it was there.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let Some(grants) = self.namespaces.get_mut(&key.namespace) else {
            return false;
        };
        let was_there = grants.remove(&key.name).is_some();
        if grants.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
        was_there
    }

    /// Whether an object of kind `from` in namespace `from_namespace` may refer to this object of kind `to`.
    pub(crate) fn allow(&self, from: Kind, from_namespace: &str, to: Kind, target: &Key) -> bool {
        let grants = self.namespaces.get(&target.namespace);
        grants.into_iter().flat_map(BTreeMap::values).any(|grant| {
            let may_refer = grant.from.iter().any(|entry| {
                *entry.group == *from.group() && *entry.kind == *from.as_str() && *entry.namespace == *from_namespace
            });
            let may_be_referred_to = grant.to.iter().any(|entry| {
                *entry.group == *to.group()
                    && *entry.kind == *to.as_str()
                    && entry.name.as_ref().is_none_or(|name| *name == target.name)
            });
            may_refer && may_be_referred_to
        })
    }

    /// How many grants there are.
    pub fn len(&self) -> usize {
        self.namespaces.values().map(BTreeMap::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
    }
}
