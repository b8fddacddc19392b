//! Limits, defaults and rules of BackendTLSPolicy.

use super::facts::Facts;

pub(super) fn facts(_facts: &mut Facts) {}
