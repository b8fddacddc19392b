//! Limits, defaults and rules of ListenerSet: a reference to the Gateway, and listeners as Gateways have them.

use super::{
    facts::{Facts, Reference},
    gateway,
};

pub(super) fn facts(facts: &mut Facts) {
    let parent = Reference {
        group: Some(crate::GATEWAY_GROUP),
        kind: Some("Gateway"),
        has_namespace: true,
        has_port: false,
    };
    facts.reference("spec.parentRef", parent);
    gateway::listeners(facts);
}
