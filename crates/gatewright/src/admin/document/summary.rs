//! What a table shows of each object: what is declared, and whether its conditions hold.

use std::{fmt::Write as _, sync::Arc};

use gatewright_api::Kind;
use gatewright_plan::StatusKey;
use gatewright_world::{
    desired::{Condition, ConditionKind, ListenerStatus, State, Status},
    object::Listener,
};
use serde::{Deserialize, Serialize};

use crate::board::{Declared, Shown};

/// Whether a condition holds, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) holds: bool,
    pub(crate) reason: String,
}

/// A GatewayClass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ClassSummary {
    pub(crate) name: String,
    pub(crate) controller: String,
    pub(crate) accepted: Option<Verdict>,
}

/// A Gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GatewaySummary {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) addresses: Vec<String>,
    pub(crate) accepted: Option<Verdict>,
    pub(crate) programmed: Option<Verdict>,
    pub(crate) listeners: Vec<ListenerSummary>,
}

/// A ListenerSet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SetSummary {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The Gateway that it adds to, `namespace/name`.
    pub(crate) gateway: Option<String>,
    pub(crate) accepted: Option<Verdict>,
    pub(crate) programmed: Option<Verdict>,
    pub(crate) listeners: Vec<ListenerSummary>,
}

/// A policy for backends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicySummary {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The Services that it is for, each with its port if one is named.
    pub(crate) targets: Vec<String>,
    /// The Gateways for whose requests it counts, `namespace/name`.
    pub(crate) gateways: Vec<String>,
    pub(crate) accepted: Option<Verdict>,
    pub(crate) resolved_refs: Option<Verdict>,
}

/// A listener.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListenerSummary {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) port: u16,
    pub(crate) hostname: String,
    pub(crate) attached_routes: u32,
    pub(crate) accepted: Option<Verdict>,
    pub(crate) programmed: Option<Verdict>,
    pub(crate) resolved_refs: Option<Verdict>,
}

/// A route.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RouteSummary {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) hostnames: Vec<String>,
    pub(crate) parents: Vec<ParentSummary>,
}

/// A parent of a route.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ParentSummary {
    /// `namespace/name`, with the listener or port if one is named, and with the kind if it is no Gateway.
    pub(crate) parent: String,
    pub(crate) accepted: Option<Verdict>,
    pub(crate) resolved_refs: Option<Verdict>,
}

fn verdict(conditions: &[Condition], kind: ConditionKind) -> Option<Verdict> {
    let condition = conditions.iter().find(|condition| condition.kind == kind)?;
    Some(Verdict {
        holds: condition.state == State::True,
        reason: condition.reason.as_str().to_owned(),
    })
}

impl ClassSummary {
    pub(super) fn of(id: &StatusKey, shown: &Shown) -> Option<Self> {
        let Declared::Class(class) = &shown.declared else {
            return None;
        };
        let conditions = match &shown.status {
            Some(Status::GatewayClass(status)) => status.conditions.as_slice(),
            _ => &[],
        };
        Some(Self {
            name: id.key.name.to_string(),
            controller: class.controller.to_string(),
            accepted: verdict(conditions, ConditionKind::Accepted),
        })
    }
}

impl GatewaySummary {
    pub(crate) fn of(id: &StatusKey, shown: &Shown) -> Option<Self> {
        let Declared::Gateway(gateway) = &shown.declared else {
            return None;
        };
        let status = match &shown.status {
            Some(Status::Gateway(status)) => Some(status),
            _ => None,
        };
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        let listeners = listeners(&gateway.listeners, status.map(|status| status.listeners.as_slice()));
        Some(Self {
            namespace: id.key.namespace.to_string(),
            name: id.key.name.to_string(),
            class: gateway.class.to_string(),
            addresses: status
                .iter()
                .flat_map(|status| &status.addresses)
                .map(ToString::to_string)
                .collect(),
            accepted: verdict(conditions, ConditionKind::Accepted),
            programmed: verdict(conditions, ConditionKind::Programmed),
            listeners,
        })
    }
}

impl SetSummary {
    pub(super) fn of(id: &StatusKey, shown: &Shown) -> Option<Self> {
        let Declared::Set(set) = &shown.declared else {
            return None;
        };
        let status = match &shown.status {
            Some(Status::ListenerSet(status)) => Some(status),
            _ => None,
        };
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        Some(Self {
            namespace: id.key.namespace.to_string(),
            name: id.key.name.to_string(),
            gateway: set.gateway.as_ref().map(ToString::to_string),
            accepted: verdict(conditions, ConditionKind::Accepted),
            programmed: verdict(conditions, ConditionKind::Programmed),
            listeners: listeners(&set.listeners, status.map(|status| status.listeners.as_slice())),
        })
    }
}

impl PolicySummary {
    pub(super) fn of(id: &StatusKey, shown: &Shown) -> Option<Self> {
        let targets = match &shown.declared {
            Declared::Policy(policy) => policy.services.iter().map(ToString::to_string).collect(),
            Declared::TlsPolicy(policy) => {
                let text = |service: &str, port: Option<&str>| match port {
                    Some(port) => format!("{service}/{port}"),
                    None => service.to_owned(),
                };
                let targets = policy.targets.iter();
                targets
                    .map(|target| text(&target.service, target.port.as_deref()))
                    .collect()
            }
            _ => return None,
        };
        let status = match &shown.status {
            Some(Status::Policy(status)) => Some(status),
            _ => None,
        };
        let conditions = status.map(|status| &status.conditions[..]).unwrap_or_default();
        let gateways = status.iter().flat_map(|status| &status.gateways);
        Some(Self {
            kind: id.kind.as_str().to_owned(),
            namespace: id.key.namespace.to_string(),
            name: id.key.name.to_string(),
            targets,
            gateways: gateways.map(ToString::to_string).collect(),
            accepted: verdict(conditions, ConditionKind::Accepted),
            resolved_refs: verdict(conditions, ConditionKind::ResolvedRefs),
        })
    }
}

/// The listeners of a Gateway or ListenerSet.
fn listeners(declared: &[Arc<Listener>], statuses: Option<&[ListenerStatus]>) -> Vec<ListenerSummary> {
    let summary = |listener: &Arc<Listener>| {
        let status = statuses.into_iter().flatten().find(|known| known.name == listener.name);
        let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
        ListenerSummary {
            name: listener.name.to_string(),
            protocol: listener.protocol.as_str().to_owned(),
            port: listener.port,
            hostname: listener.hostname.to_string(),
            attached_routes: status.map_or(0, |status| status.attached),
            accepted: verdict(conditions, ConditionKind::Accepted),
            programmed: verdict(conditions, ConditionKind::Programmed),
            resolved_refs: verdict(conditions, ConditionKind::ResolvedRefs),
        }
    };
    declared.iter().map(summary).collect()
}

impl RouteSummary {
    pub(super) fn of(id: &StatusKey, shown: &Shown) -> Option<Self> {
        let Declared::Route(route) = &shown.declared else {
            return None;
        };
        let statuses = match &shown.status {
            Some(Status::Route(status)) => &status.parents[..],
            _ => &[],
        };
        // Default Gateways are parents that the route does not name.
        let unnamed = statuses.iter().map(|status| &status.parent);
        let unnamed = unnamed.filter(|parent| !route.parents.contains(parent));
        let parents = route.parents.iter().chain(unnamed).map(|parent| {
            let status = statuses.iter().find(|known| known.parent == *parent);
            let conditions = status.map(|status| &status.conditions[..]).unwrap_or_default();
            let namespace = parent.namespace.as_deref().unwrap_or(&id.key.namespace);
            let mut text = format!("{namespace}/{}", parent.name);
            for part in parent
                .section
                .iter()
                .map(ToString::to_string)
                .chain(parent.port.map(|port| port.to_string()))
            {
                text.push('/');
                text.push_str(&part);
            }
            if &*parent.kind != Kind::Gateway.as_str() {
                let _ = write!(text, "({})", parent.kind);
            }
            ParentSummary {
                parent: text,
                accepted: verdict(conditions, ConditionKind::Accepted),
                resolved_refs: verdict(conditions, ConditionKind::ResolvedRefs),
            }
        });
        debug_assert!(id.kind.is_route());
        Some(Self {
            kind: id.kind.as_str().to_owned(),
            namespace: id.key.namespace.to_string(),
            name: id.key.name.to_string(),
            hostnames: route.hostnames.iter().map(ToString::to_string).collect(),
            parents: parents.collect(),
        })
    }
}
