//! ListenerSet, reduced: listeners that someone adds to a Gateway of others.

use std::sync::Arc;

use gatewright_api::{self as api, GATEWAY_GROUP, Kind, gateways, listenersets as types};

use super::{Listener, Meta, Refusal, filters::recast, http_route::or_refused, listener};
use crate::{Interner, Key};

/// A ListenerSet.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSet {
    /// Generation and age.
    pub meta: Meta,
    /// The Gateway that it wants to add to; none if it names something else.
    pub gateway: Option<Key>,
    /// The listeners, in order.
    pub listeners: Box<[Arc<Listener>]>,
    /// Fields that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

impl ListenerSet {
    pub(crate) fn reduce(set: &api::ListenerSet, names: &mut Interner) -> Self {
        let types::ListenerSetSpec { listeners, parent_ref } = &set.spec;
        let mut refusals = Vec::new();
        let own = set.metadata.namespace.as_deref().unwrap_or_default();
        let types::ListenerSetParentRef {
            group,
            kind,
            name,
            namespace,
        } = parent_ref;
        let is_gateway = group.as_deref().unwrap_or(GATEWAY_GROUP) == Kind::Gateway.group()
            && kind.as_deref().unwrap_or("Gateway") == Kind::Gateway.as_str();
        let gateway = is_gateway.then(|| names.key(namespace.as_deref().unwrap_or(own), name));
        let declared: Vec<gateways::GatewayListeners> = or_refused(recast(listeners, "spec.listeners"), &mut refusals);
        let listeners = declared.iter().enumerate();
        let listeners = listeners.map(|(index, declared)| Arc::new(listener::reduce(declared, index, names)));
        Self {
            meta: Meta::of(&set.metadata),
            gateway,
            listeners: listeners.collect(),
            refusals: refusals.into(),
        }
    }
}

#[cfg(test)]
mod tests;
