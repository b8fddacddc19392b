//! Limits, defaults and rules of TLSRoute, TCPRoute and UDPRoute.

use super::facts::Facts;

pub(super) fn facts(_facts: &mut Facts) {}

pub(super) fn tls_facts(facts: &mut Facts) {
    self::facts(facts);
}
