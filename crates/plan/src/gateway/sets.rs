//! What a ListenerSet shows, and whether it adds to its Gateway.

use gatewright_world::{
    Key, World,
    desired::{Condition, ConditionKind, Reason, SetStatus, State},
    object::{Gateway, ListenerSet},
};

use super::{
    Assignment, Frame, ListenerFrame, Table, Trouble, Verdict,
    listeners::allows_set,
    progress::{Progress, progress},
    status::listener_statuses,
};

/// The status of a ListenerSet of a Gateway of ours, and whether it adds to it.
pub(crate) fn set_status(
    world: &World,
    (gateway_key, gateway): (&Key, &Gateway),
    (key, set): (&Key, &ListenerSet),
    frame: &Frame,
    table: &Table,
    assignment: Option<&Assignment>,
) -> (SetStatus, bool) {
    let refused = refused(world, (gateway_key, gateway), (key, set), frame);
    let listeners: Vec<&ListenerFrame> = frame.listeners_of(Some(key)).map(|(_, listener)| listener).collect();
    let invalid = listeners.iter().filter(|listener| !listener.is_servable()).count();
    let (accepted, programmed) = (ConditionKind::Accepted, ConditionKind::Programmed);
    let conditions = match refused {
        Some(Trouble { reason, message }) => vec![
            Condition::fails(accepted, reason, message.clone()),
            Condition::fails(programmed, reason, message),
        ],
        None => vec![
            if invalid == 0 {
                Condition::holds(accepted, Reason::Accepted, "The ListenerSet is valid")
            } else {
                let message = format!("{invalid} of its listeners are not valid; their conditions say why");
                Condition::holds(accepted, Reason::ListenersNotValid, message)
            },
            self::programmed(world, frame, &listeners, assignment),
        ],
    };
    let is_attached = conditions
        .iter()
        .any(|condition| condition.kind == accepted && condition.state == State::True);
    let status = SetStatus {
        generation: set.meta.generation,
        conditions,
        listeners: listener_statuses(world, frame, Some(key), table, assignment),
    };
    (status, is_attached)
}

/// Why nothing of a ListenerSet is added to its Gateway.
fn refused(
    world: &World,
    (gateway_key, gateway): (&Key, &Gateway),
    (key, set): (&Key, &ListenerSet),
    frame: &Frame,
) -> Option<Trouble> {
    if let Some(refusal) = set.refusals.first() {
        let message = format!("{}: {}", refusal.field, refusal.message);
        return Some(Trouble::new(Reason::Invalid, message));
    }
    if !allows_set(world, gateway_key, gateway, key) {
        let message = format!(
            "Gateway {gateway_key} does not let ListenerSets of namespace {} add to it; see its allowedListeners",
            key.namespace
        );
        return Some(Trouble::new(Reason::NotAllowed, message));
    }
    if let Verdict::Refused(_) = frame.verdict {
        let message = format!("Gateway {gateway_key} is not accepted; its conditions say why");
        return Some(Trouble::new(Reason::ParentNotAccepted, message));
    }
    if !frame
        .listeners_of(Some(key))
        .any(|(_, listener)| listener.is_servable())
    {
        let message = "no listener is valid; their conditions say why";
        return Some(Trouble::new(Reason::ListenersNotValid, message));
    }
    None
}

fn programmed(
    world: &World,
    frame: &Frame,
    listeners: &[&ListenerFrame],
    assignment: Option<&Assignment>,
) -> Condition {
    let kind = ConditionKind::Programmed;
    let mut pending = None;
    for listener in listeners.iter().filter(|listener| listener.is_servable()) {
        match progress(world, frame, listener, assignment) {
            Progress::Listening(_) => {}
            Progress::Pending => pending = Some(&listener.declared.name),
            Progress::Failed(failed) => return Condition::fails(kind, Reason::Invalid, failed.trouble.message),
        }
    }
    match pending {
        None => Condition::holds(kind, Reason::Programmed, "All valid listeners accept connections"),
        Some(name) => {
            let message = format!("no data plane has opened listener {name} yet");
            Condition::fails(kind, Reason::Pending, message)
        }
    }
}
