//! What a listener shows.

use std::borrow::Cow;

use gatewright_world::{
    World,
    desired::{Condition, ConditionKind, ListenerStatus, Reason},
    object::Listener,
};

use super::super::{
    Assignment, Frame, ListenerFrame, Trouble, Verdict,
    progress::{Progress, progress},
};

pub(super) fn listener_status(
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
        (_, Progress::Listening(None)) => ok(
            ConditionKind::Programmed,
            Reason::Programmed,
            "Connections are accepted",
        ),
        (_, Progress::Listening(Some(missing))) => {
            let message = format!("Connections are accepted, but not by {missing}");
            Condition::holds(ConditionKind::Programmed, Reason::Programmed, message)
        }
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
