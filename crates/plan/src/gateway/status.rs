//! What a Gateway shows: derived from its frame, its routes, and what the planes reported.

use std::{borrow::Cow, net::IpAddr};

use gatewright_ir::{ListenFailure, ListenerState};
use gatewright_world::{
    ListenerFact, World,
    desired::{Condition, ConditionKind, GatewayStatus, ListenerStatus, Reason},
    object::Listener,
};

use super::{Assignment, Frame, ListenerFrame, Table, Trouble, Verdict};

/// The status of a Gateway.
pub(crate) fn status(world: &World, frame: &Frame, table: &Table, assignment: Option<&Assignment>) -> GatewayStatus {
    let listeners: Vec<ListenerStatus> = frame
        .listeners
        .iter()
        .enumerate()
        .map(|(index, listener)| listener_status(world, frame, listener, table.attached(index), assignment))
        .collect();
    let mut addresses: Vec<IpAddr> = Vec::new();
    for listener in &frame.listeners {
        if let Some(ListenerFact {
            state: ListenerState::Listening(bound),
            ..
        }) = world.fact(&listener.origin)
        {
            addresses.extend(bound.iter().map(std::net::SocketAddr::ip));
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    let conditions = vec![accepted(world, frame, assignment), programmed(world, frame, assignment)];
    GatewayStatus {
        generation: frame.generation,
        addresses,
        conditions,
        listeners,
    }
}

fn accepted(world: &World, frame: &Frame, assignment: Option<&Assignment>) -> Condition {
    let kind = ConditionKind::Accepted;
    match &frame.verdict {
        Verdict::Refused(trouble) | Verdict::Served(Some(trouble)) => {
            Condition::fails(kind, trouble.reason, trouble.message.clone())
        }
        Verdict::Served(None) => {
            // One that is served in part, say with one of its two certificates, is not among them: the specification
            // means listeners that cannot be configured.
            let is_valid = |listener: &&ListenerFrame| {
                let is_unavailable = matches!(progress(world, frame, listener, assignment),
                    Progress::Failed(failed) if failed.trouble.reason == Reason::PortUnavailable);
                listener.is_servable() && !is_unavailable
            };
            let (valid, invalid): (Vec<&ListenerFrame>, Vec<&ListenerFrame>) =
                frame.listeners.iter().partition(is_valid);
            let message = || match valid.as_slice() {
                [] => format!("no listener is valid; the conditions of {} say why", listed(&invalid)),
                valid => format!(
                    "not valid: {}, whose conditions say why; valid: {}",
                    listed(&invalid),
                    listed(valid)
                ),
            };
            if invalid.is_empty() {
                Condition::holds(kind, Reason::Accepted, "The Gateway is valid")
            } else if frame.listeners.iter().any(ListenerFrame::is_servable) {
                Condition::holds(kind, Reason::ListenersNotValid, message())
            } else {
                Condition::fails(kind, Reason::ListenersNotValid, message())
            }
        }
    }
}

/// The names, at most ten of them: a Gateway with hundreds of bad listeners must not get a message of kilobytes.
fn listed(listeners: &[&ListenerFrame]) -> String {
    let names = listeners.iter().take(10).map(|listener| &*listener.declared.name);
    let shown = names.collect::<Vec<_>>().join(", ");
    match listeners.len() {
        count if count > 10 => format!("listeners {shown} and {} more", count - 10),
        1 => format!("listener {shown}"),
        _ => format!("listeners {shown}"),
    }
}

fn programmed(world: &World, frame: &Frame, assignment: Option<&Assignment>) -> Condition {
    let kind = ConditionKind::Programmed;
    if let Verdict::Refused(_) = frame.verdict {
        return Condition::fails(kind, Reason::Invalid, "The Gateway is not accepted");
    }
    let servable: Vec<&ListenerFrame> = frame
        .listeners
        .iter()
        .filter(|listener| listener.is_servable())
        .collect();
    if servable.is_empty() {
        return Condition::fails(kind, Reason::Invalid, "No listener can be served");
    }
    let mut pending = None;
    for listener in servable {
        match progress(world, frame, listener, assignment) {
            Progress::Listening => {}
            Progress::Pending => pending = Some(listener),
            Progress::Failed(failed) => return Condition::fails(kind, failed.address, failed.trouble.message),
        }
    }
    match pending {
        None => Condition::holds(kind, Reason::Programmed, "All valid listeners accept connections"),
        Some(listener) => {
            let message = format!("no data plane has opened listener {} yet", listener.declared.name);
            Condition::fails(kind, Reason::Pending, message)
        }
    }
}

enum Progress {
    Listening,
    Pending,
    Failed(Failed),
}

/// Why a servable listener is not open.
struct Failed {
    /// What the listener shows.
    trouble: Trouble,
    /// What that means for the Gateway: an address it asked for is not usable, or there was none left for it.
    address: Reason,
}

/// How far a servable listener has come on the data plane.
fn progress(world: &World, frame: &Frame, listener: &ListenerFrame, assignment: Option<&Assignment>) -> Progress {
    let port = listener.declared.port;
    if let Some(owner) = assignment.and_then(|assignment| assignment.taken.get(&port)) {
        let message = format!("port {port} is taken by the older Gateway {owner}; use another port or address");
        return Progress::Failed(Failed {
            trouble: Trouble::new(Reason::PortUnavailable, message),
            address: if frame.fixed.is_empty() {
                Reason::AddressNotAssigned
            } else {
                Reason::AddressNotUsable
            },
        });
    }
    match world.fact(&listener.origin) {
        Some(ListenerFact {
            generation,
            state: ListenerState::Listening(_),
        }) if *generation == frame.generation => Progress::Listening,
        Some(ListenerFact {
            state: ListenerState::Failed { address, failure },
            ..
        }) => {
            let reason = match failure {
                ListenFailure::NotAvailable => Reason::AddressNotUsable,
                ListenFailure::InUse | ListenFailure::Denied | ListenFailure::Other(_) => Reason::PortUnavailable,
            };
            Progress::Failed(Failed {
                trouble: Trouble::new(reason, format!("{address} cannot be opened: {failure}")),
                address: Reason::AddressNotUsable,
            })
        }
        _ => Progress::Pending,
    }
}

fn listener_status(
    world: &World,
    frame: &Frame,
    listener: &ListenerFrame,
    attached: u32,
    assignment: Option<&Assignment>,
) -> ListenerStatus {
    let ok = |kind, reason, message: &'static str| Condition::holds(kind, reason, message);
    let bad = |kind, trouble: &Trouble| Condition::fails(kind, trouble.reason, trouble.message.clone());
    let progress = progress(world, frame, listener, assignment);
    let accepted = match (&listener.refused, &progress) {
        (Some(trouble), _) => bad(ConditionKind::Accepted, trouble),
        (None, Progress::Failed(failed)) if failed.trouble.reason == Reason::PortUnavailable => {
            bad(ConditionKind::Accepted, &failed.trouble)
        }
        _ => ok(ConditionKind::Accepted, Reason::Accepted, "The listener is valid"),
    };
    let conflicted = match &listener.refused {
        Some(trouble) if listener.is_conflicted => {
            Condition::holds(ConditionKind::Conflicted, trouble.reason, trouble.message.clone())
        }
        _ => Condition::fails(
            ConditionKind::Conflicted,
            Reason::NoConflicts,
            "No other listener is in the way",
        ),
    };
    let resolved = match &listener.unresolved {
        Some(trouble) => bad(ConditionKind::ResolvedRefs, trouble),
        None => ok(
            ConditionKind::ResolvedRefs,
            Reason::ResolvedRefs,
            "All references are resolved",
        ),
    };
    let invalid = |message: Cow<'static, str>| Condition::fails(ConditionKind::Programmed, Reason::Invalid, message);
    let programmed = match (&frame.verdict, progress) {
        (Verdict::Refused(_), _) => invalid("The Gateway is not accepted".into()),
        _ if !listener.is_servable() => match &listener.refused {
            // The conformance suite wants to see a conflict here, too.
            Some(trouble) if listener.is_conflicted => bad(ConditionKind::Programmed, trouble),
            Some(_) => invalid("The listener is not accepted".into()),
            None => invalid("There is no certificate to present; ResolvedRefs says why".into()),
        },
        (_, Progress::Failed(failed)) => invalid(failed.trouble.message),
        (_, Progress::Pending) => Condition::fails(
            ConditionKind::Programmed,
            Reason::Pending,
            "No data plane has opened it yet",
        ),
        (_, Progress::Listening) => ok(
            ConditionKind::Programmed,
            Reason::Programmed,
            "Connections are accepted",
        ),
    };
    let mut conditions = vec![accepted, conflicted, programmed, resolved];
    if let Some(other) = &listener.overlapping {
        let Listener { port, hostname, .. } = &*listener.declared;
        let message = format!("names of {hostname} are also answered for by listener {other} on port {port}");
        conditions.push(Condition::holds(
            ConditionKind::OverlappingTlsConfig,
            Reason::OverlappingHostnames,
            message,
        ));
    }
    ListenerStatus {
        name: listener.declared.name.clone(),
        attached,
        kinds: listener.kinds.clone(),
        conditions,
    }
}
