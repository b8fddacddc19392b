//! TLSRoute, TCPRoute and UDPRoute, reduced to the form of an HTTPRoute: rules that match everything on their hosts.
//!
//! Their parts have the same fields as those of an HTTPRoute, under types of other names, and are read as such.

use gatewright_api::{self as api, httproutes, meta::ObjectMeta, tcproutes, tlsroutes, udproutes};
use gatewright_ir::{Match, Timeouts};
use serde::Serialize;

use super::{
    Meta, Refusal, Route, RouteKind, RouteRule,
    filters::recast,
    http_route::{self, or_refused},
};
use crate::Interner;

impl Route {
    /// Reads a TLSRoute.
    pub(crate) fn of_tls(route: &api::TlsRoute, names: &mut Interner) -> Self {
        let tlsroutes::TlsRouteSpec {
            hostnames,
            parent_refs,
            rules,
            use_default_gateways,
        } = &route.spec;
        let mut refusals = Vec::new();
        let hosts = http_route::reduce_hosts(hostnames, &mut refusals);
        let read = rules.iter().enumerate().map(|(index, rule)| {
            let tlsroutes::TlsRouteRules { backend_refs, name } = rule;
            reduce_rule(backend_refs, name.as_deref(), index, names)
        });
        let rules = read.collect();
        Self {
            is_hostless: hosts.is_empty() && !hostnames.is_empty(),
            hostnames: hosts,
            uses_defaults: matches!(use_default_gateways, Some(tlsroutes::TlsRouteUseDefaultGateways::All)),
            rules,
            ..base(RouteKind::Tls, &route.metadata, parent_refs.as_deref(), refusals, names)
        }
    }

    /// Reads a TCPRoute.
    pub(crate) fn of_tcp(route: &api::TcpRoute, names: &mut Interner) -> Self {
        let tcproutes::TcpRouteSpec {
            parent_refs,
            rules,
            use_default_gateways,
        } = &route.spec;
        let read = rules.iter().enumerate().map(|(index, rule)| {
            let tcproutes::TcpRouteRules { backend_refs, name } = rule;
            reduce_rule(backend_refs, name.as_deref(), index, names)
        });
        let rules = read.collect();
        Self {
            uses_defaults: matches!(use_default_gateways, Some(tcproutes::TcpRouteUseDefaultGateways::All)),
            rules,
            ..base(
                RouteKind::Tcp,
                &route.metadata,
                parent_refs.as_deref(),
                Vec::new(),
                names,
            )
        }
    }

    /// Reads a UDPRoute.
    pub(crate) fn of_udp(route: &api::UdpRoute, names: &mut Interner) -> Self {
        let udproutes::UdpRouteSpec {
            parent_refs,
            rules,
            use_default_gateways,
        } = &route.spec;
        let read = rules.iter().enumerate().map(|(index, rule)| {
            let udproutes::UdpRouteRules { backend_refs, name } = rule;
            reduce_rule(backend_refs, name.as_deref(), index, names)
        });
        let rules = read.collect();
        Self {
            uses_defaults: matches!(use_default_gateways, Some(udproutes::UdpRouteUseDefaultGateways::All)),
            rules,
            ..base(
                RouteKind::Udp,
                &route.metadata,
                parent_refs.as_deref(),
                Vec::new(),
                names,
            )
        }
    }
}

/// What all of them have: everything but hosts and rules.
fn base<P: Serialize>(
    kind: RouteKind,
    metadata: &ObjectMeta,
    parents: Option<&[P]>,
    mut refusals: Vec<Refusal>,
    names: &mut Interner,
) -> Route {
    let parents = recast(parents.unwrap_or_default(), "spec.parentRefs");
    let parents: Vec<httproutes::HttpRouteParentRefs> = or_refused(parents, &mut refusals);
    let parents = parents.iter().map(|parent| http_route::reduce_parent(parent, names));
    Route {
        kind,
        meta: Meta::of(metadata),
        hostnames: Box::default(),
        is_hostless: false,
        parents: parents.collect(),
        uses_defaults: false,
        rules: Box::default(),
        refusals: refusals.into(),
    }
}

fn reduce_rule<B: Serialize>(backends: &[B], name: Option<&str>, index: usize, names: &mut Interner) -> RouteRule {
    let mut refusals = Vec::new();
    let place = format!("spec.rules[{index}].backendRefs");
    let backends: Vec<httproutes::HttpRouteRulesBackendRefs> = or_refused(recast(backends, &place), &mut refusals);
    let backends = http_route::reduce_backends(&backends, &place, &mut refusals, names);
    RouteRule {
        name: names.optional(name),
        matches: Box::new([Match::everything()]),
        filters: None,
        backends,
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
        refusals: refusals.into(),
    }
}

#[cfg(test)]
mod tests;
