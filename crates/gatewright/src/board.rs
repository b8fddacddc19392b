//! The status board: every GatewayClass, Gateway, route and policy with its status and the times of its conditions.
//!
//! Owned by the spine, which hands in what each turn changed. A condition keeps its time while its state stays. Objects
//! that nobody is responsible for stand here too, without a status, as they would in Kubernetes.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_api::Kind;
use gatewright_plan::StatusKey;
use gatewright_world::{
    ChangeSet, Key, World,
    desired::{Stamps, Status},
    object::{Gateway, GatewayClass, ListenerSet, Meta, Route, TlsPolicy, TrafficPolicy},
};
use imbl::OrdMap;

use crate::{diagnose, finding::Finding};

/// The shown objects, in the order in which they are listed.
pub(crate) type Objects = OrdMap<StatusKey, Arc<Shown>>;

/// New statuses; none for an object that is gone or no longer ours.
pub(crate) type Statuses = BTreeMap<StatusKey, Option<Status>>;

/// An object as it is shown.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) declared: Declared,
    pub(crate) status: Option<Status>,
    pub(crate) stamps: Stamps,
}

/// What is declared, shared with the world.
#[derive(Clone)]
pub(crate) enum Declared {
    Class(Arc<GatewayClass>),
    Gateway(Arc<Gateway>),
    Route(Arc<Route>),
    Set(Arc<ListenerSet>),
    Policy(Arc<TrafficPolicy>),
    TlsPolicy(Arc<TlsPolicy>),
}

impl Declared {
    pub(crate) fn meta(&self) -> Meta {
        match self {
            Self::Class(class) => class.meta,
            Self::Gateway(gateway) => gateway.meta,
            Self::Route(route) => route.meta,
            Self::Set(set) => set.meta,
            Self::Policy(policy) => policy.meta,
            Self::TlsPolicy(policy) => policy.meta,
        }
    }
}

/// The board.
#[derive(Default)]
pub(crate) struct Board {
    objects: Objects,
}

impl Board {
    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Takes over which objects are declared.
    pub(crate) fn declare(&mut self, world: &World, changes: &ChangeSet) {
        for name in &changes.classes {
            let declared = world.class(name).cloned().map(Declared::Class);
            self.put(Kind::GatewayClass, Key::new("", name.clone()), declared);
        }
        for key in &changes.gateways {
            self.put(
                Kind::Gateway,
                key.clone(),
                world.gateway(key).cloned().map(Declared::Gateway),
            );
        }
        for key in &changes.routes {
            self.put(
                key.kind.kind(),
                key.key.clone(),
                world.route(key).cloned().map(Declared::Route),
            );
        }
        for key in &changes.sets {
            let declared = world.set(key).cloned().map(Declared::Set);
            self.put(Kind::ListenerSet, key.clone(), declared);
        }
        for key in &changes.tls_policies {
            let declared = world.tls_policy(key).cloned().map(Declared::TlsPolicy);
            self.put(Kind::BackendTlsPolicy, key.clone(), declared);
        }
        for key in &changes.policies {
            self.put(
                Kind::BackendTrafficPolicy,
                key.clone(),
                world.policy(key).cloned().map(Declared::Policy),
            );
        }
    }

    fn put(&mut self, kind: Kind, key: Key, declared: Option<Declared>) {
        let id = StatusKey { kind, key };
        let Some(declared) = declared else {
            self.objects.remove(&id);
            return;
        };
        let shown = match self.objects.get(&id) {
            Some(shown) => Shown {
                declared,
                ..Shown::clone(shown)
            },
            None => Shown {
                declared,
                status: None,
                stamps: Stamps::default(),
            },
        };
        self.objects.insert(id, Arc::new(shown));
    }

    /// Takes over new statuses at a time (RFC 3339), and says what has become a problem by that.
    pub(crate) fn show(&mut self, statuses: Statuses, now: &str) -> Vec<Finding> {
        let mut fresh = Vec::new();
        for (id, status) in statuses {
            let Some(shown) = self.objects.get(&id) else { continue };
            let mut shown = Shown::clone(shown);
            match &status {
                Some(status) => shown.stamps.update(status, now),
                None => shown.stamps = Stamps::default(),
            }
            let before = std::mem::replace(&mut shown.status, status);
            let name = diagnose::named(&id);
            let known = before
                .map(|status| diagnose::conditions(&name, &status))
                .unwrap_or_default();
            let found = shown
                .status
                .iter()
                .flat_map(|status| diagnose::conditions(&name, status));
            fresh.extend(found.filter(|finding| !known.contains(finding)));
            self.objects.insert(id, Arc::new(shown));
        }
        fresh
    }
}
