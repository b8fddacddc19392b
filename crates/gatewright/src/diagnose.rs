//! Finds what someone should mend in a plan: conditions that do not hold, and what no condition tells.
//!
//! Called by `check` on a plan that serves nothing, and by the admin API on the one in use. Reads statuses and the IR;
//! knows nothing of files or of how findings are shown.

use std::fmt::Write as _;
use std::sync::Arc;

use gatewright_api::{Kind, ObjectName};
use gatewright_ir::{Endpoints, Gateway, Origin};
use gatewright_plan::StatusKey;
use gatewright_world::{
    Key,
    desired::{Condition, ConditionKind, Reason, Scope, Status},
    object::{ListenerSet, ParentRef, Route},
    origin,
};

use imbl::OrdMap;

use crate::{
    advice::Advice,
    board::{Declared, Objects},
    finding::{Finding, Severity},
    remedy,
};

/// What the conditions of an object tell, each thing once, with parents that do not exist.
pub(crate) fn conditions(object: &ObjectName, status: &Status) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let conditions = status.conditions();
    let names_culprit = |scope: &Scope<'_>, condition: &Condition| {
        condition.is_problem() && !is_consequence(condition) && *scope != Scope::Object
    };
    let has_culprit = conditions
        .iter()
        .any(|(scope, condition)| names_culprit(scope, condition));
    let has_parents = matches!(status, Status::Route(route) if route.parents.len() + route.dangling.len() > 1);
    for (scope, condition) in &conditions {
        // The object says again what its listeners say better.
        let is_summary = *scope == Scope::Object && condition.reason == Reason::ListenersNotValid && has_culprit;
        if !condition.is_problem() || is_consequence(condition) || is_summary {
            continue;
        }
        let part = match scope {
            // What is wrong with a policy is wrong with it for every Gateway.
            Scope::Object | Scope::Ancestor(_) => None,
            Scope::Listener(name) => Some(format!("listener {name}")),
            // With one parent alone there is nothing to tell apart.
            Scope::Parent(parent) => has_parents.then(|| parent_text(parent)),
        };
        let finding = Finding {
            code: condition.reason.code().to_owned(),
            severity: Severity::Error,
            object: Some(object.to_string()),
            part,
            message: condition.message.clone().into_owned(),
            hint: Some(remedy::of_reason(condition.reason).to_owned()),
            place: None,
            uses_last_good: false,
        };
        // The same trouble seen through several conditions or parents is one thing to mend.
        let same = findings
            .iter_mut()
            .find(|known| (&known.code, &known.message) == (&finding.code, &finding.message));
        match same {
            None => findings.push(finding),
            Some(known) if known.part != finding.part => known.part = None,
            Some(_) => {}
        }
    }
    if let Status::Route(route) = status {
        for parent in &route.dangling {
            let message = format!("{} does not exist", parent_name(object, parent));
            findings.push(Advice::ParentNotFound.finding(message).about(object));
        }
    }
    findings
}

/// Whether a condition only follows from another one.
fn is_consequence(condition: &Condition) -> bool {
    condition.kind == ConditionKind::Programmed && matches!(condition.reason, Reason::Invalid | Reason::Pending)
}

fn parent_text(parent: &ParentRef) -> String {
    let mut text = match &*parent.kind {
        "Gateway" => format!("parent {}", parent.name),
        kind => format!("parent {kind} {}", parent.name),
    };
    if let Some(section) = &parent.section {
        let _ = write!(text, " listener {section}");
    }
    if let Some(port) = parent.port {
        let _ = write!(text, " port {port}");
    }
    text
}

fn parent_name(route: &ObjectName, parent: &ParentRef) -> String {
    let namespace = parent.namespace.as_deref().unwrap_or(&route.namespace);
    format!("{} {namespace}/{}", parent.kind, parent.name)
}

/// Everything that is to be mended in these objects and what is served for them.
///
/// Alone, every object should be of use; beside others in a cluster, what is theirs is none of our business.
pub(crate) fn everything(
    objects: &Objects,
    gateways: &OrdMap<Origin, Arc<Gateway>>,
    controller: &str,
    is_alone: bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut has_gateway = false;
    for (id, shown) in objects {
        let name = named(id);
        findings.extend(shown.status.iter().flat_map(|status| conditions(&name, status)));
        let advice = match &shown.declared {
            Declared::Class(class) => (is_alone && &*class.controller != controller).then(|| {
                let message = format!("is for controller {}, and this one is {controller}", class.controller);
                Advice::ForeignClass.finding(message)
            }),
            Declared::Gateway(gateway) => {
                has_gateway = true;
                let class = StatusKey {
                    kind: Kind::GatewayClass,
                    key: Key::new("", gateway.class.clone()),
                };
                (!objects.contains_key(&class))
                    .then(|| Advice::ClassNotFound.finding(format!("GatewayClass {} does not exist", gateway.class)))
            }
            Declared::Set(set) => gatewayless(set, objects, is_alone),
            Declared::Policy(_) | Declared::TlsPolicy(_) => None,
            Declared::Route(route) => {
                parentless(route, shown.status.as_ref(), is_alone).map(|message| Advice::NoParent.finding(message))
            }
        };
        findings.extend(advice.map(|finding| finding.about(&name)));
    }
    findings.extend(idle_backends(gateways.values()));
    if is_alone && !has_gateway {
        findings.push(Advice::NothingToServe.finding("no Gateway is declared, so nothing listens"));
    }
    findings
}

/// Why a route that names no parent attaches to nothing; none if it does attach, or somebody else may see to it.
fn parentless(route: &Route, status: Option<&Status>, is_alone: bool) -> Option<&'static str> {
    let has_parents = matches!(status, Some(Status::Route(status)) if !status.parents.is_empty());
    if has_parents || !route.parents.is_empty() {
        None
    } else if !route.uses_defaults {
        Some("names no parent, so it attaches to nothing")
    } else {
        is_alone.then_some("asks for default Gateways, but none has `defaultScope: All`, so it attaches to nothing")
    }
}

/// Why a ListenerSet adds to nothing, where no condition tells it.
fn gatewayless(set: &ListenerSet, objects: &Objects, is_alone: bool) -> Option<Finding> {
    let Some(gateway) = &set.gateway else {
        // Somebody else may know what it refers to.
        return is_alone.then(|| Finding {
            hint: Some("name a Gateway in parentRef".to_owned()),
            ..Advice::NoParent.finding("refers to no Gateway, so its listeners are nowhere")
        });
    };
    let id = StatusKey {
        kind: Kind::Gateway,
        key: gateway.clone(),
    };
    (!objects.contains_key(&id)).then(|| Finding {
        hint: Some("declare the Gateway, or correct name and namespace in parentRef".to_owned()),
        ..Advice::ParentNotFound.finding(format!("Gateway {gateway} does not exist"))
    })
}

/// Backends in use that have no endpoint.
fn idle_backends<'g>(gateways: impl Iterator<Item = &'g Arc<Gateway>>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for gateway in gateways {
        for cluster in gateway.clusters.values() {
            if !matches!(&cluster.endpoints, Endpoints::Known(endpoints) if endpoints.is_empty()) {
                continue;
            }
            let Some((object, _)) = origin::parse(&cluster.origin) else {
                continue;
            };
            let finding = Advice::NoEndpoints
                .finding("has no ready endpoint; requests to it are answered with 503, connections to it are closed")
                .about(&object);
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

/// The name of an object on the board.
pub(crate) fn named(id: &StatusKey) -> ObjectName {
    ObjectName {
        kind: id.kind,
        namespace: id.key.namespace.to_string(),
        name: id.key.name.to_string(),
    }
}
