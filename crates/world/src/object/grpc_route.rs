//! GRPCRoute, reduced to the form of an HTTPRoute.
//!
//! A gRPC call is a POST to `/service/method`, so that a method match is a path match. Which of two matches wins is counted
//! in characters of service and method, not of the path; [`GrpcMatch`] carries that.

use gatewright_api::{self as api, grpcroutes as types, httproutes, meta::ObjectMeta};
use gatewright_ir::{GrpcMatch, Match, PathMatch, Timeouts};

use super::{
    Meta, Refusal, Route, RouteKind, RouteRule, filters,
    http_route::{self, HeaderCondition, or_refused},
    session,
};
use crate::Interner;

impl Route {
    /// Reads a GRPCRoute.
    pub(crate) fn of_grpc(route: &api::GrpcRoute, names: &mut Interner) -> Self {
        let mut refusals = Vec::new();
        let types::GrpcRouteSpec {
            hostnames,
            parent_refs,
            rules,
            use_default_gateways,
        } = &route.spec;
        let hostnames = hostnames.as_deref().unwrap_or_default();
        let hosts = http_route::reduce_hosts(hostnames, &mut refusals);
        let parents = filters::recast(parent_refs.as_deref().unwrap_or_default(), "spec.parentRefs");
        let parents: Vec<httproutes::HttpRouteParentRefs> = or_refused(parents, &mut refusals);
        Self {
            kind: RouteKind::Grpc,
            meta: Meta::of(&route.metadata),
            is_hostless: hosts.is_empty() && !hostnames.is_empty(),
            hostnames: hosts,
            parents: parents
                .iter()
                .map(|parent| http_route::reduce_parent(parent, names))
                .collect(),
            uses_defaults: matches!(use_default_gateways, Some(types::GrpcRouteUseDefaultGateways::All)),
            rules: rules
                .iter()
                .flatten()
                .enumerate()
                .map(|(index, rule)| reduce_rule(rule, index, &route.metadata, names))
                .collect(),
            refusals: refusals.into(),
        }
    }
}

fn reduce_rule(rule: &types::GrpcRouteRules, index: usize, metadata: &ObjectMeta, names: &mut Interner) -> RouteRule {
    let mut refusals = Vec::new();
    let types::GrpcRouteRules {
        backend_refs,
        filters: rule_filters,
        matches,
        name,
        session_persistence,
    } = rule;
    let field = |name: &str| format!("spec.rules[{index}].{name}");
    let declared = matches.as_deref().unwrap_or_default();
    let mut reduced = Vec::with_capacity(declared.len().max(1));
    for (position, declared) in declared.iter().enumerate() {
        match reduce_match(declared, &field(&format!("matches[{position}]")), names) {
            Ok(matches) => reduced.push(matches),
            Err(refusal) => refusals.push(refusal),
        }
    }
    if declared.is_empty() {
        reduced.push(Match {
            grpc: Some(GrpcMatch::default()),
            ..Match::everything()
        });
    }
    let declared = rule_filters.as_deref().unwrap_or_default();
    let place = field("filters");
    let filters = filters::recast::<Vec<httproutes::HttpRouteRulesFilters>>(declared, &place)
        .and_then(|declared| filters::reduce(&declared, &place, names));
    let filters = or_refused(filters, &mut refusals);
    let declared = backend_refs.as_deref().unwrap_or_default();
    let place = field("backendRefs");
    let backends: Vec<httproutes::HttpRouteRulesBackendRefs> =
        or_refused(filters::recast(declared, &place), &mut refusals);
    let backends = http_route::reduce_backends(&backends, &place, &mut refusals, names);
    let place = field("sessionPersistence");
    let session = session_persistence.as_ref().map(|session| {
        let rule = session::Place {
            kind: RouteKind::Grpc,
            metadata,
            rule: index,
        };
        session::reduce(&filters::recast(session, &place)?, &rule, &place, names)
    });
    let session = or_refused(session.transpose(), &mut refusals);
    RouteRule {
        name: names.optional(name.as_deref()),
        matches: reduced.into(),
        filters,
        backends,
        timeouts: Timeouts::default(),
        retry: None,
        session: session.map(Box::new),
        refusals: refusals.into(),
    }
}

fn reduce_match(matches: &types::GrpcRouteRulesMatches, field: &str, names: &mut Interner) -> Result<Match, Refusal> {
    use types::GrpcRouteRulesMatchesHeadersType as HeaderType;
    let types::GrpcRouteRulesMatches { headers, method } = matches;
    let (path, grpc) = match method {
        None => (PathMatch::Prefix("/".into()), GrpcMatch::default()),
        Some(method) => reduce_method(method, &format!("{field}.method"), names)?,
    };
    let headers = headers.iter().flatten().map(|header| HeaderCondition {
        name: &header.name,
        is_pattern: matches!(header.r#type, Some(HeaderType::RegularExpression)),
        value: &header.value,
    });
    Ok(Match {
        path,
        method: None,
        headers: http_route::reduce_headers(headers, field, names)?,
        query: Box::new([]),
        grpc: Some(grpc),
    })
}

fn reduce_method(
    method: &types::GrpcRouteRulesMatchesMethod,
    field: &str,
    names: &mut Interner,
) -> Result<(PathMatch, GrpcMatch), Refusal> {
    use types::GrpcRouteRulesMatchesMethodType as Type;
    let types::GrpcRouteRulesMatchesMethod {
        method,
        service,
        r#type,
    } = method;
    let is_pattern = matches!(r#type, Some(Type::RegularExpression));
    let service = service.as_deref().filter(|service| !service.is_empty());
    let method = method.as_deref().filter(|method| !method.is_empty());
    let length = |text: Option<&str>| text.map_or(0, |text| u16::try_from(text.len()).unwrap_or(u16::MAX));
    let grpc = GrpcMatch {
        service: length(service),
        method: length(method),
    };
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte))
    };
    for (text, name) in [(service, "service"), (method, "method")] {
        if let Some(text) = text.filter(|text| !is_pattern && !is_plain(text)) {
            let message = format!("{text:?} is no name of a gRPC {name}");
            return Err(Refusal::invalid(format!("{field}.{name}"), message));
        }
    }
    let path = match (is_pattern, service, method) {
        (_, None, None) => PathMatch::Prefix("/".into()),
        (false, Some(service), Some(method)) => PathMatch::Exact(names.text(&format!("/{service}/{method}"))),
        (false, Some(service), None) => PathMatch::Prefix(names.text(&format!("/{service}"))),
        (false, None, Some(method)) => {
            let escaped = method.replace('.', "\\.");
            PathMatch::Pattern(http_route::pattern(&format!("/[^/]+/{escaped}"), || {
                format!("{field}.method")
            })?)
        }
        (true, service, method) => {
            // Each is checked alone first: joined, one could end where the other begins.
            for (text, name) in [(service, "service"), (method, "method")] {
                if let Some(text) = text {
                    http_route::pattern(text, || format!("{field}.{name}"))?;
                }
            }
            let part = |text: Option<&str>| text.map_or_else(|| "[^/]+".to_owned(), |text| format!("(?:{text})"));
            let joined = format!("/{}/{}", part(service), part(method));
            PathMatch::Pattern(http_route::pattern(&joined, || field.to_owned())?)
        }
    };
    Ok((path, grpc))
}

#[cfg(test)]
mod tests;
