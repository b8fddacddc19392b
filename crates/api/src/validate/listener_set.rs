//! Limits, defaults and rules of ListenerSet.

use super::facts::Facts;

pub(super) fn facts(_facts: &mut Facts) {}
