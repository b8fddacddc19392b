//! Gateway, reduced.

use std::{collections::BTreeMap, sync::Arc};

use gatewright_api::{self as api, gateways as types};
use gatewright_ir::Text;

use super::{
    AllowedNamespaces, Listener, Meta, ObjectRef, ParametersRef, Refusal, Selector, filters::recast,
    http_route::or_refused, listener,
};
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
    /// Which namespaces may add ListenerSets.
    pub allowed_sets: AllowedNamespaces,
    /// Which clients may connect to its HTTPS listeners.
    pub frontend: Frontend,
    /// The certificate it shows to backends.
    pub identity: Option<ObjectRef>,
    /// Fields that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

/// Which clients may connect, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontend {
    default: Option<Arc<FrontendValidation>>,
    ports: Box<[(u16, Option<Arc<FrontendValidation>>)]>,
}

/// Which certificates clients must show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontendValidation {
    /// ConfigMaps with the authorities that sign them.
    pub authorities: Box<[ObjectRef]>,
    /// Whether clients without a valid one may connect all the same.
    pub is_optional: bool,
}

impl Frontend {
    /// What holds on a port. A setting of the port takes the place of the default, also when it asks for nothing.
    pub fn on(&self, port: u16) -> Option<&Arc<FrontendValidation>> {
        let own = self.ports.iter().find(|(number, _)| *number == port);
        own.map_or(self.default.as_ref(), |(_, own)| own.as_ref())
    }

    /// Everything that it refers to.
    pub fn authorities(&self) -> impl Iterator<Item = &ObjectRef> {
        let own = self.ports.iter().filter_map(|(_, own)| own.as_ref());
        own.chain(&self.default)
            .flat_map(|validation| validation.authorities.iter())
    }

    /// Whether any port lets clients in that show no valid certificate.
    pub fn has_fallback(&self) -> bool {
        let own = self.ports.iter().filter_map(|(_, own)| own.as_ref());
        own.chain(&self.default).any(|validation| validation.is_optional)
    }
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

impl Gateway {
    pub(crate) fn reduce(gateway: &api::Gateway, names: &mut Interner) -> Self {
        let mut refusals = Vec::new();
        let types::GatewaySpec {
            addresses,
            allowed_listeners,
            default_scope,
            gateway_class_name,
            infrastructure,
            listeners,
            tls,
        } = &gateway.spec;
        let frontend = tls.as_ref().and_then(|tls| tls.frontend.as_ref());
        let frontend = frontend.map(|frontend| reduce_frontend(frontend, &mut refusals, names));
        let backend = tls.as_ref().and_then(|tls| tls.backend.as_ref());
        let identity = backend.and_then(|backend| backend.client_certificate_ref.as_ref());
        let identity = identity.map(|reference| {
            let (group, kind) = (reference.group.as_deref(), reference.kind.as_deref());
            ObjectRef::reduce((group, kind), (reference.namespace.as_deref(), &reference.name), names)
        });
        let allowed = allowed_listeners
            .as_ref()
            .and_then(|allowed| allowed.namespaces.as_ref());
        let allowed_sets = allowed.map_or(AllowedNamespaces::None, |allowed| reduce_allowed(allowed, names));
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
        let listeners = listeners.map(|(index, listener)| Arc::new(listener::reduce(listener, index, names)));
        let listeners = listeners.collect();
        Self {
            meta: Meta::of(&gateway.metadata),
            class: names.text(gateway_class_name),
            is_default: matches!(default_scope, Some(types::GatewayDefaultScope::All)),
            addresses,
            parameters,
            infrastructure,
            listeners,
            allowed_sets,
            frontend: frontend.unwrap_or_default(),
            identity,
            refusals: refusals.into(),
        }
    }
}

fn reduce_allowed(allowed: &types::GatewayAllowedListenersNamespaces, names: &mut Interner) -> AllowedNamespaces {
    use types::GatewayAllowedListenersNamespacesFrom as From;
    match &allowed.from {
        None | Some(From::None) => AllowedNamespaces::None,
        Some(From::Same) => AllowedNamespaces::Same,
        Some(From::All) => AllowedNamespaces::All,
        Some(From::Selector) => {
            AllowedNamespaces::Selected(allowed.selector.as_ref().map_or_else(Selector::absent, |selector| {
                let expressions = selector.match_expressions.iter().flatten();
                let expressions = expressions.map(|one| (one.key.as_str(), one.operator.as_str(), one.values.as_ref()));
                Selector::reduce(selector.match_labels.as_ref(), expressions, names)
            }))
        }
    }
}

fn reduce_frontend(
    frontend: &types::GatewayTlsFrontend,
    refusals: &mut Vec<Refusal>,
    names: &mut Interner,
) -> Frontend {
    let types::GatewayTlsFrontend { default, per_port } = frontend;
    let default = default.validation.as_ref();
    let default = default.map(|validation| Arc::new(reduce_validation(validation, names)));
    let ports = per_port.iter().flatten().enumerate().filter_map(|(index, own)| {
        let validation = own.tls.validation.as_ref().map(|validation| {
            // The same fields under a type of another name.
            let field = format!("spec.tls.frontend.perPort[{index}].tls.validation");
            let validation = or_refused(recast(validation, &field), refusals);
            Arc::new(reduce_validation(&validation, names))
        });
        Some((u16::try_from(own.port).ok()?, validation))
    });
    Frontend {
        default,
        ports: ports.collect(),
    }
}

fn reduce_validation(
    validation: &types::GatewayTlsFrontendDefaultValidation,
    names: &mut Interner,
) -> FrontendValidation {
    use types::GatewayTlsFrontendDefaultValidationMode as Mode;
    let types::GatewayTlsFrontendDefaultValidation {
        ca_certificate_refs,
        mode,
    } = validation;
    let authorities = ca_certificate_refs.iter().map(|reference| {
        let (group, kind) = (Some(reference.group.as_str()), Some(reference.kind.as_str()));
        ObjectRef::reduce((group, kind), (reference.namespace.as_deref(), &reference.name), names)
    });
    FrontendValidation {
        authorities: authorities.collect(),
        is_optional: matches!(mode, Some(Mode::AllowInsecureFallback)),
    }
}

#[cfg(test)]
mod tests;
