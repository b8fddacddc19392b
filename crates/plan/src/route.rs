//! Routes of every kind: where they attach, what they do, what they show.

mod attach;
mod backends;
mod entries;

use std::sync::Arc;

use gatewright_api::{GATEWAY_GROUP, Kind};
use gatewright_ir::{Entry, HostPattern};
use gatewright_world::{
    Key, World,
    desired::{Condition, ConditionKind, ParentStatus, Reason, RouteStatus},
    object::{ParentRef, Refusal, RefusalCause, Route, RouteKey},
};

pub(crate) use attach::is_allowed;
pub(crate) use backends::BackendUse;

use crate::{
    PlanSettings,
    gateway::{Frame, Trouble},
};

/// Kubernetes shows the status of no more parents.
const MOST_PARENTS: usize = 32;

/// A route as planned.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoutePlan {
    /// One per match of each rule.
    pub(crate) entries: Vec<Arc<Entry>>,
    /// The clusters that the entries name, each once.
    pub(crate) backends: Vec<BackendUse>,
    /// Where they go.
    pub(crate) attachments: Vec<Attachment>,
    /// What the route shows.
    pub(crate) status: RouteStatus,
}

/// A route on one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) gateway: Key,
    /// The position of the listener in the Gateway.
    pub(crate) listener: usize,
    pub(crate) hosts: Vec<HostPattern>,
    /// Whether the route is accepted there and counts as attached. One that cannot be honoured does not, and still
    /// answers 500: its requests must not fall through to somebody else's route.
    pub(crate) counts: bool,
}

/// Finds the frame of a Gateway of ours.
pub(crate) trait Frames {
    fn frame(&self, gateway: &Key) -> Option<&Frame>;
}

/// Plans a route. Entries equal to those of `previous` are shared with it.
pub(crate) fn plan(
    world: &World,
    settings: &PlanSettings,
    frames: &impl Frames,
    key: &RouteKey,
    route: &Route,
    previous: Option<&RoutePlan>,
) -> RoutePlan {
    let mut status = RouteStatus {
        generation: route.meta.generation,
        ..RouteStatus::default()
    };
    let parents = ours(world, frames, &key.key, route, &mut status);
    if parents.is_empty() {
        return RoutePlan {
            status,
            ..RoutePlan::default()
        };
    }
    let known = previous.map_or(&[][..], |previous| &previous.entries);
    let made = entries::make(world, settings, key, route, known);
    let verdict = Verdict::of(route);
    let mut attachments: Vec<Attachment> = Vec::new();
    let mut statuses = Vec::with_capacity(parents.len());
    for (parent, frame, gateway) in parents {
        let outcome = attach::to_parent(world, frame, &key.key, route, &parent);
        let trouble = match (&outcome, &verdict.refused) {
            // A hostname may be missing because it was refused.
            (Err(trouble), Some(refused)) if trouble.reason == Reason::NoMatchingListenerHostname => Some(refused),
            (Err(trouble), _) => Some(trouble),
            (Ok(_), refused) => refused.as_ref(),
        };
        let accepted = match trouble {
            Some(trouble) => Condition::fails(ConditionKind::Accepted, trouble.reason, trouble.message.clone()),
            None => Condition::holds(ConditionKind::Accepted, Reason::Accepted, "The route is attached"),
        };
        let resolved = match verdict.unresolved.as_ref().or(made.trouble.as_ref()) {
            Some(trouble) => Condition::fails(ConditionKind::ResolvedRefs, trouble.reason, trouble.message.clone()),
            None => Condition::holds(
                ConditionKind::ResolvedRefs,
                Reason::ResolvedRefs,
                "All references are resolved",
            ),
        };
        let mut conditions = vec![accepted, resolved];
        if let (Ok(_), Some(trouble)) = (&outcome, &verdict.partial) {
            conditions.push(Condition::holds(
                ConditionKind::PartiallyInvalid,
                trouble.reason,
                trouble.message.clone(),
            ));
        }
        statuses.push(ParentStatus {
            parent,
            conditions: conditions.into(),
        });
        for (listener, hosts) in outcome.unwrap_or_default() {
            // Two parentRefs may lead to the same listener; the route is attached to it once.
            let is_known = attachments
                .iter()
                .any(|known| known.gateway == gateway && known.listener == listener);
            if !is_known {
                let counts = verdict.refused.is_none();
                attachments.push(Attachment {
                    gateway: gateway.clone(),
                    listener,
                    hosts,
                    counts,
                });
            }
        }
    }
    status.parents = statuses.into();
    RoutePlan {
        entries: made.entries,
        backends: made.backends,
        attachments,
        status,
    }
}

/// A reference to a default Gateway, as the route would have written it.
fn default_parent(gateway: &Key) -> ParentRef {
    ParentRef {
        group: GATEWAY_GROUP.into(),
        kind: Kind::Gateway.as_str().into(),
        namespace: Some(gateway.namespace.clone()),
        name: gateway.name.clone(),
        section: None,
        port: None,
    }
}

/// The parents that are Gateways of ours, or ListenerSets that add to one: those that are named, then the default ones if
/// the route asks for them. Those that do not exist are noted in the status.
fn ours<'a>(
    world: &World,
    frames: &'a impl Frames,
    key: &Key,
    route: &Route,
    status: &mut RouteStatus,
) -> Vec<(ParentRef, &'a Frame, Key)> {
    let mut parents = Vec::new();
    let mut dangling = Vec::new();
    for parent in &route.parents {
        let named = parent.key(&key.namespace);
        let gateway = if parent.is_gateway() {
            named
        } else if parent.is_listener_set() {
            let Some(set) = world.set(&named) else {
                dangling.push(parent.clone());
                continue;
            };
            let Some(gateway) = &set.gateway else { continue };
            gateway.clone()
        } else {
            continue;
        };
        match frames.frame(&gateway) {
            Some(frame) => parents.push((parent.clone(), frame, gateway)),
            None if parent.is_gateway() && world.gateway(&gateway).is_none() => dangling.push(parent.clone()),
            None => {}
        }
    }
    status.dangling = dangling.into();
    if route.uses_defaults {
        for gateway in world.default_gateways() {
            let is_named = |(parent, _, named): &(ParentRef, &Frame, Key)| {
                named == gateway && parent.is_gateway() && parent.section.is_none() && parent.port.is_none()
            };
            if let Some(frame) = frames.frame(gateway)
                && parents.len() < MOST_PARENTS
                && !parents.iter().any(is_named)
            {
                parents.push((default_parent(gateway), frame, gateway.clone()));
            }
        }
    }
    parents
}

/// What the route itself says about its acceptance, whatever the parent.
struct Verdict {
    /// The route as a whole cannot be honoured.
    refused: Option<Trouble>,
    /// Some of its rules cannot.
    partial: Option<Trouble>,
    /// A filter refers to a kind that is not known.
    unresolved: Option<Trouble>,
}

impl Verdict {
    fn of(route: &Route) -> Self {
        let told = |refusal: &Refusal| format!("{}: {}", refusal.field, refusal.message);
        let trouble = |message: String| Trouble::new(Reason::UnsupportedValue, message);
        let breaks = |refusal: &&Refusal| refusal.cause != RefusalCause::InvalidKind;
        let broken = route.rules.iter().filter_map(|rule| rule.refusals.iter().find(breaks));
        let broken: Vec<String> = broken.map(told).collect();
        let all_broken = !route.rules.is_empty() && broken.len() == route.rules.len();
        let mut verdict = Self {
            refused: None,
            partial: None,
            unresolved: None,
        };
        if let Some(refusal) = route.refusals.first() {
            verdict.refused = Some(trouble(told(refusal)));
        } else if all_broken {
            verdict.refused = Some(trouble(broken.join("; ")));
        } else if !broken.is_empty() {
            // The specification wants this beginning, and to hear of every rule.
            verdict.partial = Some(trouble(format!("Dropped Rule: {}", broken.join("; "))));
        }
        let refusals = route.rules.iter().flat_map(|rule| rule.refusals.iter());
        verdict.unresolved = refusals
            .filter(|refusal| !breaks(refusal))
            .map(|refusal| Trouble::new(Reason::InvalidKind, told(refusal)))
            .next();
        verdict
    }
}
