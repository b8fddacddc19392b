//! How far a listener has come on the data planes of all replicas.

use gatewright_ir::{ListenFailure, ListenerState};
use gatewright_world::{ListenerFact, World, desired::Reason};

use super::{Assignment, Entry, Frame, ListenerFrame, Trouble, targets::RANGE};

/// How far a servable listener has come.
pub(super) enum Progress {
    /// At least one replica accepts connections for it. With those that cannot, and why.
    Listening(Option<String>),
    /// None has opened it yet.
    Pending,
    /// None could open it.
    Failed(Failed),
}

/// Why a servable listener is not open.
pub(super) struct Failed {
    /// What the listener shows.
    pub(super) trouble: Trouble,
    /// What that means for the Gateway: an address it asked for is not usable, or there was none left for it, or what
    /// stands behind its Service could not be opened.
    pub(super) of_gateway: Reason,
}

/// How far a listener has come.
pub(super) fn progress(
    world: &World,
    frame: &Frame,
    listener: &ListenerFrame,
    assignment: Option<&Assignment>,
) -> Progress {
    let Some(port) = listener.declared.door() else {
        return Progress::Pending;
    };
    let is_balanced = matches!(frame.entry, Entry::LoadBalancer(_));
    if let Some(owner) = assignment.and_then(|assignment| assignment.taken.get(&port)) {
        let message = format!("port {port} is taken by the older Gateway {owner}; use another port or address");
        return Progress::Failed(Failed {
            trouble: Trouble::new(Reason::PortUnavailable, message),
            of_gateway: if frame.fixed.is_empty() {
                Reason::AddressNotAssigned
            } else {
                Reason::AddressNotUsable
            },
        });
    }
    if assignment.is_some_and(|assignment| assignment.bind(port).is_none()) {
        let message = format!(
            "no port is left behind port {port}: all of {} to {} are taken by other Gateways",
            RANGE.start,
            RANGE.end - 1
        );
        return Progress::Failed(Failed {
            trouble: Trouble::new(Reason::NoResources, message),
            of_gateway: Reason::NoResources,
        });
    }
    let bind = assignment
        .and_then(|assignment| assignment.bind(port))
        .unwrap_or(port.number);
    // The port may change without a new generation, with the settings of its class.
    let is_open = |fact: &ListenerFact| {
        fact.generation == frame.generation
            && matches!(&fact.state, ListenerState::Listening(bound)
                if !bound.is_empty() && bound.iter().all(|bound| bound.port() == bind))
    };
    if world.instances(&listener.origin).any(|(_, fact)| is_open(fact)) {
        return Progress::Listening(missing(world, frame, listener));
    }
    let Some(ListenerFact {
        state: ListenerState::Failed { address, failure },
        ..
    }) = world.fact(&listener.origin)
    else {
        return Progress::Pending;
    };
    let message = format!("{address} cannot be opened: {failure}");
    let (reason, of_gateway) = match failure {
        // The port is ours to choose, so there is nothing wrong with the one that was declared.
        _ if is_balanced => (Reason::NoResources, Reason::NoResources),
        ListenFailure::NotAvailable => (Reason::AddressNotUsable, Reason::AddressNotUsable),
        ListenFailure::InUse | ListenFailure::Denied | ListenFailure::Other(_) => {
            (Reason::PortUnavailable, Reason::AddressNotUsable)
        }
    };
    Progress::Failed(Failed {
        trouble: Trouble::new(reason, message),
        of_gateway,
    })
}

/// The replicas that could not open a listener: the first with the reason, the others counted.
fn missing(world: &World, frame: &Frame, listener: &ListenerFrame) -> Option<String> {
    let mut failed = world.replicas().filter_map(|(name, replica)| {
        let fact = replica.facts.get(&listener.origin)?;
        match &fact.state {
            ListenerState::Failed { address, failure } if fact.generation == frame.generation => {
                Some((name, address, failure))
            }
            ListenerState::Failed { .. } | ListenerState::Listening(_) => None,
        }
    });
    let (name, address, failure) = failed.next()?;
    let others = match failed.count() {
        0 => String::new(),
        count => format!(", nor by {count} more"),
    };
    Some(format!(
        "replica {name}, where {address} cannot be opened: {failure}{others}"
    ))
}
