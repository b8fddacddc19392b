//! Gateway, reduced.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_api::{self as api, GATEWAY_GROUP, gateways as types};
use gatewright_ir::{HostPattern, Text};

use super::{Meta, ParametersRef, Refusal, Selector};
use crate::Interner;

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// Generation and age.
    pub meta: Meta,
    /// Its class.
    pub class: Text,
    /// Whether routes that ask for default Gateways mean it.
    pub is_default: bool,
    /// The addresses it asks for.
    pub addresses: Box<[AddressRequest]>,
    /// The object with its own settings.
    pub parameters: Option<ParametersRef>,
    /// What is put on every object that is made for it.
    pub infrastructure: Option<Arc<Infrastructure>>,
    /// The listeners, in order.
    pub listeners: Box<[Arc<Listener>]>,
    /// Fields that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

/// Labels and annotations for the objects that are made for a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Infrastructure {
    /// The labels.
    pub labels: BTreeMap<Text, Text>,
    /// The annotations.
    pub annotations: BTreeMap<Text, Text>,
}

/// An address that a Gateway asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRequest {
    /// `IPAddress`, `Hostname` or a type of another implementation.
    pub kind: Text,
    /// The address; none means any of that type.
    pub value: Option<Text>,
}

/// A listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its name, unique within the Gateway.
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
    pub certificates: Box<[SecretRef]>,
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
    /// Anything else, by its name.
    Other(Text),
}

/// The namespaces whose routes may attach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedNamespaces {
    /// The Gateway's own.
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

/// A reference to a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRef {
    /// The group; empty for Secrets.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, if it names one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
}

impl Gateway {
    pub(crate) fn reduce(gateway: &api::Gateway, names: &mut Interner) -> Self {
        let mut refusals = Vec::new();
        let types::GatewaySpec {
            addresses,
            // Only ListenerSets ask for it, and they are not read.
            allowed_listeners: _,
            default_scope,
            gateway_class_name,
            infrastructure,
            listeners,
            tls,
        } = &gateway.spec;
        if tls.as_ref().is_some_and(|tls| tls.backend.is_some()) {
            refusals.push(Refusal::unsupported(
                "spec.tls.backend",
                "client certificates to backends are not supported",
            ));
        }
        let frontend = tls.as_ref().and_then(|tls| tls.frontend.as_ref());
        let addresses = addresses.iter().flatten().map(|address| AddressRequest {
            kind: names.text(address.r#type.as_deref().unwrap_or("IPAddress")),
            value: names.optional(address.value.as_deref().filter(|value| !value.is_empty())),
        });
        let addresses = addresses.collect();
        let parameters = infrastructure
            .as_ref()
            .and_then(|infrastructure| infrastructure.parameters_ref.as_ref());
        let parameters = parameters.map(|reference| ParametersRef {
            group: names.text(&reference.group),
            kind: names.text(&reference.kind),
            namespace: None,
            name: names.text(&reference.name),
        });
        let infrastructure = infrastructure.as_ref().map(|declared| {
            let mut texts = |texts: &Option<BTreeMap<String, String>>| {
                let texts = texts.iter().flatten();
                texts.map(|(key, value)| (names.text(key), names.text(value))).collect()
            };
            let (labels, annotations) = (texts(&declared.labels), texts(&declared.annotations));
            Infrastructure { labels, annotations }
        });
        let infrastructure = infrastructure
            .filter(|made| *made != Infrastructure::default())
            .map(Arc::new);
        let listeners = listeners.iter().enumerate();
        let listeners = listeners.map(|(index, listener)| Arc::new(reduce(listener, index, frontend, names)));
        let listeners = listeners.collect();
        Self {
            meta: Meta::of(&gateway.metadata),
            class: names.text(gateway_class_name),
            is_default: matches!(default_scope, Some(types::GatewayDefaultScope::All)),
            addresses,
            parameters,
            infrastructure,
            listeners,
            refusals: refusals.into(),
        }
    }
}

/// Whether clients must show a certificate on a port. A setting of the port takes the place of the default, also when it
/// asks for nothing.
fn verifies_clients(frontend: Option<&types::GatewayTlsFrontend>, port: i32) -> bool {
    let Some(types::GatewayTlsFrontend { default, per_port }) = frontend else {
        return false;
    };
    let own = per_port.iter().flatten().find(|own| own.port == port);
    own.map_or(default.validation.is_some(), |own| own.tls.validation.is_some())
}

fn reduce(
    listener: &types::GatewayListeners,
    index: usize,
    frontend: Option<&types::GatewayTlsFrontend>,
    names: &mut Interner,
) -> Listener {
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
    let protocol = match protocol.as_str() {
        "HTTP" => ListenerProtocol::Http,
        "HTTPS" => ListenerProtocol::Https,
        other => ListenerProtocol::Other(names.text(other)),
    };
    if matches!(
        tls.as_ref().and_then(|tls| tls.mode.as_ref()),
        Some(types::GatewayListenersTlsMode::Passthrough)
    ) {
        refusals.push(Refusal::unsupported(
            field("tls.mode"),
            "TLS passthrough is not supported",
        ));
    }
    // An option may demand more than is done here, a minimum version for example.
    if let Some(option) = tls.as_ref().and_then(|tls| tls.options.as_ref()?.keys().next()) {
        refusals.push(Refusal::unsupported(
            field("tls.options"),
            format!("the TLS option {option} is not known here; this listener stays closed"),
        ));
    }
    // Client certificates protect what is behind the listener: it stays closed rather than open without them.
    if protocol == ListenerProtocol::Https && verifies_clients(frontend, *port) {
        let message = "client certificate validation is not supported; this listener stays closed";
        refusals.push(Refusal::unsupported("spec.tls.frontend", message));
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
    let certificates = certificates.into_iter().flatten().map(|reference| SecretRef {
        group: names.text(reference.group.as_deref().unwrap_or_default()),
        kind: names.text(reference.kind.as_deref().unwrap_or("Secret")),
        namespace: names.optional(reference.namespace.as_deref()),
        name: names.text(&reference.name),
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
