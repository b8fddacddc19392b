//! A Gateway before any route is attached: whether it is accepted, its settings, its listeners.

use std::{borrow::Cow, collections::BTreeSet, net::IpAddr, sync::Arc};

use gatewright_api::Kind;
use gatewright_ir::{Certificate, ClientValidation, ListenerSettings, Origin, Port, Text};
use gatewright_world::{
    Key, World,
    desired::Reason,
    object::{Gateway, Infrastructure, Listener},
    origin,
};

use super::{
    Entry,
    certificates::{self, Known},
    config, listeners,
};
use crate::{PlanSettings, class::ClassPlan};

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) reason: Reason,
    pub(crate) message: Cow<'static, str>,
}

impl Trouble {
    pub(crate) fn new(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// Whether a Gateway is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is, perhaps with something to mend.
    Served(Option<Trouble>),
    /// It is not.
    Refused(Trouble),
}

/// A Gateway of ours, without its routes.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) namespace: Text,
    pub(crate) origin: Origin,
    pub(crate) generation: i64,
    pub(crate) created: i64,
    pub(crate) verdict: Verdict,
    /// Whether it takes routes that ask for default Gateways.
    pub(crate) is_default: bool,
    pub(crate) http: Arc<ListenerSettings>,
    /// The certificate for backends.
    pub(crate) identity: Option<Arc<Certificate>>,
    /// Whether all is well with it, if one is asked for.
    pub(crate) identity_standing: Option<Result<(), Trouble>>,
    /// Whether clients without a valid certificate are let in where one is asked for.
    pub(crate) has_insecure_fallback: bool,
    pub(crate) entry: Entry,
    pub(crate) infrastructure: Option<Arc<Infrastructure>>,
    /// Addresses it must have, all of them; empty means one of the pool, or whichever its Service is given.
    pub(crate) fixed: Vec<IpAddr>,
    pub(crate) pool: Vec<IpAddr>,
    /// Its own, then those of the ListenerSets that it allows.
    pub(crate) listeners: Vec<ListenerFrame>,
}

/// A listener, without its routes.
#[derive(Clone, Debug)]
pub(crate) struct ListenerFrame {
    pub(crate) origin: Origin,
    /// The ListenerSet that it stands in; none for the Gateway's own.
    pub(crate) set: Option<Key>,
    pub(crate) declared: Arc<Listener>,
    /// The kinds of routes that can attach.
    pub(crate) kinds: Vec<&'static str>,
    /// Why it is not accepted.
    pub(crate) refused: Option<Trouble>,
    /// Whether the refusal is a clash with another listener.
    pub(crate) is_conflicted: bool,
    /// What it refers to and cannot have.
    pub(crate) unresolved: Option<Trouble>,
    /// Another TLS listener on the port that answers for some of the same names.
    pub(crate) overlapping: Option<Text>,
    pub(crate) certificates: Vec<Arc<Certificate>>,
    /// Which clients may connect; absent means all.
    pub(crate) clients: Option<Arc<ClientValidation>>,
}

impl ListenerFrame {
    /// Whether it could be opened, addresses apart.
    pub(crate) fn is_servable(&self) -> bool {
        let needs_certificate = self.declared.protocol.terminates_tls();
        self.refused.is_none() && !(needs_certificate && self.certificates.is_empty())
    }

    /// Whether clients that ask for its names must be turned away, where its port is open for others: they are its clients
    /// and nobody else's.
    pub(crate) fn is_sealed(&self) -> bool {
        !self.is_servable() && !self.is_conflicted && self.declared.protocol.begins_with_tls()
    }

    /// The namespace of the object it stands in.
    pub(crate) fn namespace<'a>(&'a self, frame: &'a Frame) -> &'a Text {
        self.set.as_ref().map_or(&frame.namespace, |set| &set.namespace)
    }
}

impl Frame {
    /// Whether it is served at all.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self.verdict, Verdict::Served(_))
    }

    /// The ports of all listeners that could ever be opened, each once, in order. Also of those that cannot be opened now: a
    /// certificate that is missing for a moment must cost nobody a port or an address.
    pub(crate) fn ports(&self) -> BTreeSet<Port> {
        let listeners = self.listeners.iter();
        listeners.filter_map(|listener| listener.declared.door()).collect()
    }

    /// The listeners on a port.
    pub(crate) fn listeners_on(&self, port: Port) -> impl Iterator<Item = &ListenerFrame> {
        self.listeners
            .iter()
            .filter(move |listener| listener.declared.door() == Some(port))
    }

    /// The Gateway's own listeners, each with its position.
    pub(crate) fn own_listeners(&self) -> impl Iterator<Item = (usize, &ListenerFrame)> {
        self.listeners_of(None)
    }

    /// The listeners of a ListenerSet, or the Gateway's own, each with its position.
    pub(crate) fn listeners_of(&self, set: Option<&Key>) -> impl Iterator<Item = (usize, &ListenerFrame)> {
        let listeners = self.listeners.iter().enumerate();
        listeners.filter(move |(_, listener)| listener.set.as_ref() == set)
    }

    /// Whether routes attach to this frame just as to that one. Whether the Gateway or a listener is accepted makes no
    /// difference to that, says the specification.
    pub(crate) fn attaches_like(&self, other: &Self) -> bool {
        let same = |(left, right): (&ListenerFrame, &ListenerFrame)| {
            let (a, b) = (&left.declared, &right.declared);
            left.set == right.set
                && a.name == b.name
                && a.port == b.port
                && a.protocol == b.protocol
                && a.hostname == b.hostname
                && a.namespaces == b.namespaces
                && left.kinds == right.kinds
        };
        self.is_default == other.is_default
            && self.listeners.len() == other.listeners.len()
            && self.listeners.iter().zip(&other.listeners).all(same)
    }
}

/// Builds the frame of a Gateway whose class is ours. Certificates equal to those of `previous` are shared with it.
pub(crate) fn build(
    world: &World,
    settings: &PlanSettings,
    key: &Key,
    gateway: &Gateway,
    class: &ClassPlan,
    previous: Option<&Frame>,
) -> Frame {
    let mut frame = Frame {
        namespace: key.namespace.clone(),
        origin: origin::object(Kind::Gateway, key),
        generation: gateway.meta.generation,
        created: gateway.meta.created,
        verdict: Verdict::Served(None),
        is_default: gateway.is_default,
        http: Arc::default(),
        identity: None,
        identity_standing: None,
        has_insecure_fallback: gateway.frontend.has_fallback(),
        entry: Entry::Unknown,
        infrastructure: gateway.infrastructure.clone(),
        fixed: Vec::new(),
        pool: settings.host_addresses.clone(),
        listeners: listeners::build(world, key, gateway, previous),
    };
    if let Some(reference) = &gateway.identity {
        let asking = certificates::Asking {
            world,
            kind: Kind::Gateway,
            namespace: &key.namespace,
            invalid: Reason::InvalidClientCertificateRef,
        };
        let (identity, trouble) = match certificates::resolve(&asking, reference) {
            Ok((identity, trouble)) => (Some(Known::of(previous).share(identity)), trouble),
            Err(trouble) => (None, Some(trouble)),
        };
        frame.identity = identity;
        frame.identity_standing = Some(trouble.map_or(Ok(()), Err));
    }
    frame.verdict = match judge(world, settings, key, gateway, class, &mut frame) {
        Ok(trouble) => Verdict::Served(trouble),
        Err(trouble) => Verdict::Refused(trouble),
    };
    // Sharing the settings of the previous frame keeps unchanged listeners equal by pointer.
    if let Some(previous) = previous
        && previous.http == frame.http
    {
        frame.http = previous.http.clone();
    }
    frame
}

fn judge(
    world: &World,
    settings: &PlanSettings,
    key: &Key,
    gateway: &Gateway,
    class: &ClassPlan,
    frame: &mut Frame,
) -> Result<Option<Trouble>, Trouble> {
    let Ok(config) = &class.config else {
        return Err(Trouble::new(
            Reason::InvalidParameters,
            format!("GatewayClass {} is not accepted; its conditions say why", gateway.class),
        ));
    };
    // Before its settings: of one that cannot be read they are not known, and its Service stays as it is.
    if let Some(refusal) = gateway.refusals.first() {
        return Err(Trouble::new(
            Reason::Invalid,
            format!("{}: {}", refusal.field, refusal.message),
        ));
    }
    let merged = config::merge(world, settings, key, gateway, config.as_ref())
        .map_err(|message| Trouble::new(Reason::InvalidParameters, message))?;
    frame.http = merged.http;
    frame.pool = merged.pool;
    frame.entry = merged.entry;
    for request in &gateway.addresses {
        if &*request.kind != "IPAddress" {
            let message = match frame.entry {
                Entry::LoadBalancer(_) => format!(
                    "addresses of type {} cannot be asked for; use type IPAddress",
                    request.kind
                ),
                Entry::Unknown | Entry::Host => {
                    format!(
                        "addresses of type {} cannot be bound here; use type IPAddress",
                        request.kind
                    )
                }
            };
            return Err(Trouble::new(Reason::UnsupportedAddress, message));
        }
        let Some(value) = &request.value else { continue };
        let address = value.parse().map_err(|_| {
            Trouble::new(
                Reason::UnsupportedAddress,
                format!("address {value:?} is not an IP address"),
            )
        })?;
        frame.fixed.push(address);
    }
    Ok(merged
        .trouble
        .map(|message| Trouble::new(Reason::InvalidParameters, message)))
}
