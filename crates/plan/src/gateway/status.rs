//! What a Gateway shows: derived from its frame, its routes, and what the planes reported.

mod listener;

use std::net::{IpAddr, SocketAddr};

use gatewright_api::config::{ExternalTrafficPolicy, ServiceType};
use gatewright_ir::ListenerState;
use gatewright_world::{
    Key, Replica, World,
    desired::{
        Address, Condition, ConditionKind, GatewayStatus, ListenerStatus, OwnedName, Reason, owned::service_name,
    },
};

use super::{
    Assignment, Entry, Frame, ListenerFrame, Table, Trouble, Verdict,
    owned::is_reachable,
    progress::{Progress, progress},
};
use listener::listener_status;

/// Kubernetes shows no more of them.
const MOST_ADDRESSES: usize = 16;

/// The status of a Gateway. `owned` are the objects that are made for it.
pub(crate) fn status(
    world: &World,
    key: &Key,
    frame: &Frame,
    table: &Table,
    assignment: Option<&Assignment>,
    owned: &[OwnedName],
    attached_sets: u32,
) -> GatewayStatus {
    let listeners = listener_statuses(world, frame, None, table, assignment);
    let mut addresses = match &frame.entry {
        // A Service that is kept for better times leads nowhere, and sockets that are still open are about to close.
        _ if !frame.is_served() => Vec::new(),
        Entry::LoadBalancer(_) => world.entry(key).map_or_else(Vec::new, |entry| entry.addresses.to_vec()),
        Entry::Unknown | Entry::Host => bound_addresses(world, frame),
    };
    addresses.truncate(MOST_ADDRESSES);
    let mut conditions = vec![
        accepted(world, frame, assignment),
        programmed(world, key, frame, assignment, owned),
    ];
    if frame.is_default {
        conditions.push(Condition::holds(
            ConditionKind::DefaultGateway,
            Reason::DefaultScope,
            "Gateway has default scope All",
        ));
    }
    if let Some(standing) = &frame.identity_standing {
        let kind = ConditionKind::ResolvedRefs;
        conditions.push(match standing {
            Err(trouble) => Condition::fails(kind, trouble.reason, trouble.message.clone()),
            Ok(()) => Condition::holds(kind, Reason::ResolvedRefs, "All references are resolved"),
        });
    }
    if frame.has_insecure_fallback {
        conditions.push(Condition::holds(
            ConditionKind::InsecureFrontendValidationMode,
            Reason::ConfigurationChanged,
            "Clients are let in without a valid certificate (AllowInsecureFallback)",
        ));
    }
    GatewayStatus {
        generation: frame.generation,
        addresses,
        attached_sets,
        conditions,
        listeners,
    }
}

/// What the listeners of a ListenerSet show, or the Gateway's own.
pub(super) fn listener_statuses(
    world: &World,
    frame: &Frame,
    set: Option<&Key>,
    table: &Table,
    assignment: Option<&Assignment>,
) -> Vec<ListenerStatus> {
    let listeners = frame.listeners_of(set);
    let statuses =
        listeners.map(|(index, listener)| listener_status(world, frame, listener, table.attached(index), assignment));
    statuses.collect()
}

/// The addresses on which replicas listen.
fn bound_addresses(world: &World, frame: &Frame) -> Vec<Address> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for listener in &frame.listeners {
        for (replica, fact) in world.instances(&listener.origin) {
            if let ListenerState::Listening(bound) = &fact.state {
                addresses.extend(bound.iter().flat_map(|bound| reached_at(replica, bound)));
            }
        }
    }
    addresses.sort_unstable();
    addresses.dedup();
    addresses.into_iter().map(Address::Ip).collect()
}

/// Where others reach what a replica has bound. `0.0.0.0` leads nowhere: it is shown as the addresses by which the replica
/// is known, and not at all where none is.
fn reached_at(replica: &Replica, bound: &SocketAddr) -> Vec<IpAddr> {
    let address = bound.ip();
    if !address.is_unspecified() {
        return vec![address];
    }
    let own = replica.addresses.iter().copied();
    own.filter(|own| own.is_ipv4() == address.is_ipv4()).collect()
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
            let own = frame.own_listeners().map(|(_, listener)| listener);
            let (valid, invalid): (Vec<&ListenerFrame>, Vec<&ListenerFrame>) = own.partition(is_valid);
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
            } else if frame.own_listeners().any(|(_, listener)| listener.is_servable()) {
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

fn programmed(
    world: &World,
    key: &Key,
    frame: &Frame,
    assignment: Option<&Assignment>,
    owned: &[OwnedName],
) -> Condition {
    let kind = ConditionKind::Programmed;
    if let Verdict::Refused(_) = frame.verdict {
        return Condition::fails(kind, Reason::Invalid, "The Gateway is not accepted");
    }
    let own = frame.own_listeners().map(|(_, listener)| listener);
    let servable: Vec<&ListenerFrame> = own.filter(|listener| listener.is_servable()).collect();
    if servable.is_empty() {
        return Condition::fails(kind, Reason::Invalid, "No listener can be served");
    }
    let (mut pending, mut is_everywhere) = (None, true);
    for listener in servable {
        match progress(world, frame, listener, assignment) {
            Progress::Listening(missing) => is_everywhere &= missing.is_none(),
            Progress::Pending => pending = Some(listener),
            Progress::Failed(failed) => return Condition::fails(kind, failed.of_gateway, failed.trouble.message),
        }
    }
    if let Some(Trouble { reason, message }) = unreachable(world, key, frame, owned) {
        return Condition::fails(kind, reason, message);
    }
    match pending {
        None if is_everywhere => Condition::holds(kind, Reason::Programmed, "All valid listeners accept connections"),
        None => {
            let message = "All valid listeners accept connections, but not on every replica; their conditions say more";
            Condition::holds(kind, Reason::Programmed, message)
        }
        Some(listener) => {
            let message = format!("no data plane has opened listener {} yet", listener.declared.name);
            Condition::fails(kind, Reason::Pending, message)
        }
    }
}

/// Why nobody can reach the listeners of a Gateway through its Service, if so.
fn unreachable(world: &World, key: &Key, frame: &Frame, owned: &[OwnedName]) -> Option<Trouble> {
    let Entry::LoadBalancer(balancer) = &frame.entry else {
        return None;
    };
    let conflict = owned.iter().find_map(|name| Some((name, world.conflict(name)?)));
    if let Some((name, found)) = conflict {
        let message = format!("{name} is needed and cannot be made: {found}");
        return Some(Trouble::new(Reason::NoResources, message));
    }
    let service = format!("Service {}/{}", key.namespace, service_name(&key.name));
    let given = world.entry(key).map_or(&[][..], |entry| &entry.addresses);
    let is_given = |address: &IpAddr| given.contains(&Address::Ip(*address));
    if let Some(address) = frame.fixed.iter().find(|address| !is_given(address)) {
        let message = format!("address {address} was asked for and {service} was not given it");
        return Some(Trouble::new(Reason::AddressNotUsable, message));
    }
    if given.is_empty() {
        let Some(_) = world.entry(key) else {
            // Ours to make, so it is a matter of moments.
            return Some(Trouble::new(Reason::Pending, format!("{service} is not there yet")));
        };
        let message = match balancer.service_type {
            ServiceType::LoadBalancer => {
                format!("{service} has no address yet; the load balancer of the cluster gives it one")
            }
            _ => format!("{service} has no address yet"),
        };
        return Some(Trouble::new(Reason::AddressNotAssigned, message));
    }
    let is_led_to = |replica: &&Replica| replica.addresses.iter().any(|address| is_reachable(*address));
    let replicas = world.replicas().map(|(_, replica)| replica).filter(is_led_to);
    let replicas: Vec<&Replica> = replicas.collect();
    let is_local = balancer.external_traffic_policy == Some(ExternalTrafficPolicy::Local)
        && balancer.service_type != ServiceType::ClusterIp;
    let why = if replicas.is_empty() {
        "no replica has said at which address the cluster can reach it; give it one, or use entry Host"
    } else if is_local && replicas.iter().all(|replica| replica.node.is_none()) {
        "externalTrafficPolicy Local needs the node of each replica, and none has said its own"
    } else {
        return None;
    };
    Some(Trouble::new(
        Reason::NoResources,
        format!("{service} leads nowhere: {why}"),
    ))
}
