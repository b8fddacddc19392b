//! Limits of GatewayClass.
//!
//! That `controllerName` never changes is a rule over time; a source that keeps versions would have to check it.

use super::{
    facts::{Facts, Reference},
    formats::CONTROLLER_NAME,
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    facts.at(
        "spec.controllerName",
        &[Check::Length(1, 253), Check::Format(&CONTROLLER_NAME)],
    );
    facts.at("spec.description", &[Check::Length(0, 64)]);
    facts.reference(
        "spec.parametersRef",
        Reference {
            has_namespace: true,
            ..Reference::default()
        },
    );
}
