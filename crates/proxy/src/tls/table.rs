//! The listeners of one address and port that terminate TLS, by the host name that a client asks for.
//!
//! A table never changes. A new one takes over from the one before it whatever is still the same: parsed keys, whole
//! configurations, and the keys of session tickets, so that clients resume their sessions across updates.

use std::sync::Arc;

use ahash::AHashMap;
use gatewright_ir::{ClientValidation, HostPattern, Listener, Origin, Protocol, Termination, Text};
use rustls::ServerConfig;

use super::{
    certificates::{ListenerCertificates, Parsed, ParsedCertificates},
    config::configuration,
    provider::PROVIDER,
};

/// Which listener, and with it which certificates, a client gets.
#[derive(Debug, Default)]
pub(crate) struct TlsTable {
    listeners: Vec<ListenerTls>,
    exact: AHashMap<Text, usize>,
    /// By the name below which the wildcard stands.
    wildcard: AHashMap<Text, usize>,
    any: Option<usize>,
    parsed: ParsedCertificates,
    has_passthrough: bool,
}

/// One listener, as the handshake needs it.
#[derive(Clone, Debug)]
pub(super) struct ListenerTls {
    pub(super) origin: Origin,
    certificates: Arc<ListenerCertificates>,
    pub(super) clients: Option<Arc<ClientValidation>>,
    pub(super) handling: Handling,
}

/// What happens to the handshakes of a listener.
#[derive(Clone, Debug)]
pub(super) enum Handling {
    /// They are made here.
    Terminate(Arc<ServerConfig>),
    /// They are refused: there is no usable certificate, or nobody could be let in.
    Refuse,
    /// Backends make them.
    PassThrough,
}

impl Handling {
    /// The configuration, where handshakes are made here.
    pub(super) fn config(&self) -> Option<&Arc<ServerConfig>> {
        match self {
            Self::Terminate(config) => Some(config),
            Self::Refuse | Self::PassThrough => None,
        }
    }
}

impl TlsTable {
    /// Compiles the table of the listeners that share an address and a port. Listeners that do not begin with TLS are
    /// passed over.
    pub(crate) fn compile(listeners: &[Arc<Listener>], previous: Option<&Self>) -> Self {
        let mut before: AHashMap<&Origin, &ListenerTls> = AHashMap::default();
        if let Some(previous) = previous {
            before.extend(previous.listeners.iter().map(|listener| (&listener.origin, listener)));
        }
        let mut table = Self::default();
        for listener in listeners {
            let index = table.listeners.len();
            match &listener.protocol {
                Protocol::Https(termination) | Protocol::Tls(termination) => {
                    let parsed = termination
                        .certificates
                        .iter()
                        .map(|certificate| {
                            let known = previous.map(|previous| &previous.parsed);
                            table.parsed.parse(certificate, known, &PROVIDER)
                        })
                        .collect();
                    let same = before.get(&listener.origin).copied();
                    // What is in a connection that is routed as a whole is nobody's business here: nothing is agreed on.
                    let protocols: &[&[u8]] = match &listener.protocol {
                        Protocol::Https(_) => &[b"h2", b"http/1.1"],
                        _ => &[],
                    };
                    table
                        .listeners
                        .push(ListenerTls::new(&listener.origin, termination, parsed, protocols, same));
                }
                Protocol::Passthrough => {
                    table.has_passthrough = true;
                    table.listeners.push(ListenerTls::passed_through(&listener.origin));
                }
                Protocol::Http | Protocol::Tcp | Protocol::Udp => continue,
            }
            // The planner lets no two listeners of one port have the same host name; should it happen, the first wins.
            match &listener.hostname {
                HostPattern::Exact(name) => _ = table.exact.entry(name.clone()).or_insert(index),
                HostPattern::Wildcard(suffix) => _ = table.wildcard.entry(suffix.clone()).or_insert(index),
                HostPattern::Any => _ = table.any.get_or_insert(index),
            }
        }
        table
    }

    /// Whether there are listeners whose backends make the handshakes.
    pub(super) fn has_passthrough(&self) -> bool {
        self.has_passthrough
    }

    /// The listener with the most specific host name that holds the name asked for (in lower case).
    pub(super) fn select(&self, name: Option<&str>) -> Option<&ListenerTls> {
        let index = name
            .and_then(|name| {
                let parents = std::iter::successors(parent(name), |name| parent(name));
                let below = || parents.into_iter().find_map(|suffix| self.wildcard.get(suffix));
                self.exact.get(name).or_else(below)
            })
            .copied()
            .or(self.any)?;
        self.listeners.get(index)
    }
}

/// The name without its first label.
fn parent(name: &str) -> Option<&str> {
    name.split_once('.').map(|(_, rest)| rest)
}

impl ListenerTls {
    fn new(
        origin: &Origin,
        termination: &Termination,
        parsed: Vec<Parsed>,
        protocols: &[&[u8]],
        before: Option<&Self>,
    ) -> Self {
        let Termination { certificates, clients } = termination;
        let speaks_same = |config: &Arc<ServerConfig>| {
            config
                .alpn_protocols
                .iter()
                .map(Vec::as_slice)
                .eq(protocols.iter().copied())
        };
        // With other terms nothing of before is good, tickets least of all.
        let before = before.filter(|before| {
            before.clients == *clients
                && before.handling.config().is_none_or(speaks_same)
                && !matches!(before.handling, Handling::PassThrough)
        });
        if let Some(before) = before
            && before.certificates.are(certificates)
        {
            return before.clone();
        }
        let certificates = Arc::new(ListenerCertificates::new(parsed));
        let tickets = before
            .and_then(|before| before.handling.config())
            .map(|config| Arc::clone(&config.ticketer));
        let config = configuration(&certificates, clients.as_deref(), protocols, tickets).inspect_err(|error| {
            tracing::warn!(listener = %origin, %error, "TLS cannot be configured; handshakes are refused");
        });
        Self {
            origin: origin.clone(),
            certificates,
            clients: clients.clone(),
            handling: config.map_or(Handling::Refuse, |config| Handling::Terminate(Arc::new(config))),
        }
    }

    fn passed_through(origin: &Origin) -> Self {
        Self {
            origin: origin.clone(),
            certificates: Arc::new(ListenerCertificates::new(Vec::new())),
            clients: None,
            handling: Handling::PassThrough,
        }
    }
}
