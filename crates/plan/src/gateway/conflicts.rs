//! Listeners of one Gateway that are in each other's way, or answer for some of the same names.

use ahash::AHashMap;
use gatewright_ir::{Port, Text};
use gatewright_world::{
    desired::Reason,
    object::{Listener, ListenerProtocol},
};

use super::{ListenerFrame, Trouble};

/// Marks every listener that clashes with another.
///
/// Of the Gateway's own, the first `own` ones, the specification forbids to pick a winner, also when one of them is refused for
/// another reason. Those of ListenerSets come after, in the order in which they count, and lose against whoever was before.
/// Protocols that are not spoken here clash with nothing.
pub(super) fn mark(frames: &mut [ListenerFrame], own: usize) {
    let mut ports: AHashMap<Port, Vec<usize>> = AHashMap::new();
    for (index, frame) in frames.iter().enumerate() {
        if let Some(port) = frame.declared.door() {
            ports.entry(port).or_default().push(index);
        }
    }
    for (port, indexes) in ports {
        let mut losers: Vec<usize> = Vec::new();
        for (position, index) in indexes.iter().enumerate() {
            let Some(listener) = frames.get(*index).map(|frame| frame.declared.clone()) else {
                continue;
            };
            let rivals = indexes.iter().enumerate();
            let mut rivals = rivals.filter(|(other, rival)| {
                let is_equal = *index < own && **rival < own && position != *other;
                // What the Gateway's own listeners quarrel about is not for a set to take.
                let counts = **rival < own || !losers.contains(rival);
                let is_before = *index >= own && *other < position && counts;
                is_equal || is_before
            });
            let clash = rivals.find_map(|(_, rival)| clash(port, &listener, &frames.get(*rival)?.declared));
            if let Some(trouble) = clash
                && let Some(frame) = frames.get_mut(*index)
            {
                losers.push(*index);
                frame.refused = Some(trouble);
                frame.is_conflicted = true;
            }
        }
    }
}

/// How a listener clashes with another on the same port.
fn clash(port: Port, own: &Listener, other: &Listener) -> Option<Trouble> {
    let (mine, theirs) = (&own.protocol, &other.protocol);
    let told_apart = (mine.begins_with_tls() && theirs.begins_with_tls())
        || (*mine == ListenerProtocol::Http && *theirs == ListenerProtocol::Http);
    if told_apart {
        return (own.hostname == other.hostname).then(|| {
            let message = format!(
                "listener {} has the same hostname on port {port}; give one of them another hostname or port",
                other.name
            );
            Trouble::new(Reason::HostnameConflict, message)
        });
    }
    let message = if mine == theirs {
        format!(
            "listener {} has port {port}, and nothing tells the connections of the two apart; give one of them another port",
            other.name
        )
    } else {
        format!(
            "listener {} speaks another protocol on port {port}; give one of them another port",
            other.name
        )
    };
    Some(Trouble::new(Reason::ProtocolConflict, message))
}

/// Marks the TLS listeners on one port whose hostnames have names in common, each with the first that it overlaps with.
pub(super) fn mark_overlaps(frames: &mut [ListenerFrame]) {
    let served = |frame: &&ListenerFrame| frame.refused.is_none() && frame.declared.protocol.terminates_tls();
    let overlaps: Vec<Option<Text>> = frames
        .iter()
        .map(|frame| {
            let own = served(&frame).then_some(&frame.declared)?;
            let others = frames
                .iter()
                .filter(served)
                .filter(|other| other.origin != frame.origin);
            let mut others = others
                .map(|other| &other.declared)
                .filter(|other| other.port == own.port);
            let other = others.find(|other| other.hostname.intersect(&own.hostname).is_some())?;
            Some(other.name.clone())
        })
        .collect();
    for (frame, overlapping) in frames.iter_mut().zip(overlaps) {
        frame.overlapping = overlapping;
    }
}
