//! A listener, reduced: of a Gateway or of a ListenerSet, which declare them alike.

use gatewright_api::{GATEWAY_GROUP, gateways as types};
use gatewright_ir::{HostPattern, Port, Text, Transport};

use super::{ObjectRef, Refusal, Selector};
use crate::Interner;

/// A listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its name, unique within its object.
    pub name: Text,
    /// Its port.
    pub port: u16,
    /// What it speaks.
    pub protocol: ListenerProtocol,
    /// The hosts it answers for.
    pub hostname: HostPattern,
    /// The namespaces whose routes may attach.
    pub namespaces: AllowedNamespaces,
    /// The kinds of routes that may attach; empty means all that fit the protocol.
    pub kinds: Box<[RouteKindRef]>,
    /// Its certificates.
    pub certificates: Box<[ObjectRef]>,
    /// Fields that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

/// What a listener speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// HTTP in clear text.
    Http,
    /// HTTP over TLS, terminated here.
    Https,
    /// TLS, terminated here; what is in it goes on as it is.
    Tls,
    /// TLS that goes on as it is.
    Passthrough,
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
    /// Anything else, by its name.
    Other(Text),
}

impl ListenerProtocol {
    /// What carries it; none if it is not known.
    pub fn transport(&self) -> Option<Transport> {
        match self {
            Self::Http | Self::Https | Self::Tls | Self::Passthrough | Self::Tcp => Some(Transport::Tcp),
            Self::Udp => Some(Transport::Udp),
            Self::Other(_) => None,
        }
    }

    /// Whether TLS is terminated here.
    pub fn terminates_tls(&self) -> bool {
        matches!(self, Self::Https | Self::Tls)
    }

    /// Whether connections begin with TLS, so that listeners which share a port are told apart by name.
    pub fn begins_with_tls(&self) -> bool {
        matches!(self, Self::Https | Self::Tls | Self::Passthrough)
    }

    /// The name as declared.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
            Self::Tls | Self::Passthrough => "TLS",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Other(name) => name,
        }
    }
}

impl Listener {
    /// Its port, if its protocol is known and the number can be one.
    pub fn door(&self) -> Option<Port> {
        let transport = self.protocol.transport()?;
        (self.port != 0).then_some(Port {
            number: self.port,
            transport,
        })
    }
}

/// The namespaces whose routes, or ListenerSets, may attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedNamespaces {
    /// None.
    None,
    /// That of the listener's own object.
    Same,
    /// All.
    All,
    /// Those whose labels are selected.
    Selected(Selector),
}

/// A kind of route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteKindRef {
    /// The group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
}

/// Reads a listener of a Gateway, or of a ListenerSet in a Gateway's form.
pub(super) fn reduce(listener: &types::GatewayListeners, index: usize, names: &mut Interner) -> Listener {
    let mut refusals = Vec::new();
    let field = |name: &str| format!("spec.listeners[{index}].{name}");
    let types::GatewayListeners {
        allowed_routes,
        hostname,
        name,
        port,
        protocol,
        tls,
    } = listener;
    let hostname = HostPattern::parse(hostname.as_deref().unwrap_or_default()).unwrap_or_else(|error| {
        refusals.push(Refusal::invalid(field("hostname"), format!("hostname {error}")));
        HostPattern::Any
    });
    let mode = tls.as_ref().and_then(|tls| tls.mode.as_ref());
    let is_passthrough = matches!(mode, Some(types::GatewayListenersTlsMode::Passthrough));
    let protocol = match protocol.as_str() {
        "HTTP" => ListenerProtocol::Http,
        "HTTPS" => ListenerProtocol::Https,
        "TLS" if is_passthrough => ListenerProtocol::Passthrough,
        "TLS" => ListenerProtocol::Tls,
        "TCP" => ListenerProtocol::Tcp,
        "UDP" => ListenerProtocol::Udp,
        other => ListenerProtocol::Other(names.text(other)),
    };
    if is_passthrough && protocol == ListenerProtocol::Https {
        let message = "an HTTPS listener terminates TLS; use protocol TLS to pass it through";
        refusals.push(Refusal::unsupported(field("tls.mode"), message));
    }
    // An option may demand more than is done here, a minimum version for example.
    if let Some(option) = tls.as_ref().and_then(|tls| tls.options.as_ref()?.keys().next()) {
        refusals.push(Refusal::unsupported(
            field("tls.options"),
            format!("the TLS option {option} is not known here; this listener stays closed"),
        ));
    }
    let namespaces = allowed_routes.as_ref().and_then(|routes| routes.namespaces.as_ref());
    let namespaces = match namespaces.and_then(|namespaces| namespaces.from.as_ref()) {
        None | Some(types::GatewayListenersAllowedRoutesNamespacesFrom::Same) => AllowedNamespaces::Same,
        Some(types::GatewayListenersAllowedRoutesNamespacesFrom::All) => AllowedNamespaces::All,
        Some(types::GatewayListenersAllowedRoutesNamespacesFrom::Selector) => {
            let selector = namespaces.and_then(|namespaces| namespaces.selector.as_ref());
            AllowedNamespaces::Selected(selector.map_or_else(Selector::absent, |selector| {
                let expressions = selector.match_expressions.iter().flatten().map(|expression| {
                    (
                        expression.key.as_str(),
                        expression.operator.as_str(),
                        expression.values.as_ref(),
                    )
                });
                Selector::reduce(selector.match_labels.as_ref(), expressions, names)
            }))
        }
    };
    let kinds = allowed_routes.as_ref().and_then(|routes| routes.kinds.as_ref());
    let kinds = kinds.into_iter().flatten().map(|kind| RouteKindRef {
        group: names.text(kind.group.as_deref().unwrap_or(GATEWAY_GROUP)),
        kind: names.text(&kind.kind),
    });
    let kinds = kinds.collect();
    let certificates = tls.as_ref().and_then(|tls| tls.certificate_refs.as_ref());
    let certificates = certificates.into_iter().flatten().map(|reference| {
        ObjectRef::reduce(
            (reference.group.as_deref(), reference.kind.as_deref()),
            (reference.namespace.as_deref(), &reference.name),
            names,
        )
    });
    let certificates = certificates.collect();
    let port = u16::try_from(*port).unwrap_or_else(|_| {
        refusals.push(Refusal::invalid(
            field("port"),
            format!("port {port} is not between 1 and 65535"),
        ));
        0
    });
    Listener {
        name: names.text(name),
        port,
        protocol,
        hostname,
        namespaces,
        kinds,
        certificates,
        refusals: refusals.into(),
    }
}

#[cfg(test)]
mod tests;
