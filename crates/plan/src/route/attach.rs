//! Decides which listeners of a parent a route attaches to.
//!
//! Knows names, ports, kinds, namespaces and hostnames only: rules and backends are not visible here, and neither is
//! whether a listener or the Gateway is served. The specification counts a route as attached there all the same.

use std::collections::BTreeMap;

use gatewright_ir::{HostPattern, Text};
use gatewright_world::{
    Key, World,
    desired::Reason,
    object::{AllowedNamespaces, ParentRef, Route},
};

use crate::gateway::{Frame, ListenerFrame, Trouble};

/// The listeners of a parent, by position, with the hosts of the route there; or why there are none.
pub(super) fn to_parent(
    world: &World,
    frame: &Frame,
    key: &Key,
    route: &Route,
    parent: &ParentRef,
) -> Result<Vec<(usize, Vec<HostPattern>)>, Trouble> {
    let set = parent.is_listener_set().then(|| parent.key(&key.namespace));
    let is_meant = |listener: &ListenerFrame| {
        listener.set == set
            && parent
                .section
                .as_ref()
                .is_none_or(|section| *section == listener.declared.name)
            && parent.port.is_none_or(|port| port == listener.declared.port)
    };
    let meant: Vec<(usize, &ListenerFrame)> = frame
        .listeners
        .iter()
        .enumerate()
        .filter(|(_, listener)| is_meant(listener))
        .collect();
    if meant.is_empty() {
        let message = no_such_listener(frame, parent, set.as_ref());
        return Err(Trouble::new(Reason::NoMatchingParent, message));
    }
    let allowed: Vec<(usize, &ListenerFrame)> = meant
        .into_iter()
        .filter(|(_, listener)| allows(world, frame, listener, route, key))
        .collect();
    if allowed.is_empty() {
        let message = format!(
            "no listener of {} lets {}s of namespace {} attach; see its allowedRoutes and supportedKinds",
            shown(frame, parent, set.as_ref()),
            route.kind.kind(),
            key.namespace
        );
        return Err(Trouble::new(Reason::NotAllowedByListeners, message));
    }
    let attached: Vec<(usize, Vec<HostPattern>)> = allowed
        .into_iter()
        .map(|(index, listener)| (index, hosts(route, &listener.declared.hostname)))
        .filter(|(_, hosts)| !hosts.is_empty())
        .collect();
    if attached.is_empty() {
        let message = format!(
            "no listener of {} answers for a hostname of this route; let their hostnames intersect",
            shown(frame, parent, set.as_ref())
        );
        return Err(Trouble::new(Reason::NoMatchingListenerHostname, message));
    }
    Ok(attached)
}

/// The parent, for people.
fn shown(frame: &Frame, parent: &ParentRef, set: Option<&Key>) -> String {
    match set {
        Some(set) => format!("ListenerSet {set}"),
        None => format!("Gateway {}/{}", frame.namespace, parent.name),
    }
}

fn no_such_listener(frame: &Frame, parent: &ParentRef, set: Option<&Key>) -> String {
    let wanted = match (&parent.section, parent.port) {
        (Some(section), Some(port)) => format!(" {section} on port {port}"),
        (Some(section), None) => format!(" {section}"),
        (None, Some(port)) => format!(" on port {port}"),
        (None, None) => String::new(),
    };
    let own: Vec<&ListenerFrame> = frame
        .listeners
        .iter()
        .filter(|listener| listener.set.as_ref() == set)
        .collect();
    let there = own.iter().map(|listener| &listener.declared);
    let there = there.map(|listener| format!("{} on port {}", listener.name, listener.port));
    // At most a handful: a Gateway may have 64 listeners.
    let there: Vec<String> = there.take(5).collect();
    let rest = if own.len() > there.len() { " and more" } else { "" };
    let shown = shown(frame, parent, set);
    if there.is_empty() {
        return match set {
            Some(_) => format!("{shown} has no listeners, or its Gateway does not take them"),
            None => format!("{shown} has no listeners"),
        };
    }
    let there = there.join(", ");
    format!("{shown} has no listener{wanted}; it has {there}{rest}")
}

fn allows(world: &World, frame: &Frame, listener: &ListenerFrame, route: &Route, key: &Key) -> bool {
    listener.kinds.contains(&route.kind.kind().as_str())
        && is_allowed(
            world,
            &listener.declared.namespaces,
            listener.namespace(frame),
            &key.namespace,
        )
}

/// Whether those of a namespace may attach to what is in another.
pub(crate) fn is_allowed(world: &World, allowed: &AllowedNamespaces, own: &Text, namespace: &Text) -> bool {
    match allowed {
        AllowedNamespaces::None => false,
        AllowedNamespaces::All => true,
        AllowedNamespaces::Same => own == namespace,
        AllowedNamespaces::Selected(selector) => {
            selector.selects(world.namespace_labels(namespace).unwrap_or(&BTreeMap::new()))
        }
    }
}

/// The hosts that a route serves on a listener: those of its own that the listener answers for, or the listener's if it
/// names none.
///
/// Its own pattern and not the intersection, which may be narrower: the specification ranks routes by the hostnames they
/// name, and two patterns that come to the same one on this listener would be ranked as equals. What is outside the
/// listener's hostname never reaches its table.
fn hosts(route: &Route, listener: &HostPattern) -> Vec<HostPattern> {
    if route.hostnames.is_empty() && !route.is_hostless {
        return vec![listener.clone()];
    }
    let mut hosts: Vec<HostPattern> = route
        .hostnames
        .iter()
        .filter(|hostname| hostname.intersect(listener).is_some())
        .cloned()
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
