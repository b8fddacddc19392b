//! What routes contribute to a Gateway, and the IR made of it.
//!
//! Hosts and clusters live in persistent maps: adding or removing one route costs the logarithm of what is there, and the
//! IR shares everything that did not change with the one before.

use std::sync::Arc;

use gatewright_ir::{Cluster, ClusterId, Entry, Gateway, Host, HostPattern, Listener, Protocol, Termination};
use gatewright_world::object::ListenerProtocol;
use imbl::OrdMap;

use super::{Assignment, Frame, ListenerFrame};

/// The contributions of all routes to one Gateway.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    listeners: Vec<ListenerTable>,
    pub(crate) clusters: OrdMap<ClusterId, Arc<Cluster>>,
}

#[derive(Clone, Debug, Default)]
struct ListenerTable {
    hosts: OrdMap<HostPattern, Arc<Host>>,
    attached: u32,
}

impl Table {
    /// An empty table for as many listeners.
    pub(crate) fn new(listeners: usize) -> Self {
        Self {
            listeners: vec![ListenerTable::default(); listeners],
            clusters: OrdMap::new(),
        }
    }

    /// How many routes are attached to a listener.
    pub(crate) fn attached(&self, listener: usize) -> u32 {
        self.listeners.get(listener).map_or(0, |table| table.attached)
    }

    /// Adds a route's entries to a listener.
    pub(crate) fn attach(&mut self, listener: usize, hosts: &[HostPattern], entries: &[Arc<Entry>], counts: bool) {
        let Some(table) = self.listeners.get_mut(listener) else {
            return;
        };
        table.attached += u32::from(counts);
        // A host is there because of its entries; a route that could not be read has none.
        if entries.is_empty() {
            return;
        }
        for pattern in hosts {
            let host = table.hosts.entry(pattern.clone()).or_default();
            let host = Arc::make_mut(host);
            for entry in entries {
                host.entries.insert(entry.clone());
            }
        }
    }

    /// Takes a route's entries from a listener.
    pub(crate) fn detach(&mut self, listener: usize, hosts: &[HostPattern], entries: &[Arc<Entry>], counts: bool) {
        let Some(table) = self.listeners.get_mut(listener) else {
            return;
        };
        table.attached = table.attached.saturating_sub(u32::from(counts));
        for pattern in hosts {
            let Some(host) = table.hosts.get_mut(pattern) else {
                continue;
            };
            let host = Arc::make_mut(host);
            for entry in entries {
                host.entries.remove(entry);
            }
            if host.entries.is_empty() {
                table.hosts.remove(pattern);
            }
        }
    }
}

/// The IR of a Gateway. Listeners equal to those of `previous` are shared with it.
pub(crate) fn emit(frame: &Frame, table: &Table, assignment: &Assignment, previous: Option<&Arc<Gateway>>) -> Gateway {
    let before = previous.map_or(&[][..], |gateway| &gateway.listeners);
    // Listeners keep their order, so each is looked for behind the last that was found: ListenerSets can add thousands.
    let mut place = 0;
    let listeners = frame
        .listeners
        .iter()
        .zip(&table.listeners)
        .filter_map(|(listener, table)| {
            let port = listener.declared.door()?;
            // One that is sealed does not open a port, it is only there where the port is open.
            let is_open = || frame.listeners_on(port).any(ListenerFrame::is_servable);
            let bind = assignment
                .bind(port)
                .filter(|_| listener.is_servable() || (listener.is_sealed() && is_open()))?;
            let made = emit_listener(frame, listener, table, assignment, bind);
            let (front, rest) = before.split_at_checked(place)?;
            let mut known = rest.iter().chain(front).zip(1..);
            let known = known.find(|(known, _)| known.origin == made.origin);
            if let Some((_, steps)) = known {
                place = (place + steps) % before.len();
            }
            Some(match known {
                Some((known, _)) if is_same(known, &made) => known.clone(),
                _ => Arc::new(made),
            })
        });
    Gateway {
        origin: frame.origin.clone(),
        generation: frame.generation,
        listeners: listeners.collect(),
        identity: frame.identity.clone(),
        clusters: table.clusters.clone(),
    }
}

fn emit_listener(
    frame: &Frame,
    listener: &ListenerFrame,
    table: &ListenerTable,
    assignment: &Assignment,
    bind: u16,
) -> Listener {
    Listener {
        origin: listener.origin.clone(),
        name: listener.declared.name.clone(),
        addresses: assignment.addresses.clone(),
        port: listener.declared.port,
        bind,
        protocol: protocol(listener),
        hostname: listener.declared.hostname.clone(),
        settings: frame.http.clone(),
        hosts: table.hosts.clone(),
    }
}

fn protocol(listener: &ListenerFrame) -> Protocol {
    if listener.is_sealed() {
        return Protocol::Https(Termination::default());
    }
    let termination = || Termination {
        certificates: listener.certificates.clone(),
        clients: listener.clients.clone(),
    };
    match listener.declared.protocol {
        ListenerProtocol::Https => Protocol::Https(termination()),
        ListenerProtocol::Tls => Protocol::Tls(termination()),
        ListenerProtocol::Passthrough => Protocol::Passthrough,
        ListenerProtocol::Tcp => Protocol::Tcp,
        ListenerProtocol::Udp => Protocol::Udp,
        ListenerProtocol::Http | ListenerProtocol::Other(_) => Protocol::Http,
    }
}

/// Whether two listeners are equal, told without walking their routing tables.
fn is_same(known: &Listener, made: &Listener) -> bool {
    let Listener {
        origin,
        name,
        addresses,
        port,
        bind,
        protocol,
        hostname,
        settings,
        hosts,
    } = known;
    *origin == made.origin
        && *name == made.name
        && *addresses == made.addresses
        && *port == made.port
        && *bind == made.bind
        && *protocol == made.protocol
        && *hostname == made.hostname
        && Arc::ptr_eq(settings, &made.settings)
        && (hosts.ptr_eq(&made.hosts) || (hosts.is_empty() && made.hosts.is_empty()))
}
