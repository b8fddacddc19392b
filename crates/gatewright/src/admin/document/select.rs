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
            "lset" => Some(Kind::ListenerSet),
            "route" | "routes" => Some(Kind::HttpRoute),
            "btlspolicy" => Some(Kind::BackendTlsPolicy),
            _ => None,
        };
        let full = |kind: &Kind| word == kind.as_str().to_ascii_lowercase() || word == kind.plural();
        abbreviation.or_else(|| Kind::ALL.iter().copied().filter(|kind| kind.has_status()).find(full))
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Selection};

    #[test]
    fn every_kind_with_a_status_is_known_by_its_name_its_plural_and_its_short_name() {
        for kind in Kind::ALL {
            let has_status = kind.has_status();
            for word in [kind.as_str(), kind.plural()] {
                assert_eq!(Selection::kind_of(word), has_status.then_some(*kind), "{word}");
            }
        }
        for (word, kind) in [
            ("lset", Kind::ListenerSet),
            ("btlspolicy", Kind::BackendTlsPolicy),
            ("GTW", Kind::Gateway),
        ] {
            assert_eq!(Selection::kind_of(word), Some(kind), "{word}");
        }
    }
}
