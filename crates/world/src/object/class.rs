//! GatewayClass, reduced.

use gatewright_api as api;
use gatewright_ir::Text;

use super::{Meta, Refusal};
use crate::Interner;

/// A GatewayClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayClass {
    /// Generation and age.
    pub meta: Meta,
    /// Who is to run its Gateways.
    pub controller: Text,
    /// The object with its settings.
    pub parameters: Option<ParametersRef>,
    /// Why it cannot be read, if it cannot.
    pub refusal: Option<Refusal>,
}

/// A reference to an object with settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParametersRef {
    /// The group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, where the reference can name one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
}

impl GatewayClass {
    pub(crate) fn reduce(class: &api::GatewayClass, names: &mut Interner) -> Self {
        let parameters = class.spec.parameters_ref.as_ref().map(|reference| ParametersRef {
            group: names.text(&reference.group),
            kind: names.text(&reference.kind),
            namespace: names.optional(reference.namespace.as_deref()),
            name: names.text(&reference.name),
        });
        Self {
            meta: Meta::of(&class.metadata),
            controller: names.text(&class.spec.controller_name),
            parameters,
            refusal: None,
        }
    }
}
