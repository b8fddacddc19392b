//! The one place where a reference from one object to another is resolved.
//!
//! [`World::resolve`] checks kind, namespace and ReferenceGrant, and gives a [`Granted`] that nothing else can make. What
//! lies behind a reference (a Secret's key, a Service's endpoints) can be read only with one, so that no branch of the
//! planner can forget the check. Grants are inputs of the change set: when one is revoked, whoever holds a `Granted` because
//! of it is planned again and no longer gets one.

use std::marker::PhantomData;

use gatewright_api::Kind;
use gatewright_ir::Text;

use crate::{
    Key, World,
    object::{Authorities, Config, Secret, Service},
};

/// Who refers.
#[derive(Clone, Copy, Debug)]
pub enum Referrer<'a> {
    /// An object in a namespace: needs a grant to refer outside of it.
    Namespaced(Kind, &'a Text),
    /// A cluster-scoped object, which only administrators write: needs none.
    Cluster,
}

/// What is referred to, as written.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// The group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The namespace; none means the referrer's own.
    pub namespace: Option<&'a Text>,
    /// The name.
    pub name: &'a Text,
}

/// Why a reference does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The kind cannot stand there.
    InvalidKind,
    /// It leads into another namespace, and no grant allows it. Says nothing about whether the object exists.
    NotPermitted,
    /// The object does not exist.
    NotFound,
}

/// Leave to read one object. Only [`World::resolve`] makes it.
#[derive(Debug)]
pub struct Granted<T> {
    key: Key,
    kind: PhantomData<fn() -> T>,
}

impl<T> Granted<T> {
    /// The object.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl<T> Clone for Granted<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            kind: PhantomData,
        }
    }
}

/// A kind that can be referred to.
pub trait Referent: Sized {
    /// The kind.
    const KIND: Kind;
    /// The object itself.
    #[doc(hidden)]
    fn find<'a>(world: &'a World, key: &Key) -> Option<&'a Self>;
}

impl Referent for Service {
    const KIND: Kind = Kind::Service;
    fn find<'a>(world: &'a World, key: &Key) -> Option<&'a Self> {
        world.services.get(key)
    }
}

impl Referent for Secret {
    const KIND: Kind = Kind::Secret;
    fn find<'a>(world: &'a World, key: &Key) -> Option<&'a Self> {
        world.secrets.get(key)
    }
}

impl Referent for Authorities {
    const KIND: Kind = Kind::ConfigMap;
    fn find<'a>(world: &'a World, key: &Key) -> Option<&'a Self> {
        world.config_maps.get(key)
    }
}

impl Referent for Config {
    const KIND: Kind = Kind::GatewayConfig;
    fn find<'a>(world: &'a World, key: &Key) -> Option<&'a Self> {
        world.configs.get(key).map(|held| &held.config)
    }
}

impl World {
    /// Resolves a reference.
    pub fn resolve<T: Referent>(&self, from: Referrer<'_>, to: Reference<'_>) -> Result<Granted<T>, Refused> {
        if to.group != T::KIND.group() || to.kind != T::KIND.as_str() {
            return Err(Refused::InvalidKind);
        }
        let own = match from {
            Referrer::Namespaced(_, namespace) => Some(namespace),
            Referrer::Cluster => None,
        };
        let namespace = to.namespace.or(own).ok_or(Refused::NotFound)?;
        let key = Key {
            namespace: namespace.clone(),
            name: to.name.clone(),
        };
        // Permission before existence: who may not refer must not learn what exists.
        if let Referrer::Namespaced(kind, own) = from
            && own != namespace
            && !self.grants.allow(kind, own, T::KIND, &key)
        {
            return Err(Refused::NotPermitted);
        }
        if T::find(self, &key).is_none() {
            return Err(Refused::NotFound);
        }
        Ok(Granted { key, kind: PhantomData })
    }

    /// What a reference leads to; none when the object has gone since it was resolved.
    pub fn read<T: Referent>(&self, granted: &Granted<T>) -> Option<&T> {
        T::find(self, &granted.key)
    }
}

#[cfg(test)]
mod tests;
