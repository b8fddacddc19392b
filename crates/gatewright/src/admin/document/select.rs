//! Which objects are asked for: by kind, name and namespace, as people write them.

use gatewright_api::Kind;
use gatewright_plan::StatusKey;
use serde::{Deserialize, Serialize};

/// What is asked for; what is absent is not asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Selection {
    /// The kind as it stands in YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
}

impl Selection {
    pub(crate) fn holds(&self, id: &StatusKey) -> bool {
        let is = |wanted: &Option<String>, actual: &str| wanted.as_deref().is_none_or(|wanted| wanted == actual);
        is(&self.kind, id.kind.as_str())
            && is(&self.name, &id.key.name)
            // What lies in no namespace is left out when one is asked for by itself, as `kubectl -n` does not do.
            && (is(&self.namespace, &id.key.namespace) || (!id.kind.is_namespaced() && self.kind.is_some()))
    }

    /// Whether everything is asked for.
    pub(crate) fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// The kind that goes by this word: its name, its plural or a customary abbreviation, in any case.
    pub(crate) fn kind_of(word: &str) -> Option<Kind> {
        let word = word.to_ascii_lowercase();
        let abbreviation = match word.as_str() {
            "gc" | "class" | "classes" => Some(Kind::GatewayClass),
            "gw" | "gtw" => Some(Kind::Gateway),
            "route" | "routes" => Some(Kind::HttpRoute),
            _ => None,
        };
        let shown = [
            Kind::GatewayClass,
            Kind::Gateway,
            Kind::HttpRoute,
            Kind::GrpcRoute,
            Kind::BackendTrafficPolicy,
        ];
        let full = |kind: &Kind| word == kind.as_str().to_ascii_lowercase() || word == kind.plural();
        abbreviation.or_else(|| shown.into_iter().find(full))
    }
}
