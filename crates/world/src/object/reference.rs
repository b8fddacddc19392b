//! A reference to an object of any kind, as a Gateway, a ListenerSet or a policy writes it.

use gatewright_ir::Text;

use crate::{Interner, Key, resolve::Reference};

/// A reference to an object, not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// The group; empty for the core group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, if it names one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
}

impl ObjectRef {
    /// Reads one; without a kind, it means a Secret. The API has a type of its own for every place where one can stand.
    pub(super) fn reduce(
        (group, kind): (Option<&str>, Option<&str>),
        (namespace, name): (Option<&str>, &str),
        names: &mut Interner,
    ) -> Self {
        Self {
            group: names.text(group.unwrap_or_default()),
            kind: names.text(kind.unwrap_or("Secret")),
            namespace: names.optional(namespace),
            name: names.text(name),
        }
    }

    /// The object it names, from an object in this namespace. Says nothing about whether it may be used.
    pub fn key(&self, own: &Text) -> Key {
        Key {
            namespace: self.namespace.as_ref().unwrap_or(own).clone(),
            name: self.name.clone(),
        }
    }

    /// As the resolver wants it.
    pub fn as_reference(&self) -> Reference<'_> {
        Reference {
            group: &self.group,
            kind: &self.kind,
            namespace: self.namespace.as_ref(),
            name: &self.name,
        }
    }
}
