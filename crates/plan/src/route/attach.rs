//! Decides which listeners of a parent a route attaches to.
//!
//! Knows names, ports, kinds, namespaces and hostnames only: rules and backends are not visible here.

use std::collections::BTreeMap;

use gatewright_ir::HostPattern;
use gatewright_world::{
    Key, World,
    desired::Reason,
    object::{AllowedNamespaces, HttpRoute, ParentRef},
};

use crate::gateway::{Frame, ListenerFrame, Trouble, Verdict};

/// The listeners of a parent, by position, with the hosts of the route there; or why there are none.
pub(super) fn to_parent(
    world: &World,
    frame: &Frame,
    key: &Key,
    route: &HttpRoute,
    parent: &ParentRef,
) -> Result<Vec<(usize, Vec<HostPattern>)>, Trouble> {
    if let Verdict::Refused(_) = frame.verdict {
        let message = format!("Gateway {} is not accepted; its conditions say why", parent.name);
        return Err(Trouble::new(Reason::Pending, message));
    }
    let is_meant = |listener: &ListenerFrame| {
        parent
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
        return Err(Trouble::new(Reason::NoMatchingParent, no_such_listener(parent)));
    }
    let allowed: Vec<(usize, &ListenerFrame)> = meant
        .into_iter()
        .filter(|(_, listener)| allows(world, frame, listener, key))
        .collect();
    if allowed.is_empty() {
        let message = format!(
            "no listener of Gateway {} lets HTTPRoutes of namespace {} attach; see its allowedRoutes and conditions",
            parent.name, key.namespace
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
            "no listener of Gateway {} answers for a hostname of this route",
            parent.name
        );
        return Err(Trouble::new(Reason::NoMatchingListenerHostname, message));
    }
    Ok(attached)
}

fn no_such_listener(parent: &ParentRef) -> String {
    match (&parent.section, parent.port) {
        (Some(section), Some(port)) => {
            format!("Gateway {} has no listener {section} on port {port}", parent.name)
        }
        (Some(section), None) => format!("Gateway {} has no listener {section}", parent.name),
        (None, Some(port)) => format!("Gateway {} has no listener on port {port}", parent.name),
        (None, None) => format!("Gateway {} has no listeners", parent.name),
    }
}

fn allows(world: &World, frame: &Frame, listener: &ListenerFrame, route: &Key) -> bool {
    let is_kind_allowed = listener.refused.is_none() && listener.kinds.contains(&"HTTPRoute");
    is_kind_allowed
        && match &listener.declared.namespaces {
            AllowedNamespaces::All => true,
            AllowedNamespaces::Same => frame.namespace == route.namespace,
            AllowedNamespaces::Selected(selector) => {
                selector.selects(world.namespace_labels(&route.namespace).unwrap_or(&BTreeMap::new()))
            }
        }
}

/// The hosts that a route serves on a listener: those of both, or of the one that names any.
fn hosts(route: &HttpRoute, listener: &HostPattern) -> Vec<HostPattern> {
    if route.hostnames.is_empty() {
        // A route whose every hostname was refused is refused as a whole; it must not become one for all hosts.
        return if route.refusals.is_empty() {
            vec![listener.clone()]
        } else {
            Vec::new()
        };
    }
    let mut hosts: Vec<HostPattern> = route
        .hostnames
        .iter()
        .filter_map(|hostname| hostname.intersect(listener))
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}
