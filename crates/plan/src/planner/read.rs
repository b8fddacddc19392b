//! What the planner knows now, for whoever looks at it as a whole.

use std::sync::Arc;

use gatewright_api::Kind;
use gatewright_ir::{Gateway, Origin, Text};
use gatewright_world::{
    Key,
    desired::{Owned, OwnedName, Status},
    object::{RouteKey, RouteKind},
};
use imbl::OrdMap;

use super::Planner;
use crate::StatusKey;

impl Planner {
    /// What every data plane must do now.
    pub fn gateways(&self) -> &OrdMap<Origin, Arc<Gateway>> {
        &self.ir
    }

    /// The status of an object; none if it is not ours.
    pub fn status(&self, target: &StatusKey) -> Option<Status> {
        let StatusKey { kind, key } = target;
        match kind {
            Kind::GatewayClass => self
                .classes
                .get(&key.name)
                .map(|plan| Status::GatewayClass(plan.status.clone())),
            Kind::Gateway => self.gateways.plans.get(key)?.status.as_deref().cloned(),
            Kind::ListenerSet => self.sets.get(key).cloned().map(Status::ListenerSet),
            Kind::BackendTrafficPolicy | Kind::BackendTlsPolicy => {
                self.policies.get(target).cloned().map(Status::Policy)
            }
            kind => {
                let kind = RouteKind::of(*kind)?;
                let key = key.clone();
                let plan = self.routes.get(&RouteKey { key, kind })?;
                Some(Status::Route(plan.status.clone()))
            }
        }
    }

    /// The statuses of all objects that are ours.
    pub fn statuses(&self) -> Vec<(StatusKey, Status)> {
        let classes = self.classes.keys().map(|name| {
            (
                Kind::GatewayClass,
                Key {
                    namespace: "".into(),
                    name: name.clone(),
                },
            )
        });
        let gateways = self.gateways.plans.keys().map(|key| (Kind::Gateway, key.clone()));
        let mut routes: Vec<_> = self
            .routes
            .keys()
            .map(|route| (route.kind.kind(), route.key.clone()))
            .collect();
        routes.sort();
        let policies = self.policies.keys().map(|target| (target.kind, target.key.clone()));
        let sets = self.sets.keys().map(|key| (Kind::ListenerSet, key.clone()));
        let keys = classes
            .chain(gateways)
            .chain(sets)
            .chain(routes)
            .chain(policies)
            .map(|(kind, key)| StatusKey { kind, key });
        keys.filter_map(|key| self.status(&key).map(|status| (key, status)))
            .collect()
    }

    /// The objects that should be there for our Gateways.
    pub fn owned(&self) -> impl Iterator<Item = (&OwnedName, &Arc<Owned>)> {
        self.owned.iter()
    }

    /// Whether a GatewayClass is ours and has Gateways.
    pub fn class_in_use(&self, name: &str) -> bool {
        self.classes_in_use.contains(name)
    }

    /// The GatewayClasses that are ours and have Gateways.
    pub fn classes_in_use(&self) -> impl Iterator<Item = &Text> {
        self.classes_in_use.iter()
    }
}
