//! The status of each kind, as compact as planning can hold it for a hundred thousand routes.

use std::{fmt, net::IpAddr};

use gatewright_ir::Text;

use super::Condition;
use crate::{Key, object::ParentRef};

/// The status of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Of a GatewayClass.
    GatewayClass(ClassStatus),
    /// Of a Gateway.
    Gateway(GatewayStatus),
    /// Of a ListenerSet.
    ListenerSet(SetStatus),
    /// Of a route, of whichever kind.
    Route(RouteStatus),
    /// Of a policy.
    Policy(PolicyStatus),
}

/// The status of a GatewayClass.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassStatus {
    /// The generation it answers to.
    pub generation: i64,
    /// Accepted and, where the definitions of Gateway API can be read, SupportedVersion.
    pub conditions: Vec<Condition>,
    /// The features of Gateway API that it supports, by name, in order.
    pub features: &'static [&'static str],
}

/// The status of a Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayStatus {
    /// The generation it answers to.
    pub generation: i64,
    /// Addresses that accept connections.
    pub addresses: Vec<Address>,
    /// How many ListenerSets add to it.
    pub attached_sets: u32,
    /// Accepted, Programmed, ResolvedRefs if it refers to something itself and, if they hold, DefaultGateway and
    /// InsecureFrontendValidationMode.
    pub conditions: Vec<Condition>,
    /// One per listener, in order.
    pub listeners: Vec<ListenerStatus>,
}

/// The status of a ListenerSet.
#[derive(Clone, Debug, PartialEq)]
pub struct SetStatus {
    /// The generation it answers to.
    pub generation: i64,
    /// Accepted and Programmed.
    pub conditions: Vec<Condition>,
    /// One per listener, in order.
    pub listeners: Vec<ListenerStatus>,
}

/// An address of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// An IP address.
    Ip(IpAddr),
    /// A name that DNS knows.
    Hostname(Text),
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(out, "{address}"),
            Self::Hostname(name) => out.write_str(name),
        }
    }
}

/// The status of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerStatus {
    /// The listener.
    pub name: Text,
    /// How many routes are attached.
    pub attached: u32,
    /// The kinds of routes that can attach, all of Gateway API's group.
    pub kinds: Vec<&'static str>,
    /// Accepted, Conflicted, Programmed, ResolvedRefs and, if it holds, OverlappingTLSConfig.
    pub conditions: Vec<Condition>,
}

/// The status of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RouteStatus {
    /// The generation it answers to.
    pub generation: i64,
    /// One per parent that is ours.
    pub parents: Box<[ParentStatus]>,
    /// Parents that do not exist. Kubernetes gets no entry for them, for nobody knows whose they are; a person who
    /// checks files wants to hear of them.
    pub dangling: Box<[ParentRef]>,
}

/// The status of a route at one parent.
#[derive(Clone, Debug, PartialEq)]
pub struct ParentStatus {
    /// The parent, as written.
    pub parent: ParentRef,
    /// Accepted, ResolvedRefs and, if it holds, PartiallyInvalid.
    pub conditions: Box<[Condition]>,
}

/// The status of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyStatus {
    /// The generation it answers to.
    pub generation: i64,
    /// The Gateways for whose requests it counts.
    pub gateways: Box<[Key]>,
    /// Accepted and, where it refers to something, ResolvedRefs; the same for all of them.
    pub conditions: Box<[Condition]>,
}

/// What a condition belongs to within an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope<'a> {
    /// The object itself.
    Object,
    /// A listener.
    Listener(&'a Text),
    /// A route's parent.
    Parent(&'a ParentRef),
    /// A Gateway that a policy has to do with.
    Ancestor(&'a Key),
}

impl Status {
    /// All conditions, with what they belong to.
    pub fn conditions(&self) -> Vec<(Scope<'_>, &Condition)> {
        let mut all = Vec::new();
        match self {
            Self::GatewayClass(status) => {
                all.extend(status.conditions.iter().map(|condition| (Scope::Object, condition)));
            }
            Self::Gateway(GatewayStatus {
                conditions, listeners, ..
            })
            | Self::ListenerSet(SetStatus {
                conditions, listeners, ..
            }) => {
                all.extend(conditions.iter().map(|condition| (Scope::Object, condition)));
                for listener in listeners {
                    let scope = Scope::Listener(&listener.name);
                    all.extend(listener.conditions.iter().map(|condition| (scope.clone(), condition)));
                }
            }
            Self::Route(status) => {
                for parent in &status.parents {
                    let scope = Scope::Parent(&parent.parent);
                    all.extend(parent.conditions.iter().map(|condition| (scope.clone(), condition)));
                }
            }
            Self::Policy(status) => {
                for gateway in &status.gateways {
                    let scope = Scope::Ancestor(gateway);
                    all.extend(status.conditions.iter().map(|condition| (scope.clone(), condition)));
                }
            }
        }
        all
    }

    /// The generation it answers to.
    pub fn generation(&self) -> i64 {
        match self {
            Self::GatewayClass(status) => status.generation,
            Self::Gateway(status) => status.generation,
            Self::ListenerSet(status) => status.generation,
            Self::Route(status) => status.generation,
            Self::Policy(status) => status.generation,
        }
    }
}
