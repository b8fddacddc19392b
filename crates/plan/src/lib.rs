//! World to plan: what each data plane must do, and what each object must show.
//!
//! A pure, synchronous, total function of the world, computed incrementally: [`Planner::update`] looks up what depends on
//! the changed objects and computes that again, nothing else. The result equals planning from scratch; a property test
//! says so. There is no I/O, no clock and no error here: what is wrong with an object becomes a condition on it.

mod authorities;
mod class;
mod cluster;
mod features;
mod gateway;
mod planner;
mod policy;
mod route;
mod version;

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use gatewright_api::{Kind, config::Entry};
use gatewright_ir::{SessionKey, Text};
use gatewright_world::{
    Key,
    desired::{Owned, OwnedName, Status},
};

pub use planner::Planner;

/// What planning depends on besides the world; fixed for the life of a process.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// GatewayClasses of this controller name are ours.
    pub controller_name: Text,
    /// The pool of addresses of `entry: Host` where no GatewayConfig names one.
    pub host_addresses: Vec<IpAddr>,
    /// Whether backends may be loopback and link-local addresses: on one's own host yes, in a cluster no, where they
    /// would lead into the proxy's own network.
    pub allow_local_backends: bool,
    /// How Gateways are reached where no GatewayConfig says it: `Host` with files, `LoadBalancer` in a cluster.
    pub default_entry: Entry,
    /// The zone of this replica, if it is known: endpoints that are meant for it come first.
    pub zone: Option<Text>,
    /// What makes the tokens of session persistence unreadable and unforgeable: the same on every replica, so that each
    /// honours what another chose, and never shown.
    pub session_key: SessionKey,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            controller_name: "gatewright.dev/gateway-controller".into(),
            host_addresses: vec![IpAddr::V4(Ipv4Addr::UNSPECIFIED)],
            allow_local_backends: true,
            default_entry: Entry::Host,
            zone: None,
            // For tests and for whoever only looks at a plan; who serves traffic sets a secret one.
            session_key: SessionKey::new([0; 32]),
        }
    }
}

/// An object that shows a status of ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatusKey {
    /// The kind.
    pub kind: Kind,
    /// Its namespace (empty for a GatewayClass) and name.
    pub key: Key,
}

/// What an update changed.
#[derive(Clone, Debug, Default)]
pub struct Delta {
    /// Whether any Gateway's IR is different.
    pub gateways_changed: bool,
    /// Statuses that are different; none where an object is gone or no longer ours.
    pub statuses: Vec<(StatusKey, Option<Status>)>,
    /// Objects of ours that are different; none where one is no longer needed.
    pub owned: Vec<(OwnedName, Option<Arc<Owned>>)>,
    /// GatewayClasses that came into use or fell out of it: one that has Gateways must not vanish.
    pub classes_in_use: Vec<(Text, bool)>,
}
