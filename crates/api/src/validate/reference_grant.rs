//! Limits of ReferenceGrant.

use super::{
    facts::Facts,
    formats::{GROUP, KIND, NAMESPACE},
    shape::Check,
};

pub(super) fn facts(facts: &mut Facts) {
    for list in ["spec.from", "spec.to"] {
        facts.at(list, &[Check::Items(1, 16)]);
        facts.at(
            &format!("{list}[].group"),
            &[Check::Length(0, 253), Check::Format(&GROUP)],
        );
        facts.at(&format!("{list}[].kind"), &[Check::Length(1, 63), Check::Format(&KIND)]);
    }
    facts.at(
        "spec.from[].namespace",
        &[Check::Length(1, 63), Check::Format(&NAMESPACE)],
    );
    facts.at("spec.to[].name", &[Check::Length(1, 253)]);
}
