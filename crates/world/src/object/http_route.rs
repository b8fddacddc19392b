//! HTTPRoute, reduced.
//!
//! What GRPCRoute has in common with it, by the same fields under types of other names, is read here for both.

use std::time::Duration;

use gatewright_api::{self as api, GATEWAY_GROUP, httproutes as types, meta::ObjectMeta};
use gatewright_ir::{Field, HostPattern, Match, Method, PathMatch, Pattern, Retry, TextMatch, Timeouts};

use super::{
    BackendRef, Meta, ParentRef, Refusal, Route, RouteKind, RouteRule, ServiceRef, filters, parse_duration, session,
};
use crate::Interner;

/// How often a request is sent again where the route does not say it.
const DEFAULT_ATTEMPTS: u32 = 2;
/// The least time between two attempts where the route does not say it.
const DEFAULT_BACKOFF: Duration = Duration::from_millis(25);
/// More attempts than this help nobody, and one request must not become a flood.
const MOST_ATTEMPTS: u32 = 100;

impl Route {
    /// Reads an HTTPRoute.
    pub(crate) fn of_http(route: &api::HttpRoute, names: &mut Interner) -> Self {
        let mut refusals = Vec::new();
        let types::HttpRouteSpec {
            hostnames,
            parent_refs,
            rules,
            use_default_gateways,
        } = &route.spec;
        let hostnames = hostnames.as_deref().unwrap_or_default();
        let hosts = reduce_hosts(hostnames, &mut refusals);
        Self {
            kind: RouteKind::Http,
            meta: Meta::of(&route.metadata),
            is_hostless: hosts.is_empty() && !hostnames.is_empty(),
            hostnames: hosts,
            parents: parent_refs
                .iter()
                .flatten()
                .map(|parent| reduce_parent(parent, names))
                .collect(),
            uses_defaults: matches!(use_default_gateways, Some(types::HttpRouteUseDefaultGateways::All)),
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

pub(super) fn reduce_hosts(hostnames: &[String], refusals: &mut Vec<Refusal>) -> Box<[HostPattern]> {
    let mut hosts = Vec::new();
    for (index, hostname) in hostnames.iter().enumerate() {
        match HostPattern::parse(hostname) {
            Ok(pattern) => hosts.push(pattern),
            Err(error) => {
                let field = format!("spec.hostnames[{index}]");
                refusals.push(Refusal::invalid(field, format!("hostname {hostname:?} {error}")));
            }
        }
    }
    hosts.into()
}

pub(super) fn reduce_parent(parent: &types::HttpRouteParentRefs, names: &mut Interner) -> ParentRef {
    ParentRef {
        group: names.text(parent.group.as_deref().unwrap_or(GATEWAY_GROUP)),
        kind: names.text(parent.kind.as_deref().unwrap_or("Gateway")),
        namespace: names.optional(parent.namespace.as_deref()),
        name: names.text(&parent.name),
        section: names.optional(parent.section_name.as_deref()),
        port: parent.port.and_then(|port| u16::try_from(port).ok()),
    }
}

fn reduce_rule(rule: &types::HttpRouteRules, index: usize, metadata: &ObjectMeta, names: &mut Interner) -> RouteRule {
    let mut refusals = Vec::new();
    let types::HttpRouteRules {
        backend_refs,
        filters: rule_filters,
        matches,
        name,
        retry,
        session_persistence,
        timeouts,
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
        reduced.push(Match::everything());
    }
    let declared = rule_filters.as_deref().unwrap_or_default();
    let filters = or_refused(filters::reduce(declared, &field("filters"), names), &mut refusals);
    let declared = backend_refs.as_deref().unwrap_or_default();
    let backends = reduce_backends(declared, &field("backendRefs"), &mut refusals, names);
    let timeouts = or_refused(reduce_timeouts(timeouts.as_ref(), &field("timeouts")), &mut refusals);
    let retry = retry.as_ref().map(|retry| reduce_retry(retry, &field("retry")));
    let retry = or_refused(retry.transpose(), &mut refusals);
    let place = session::Place {
        kind: RouteKind::Http,
        metadata,
        rule: index,
    };
    let session = session_persistence
        .as_ref()
        .map(|session| session::reduce(session, &place, &field("sessionPersistence"), names));
    let session = or_refused(session.transpose(), &mut refusals);
    RouteRule {
        name: names.optional(name.as_deref()),
        matches: reduced.into(),
        filters,
        backends,
        timeouts,
        retry: retry.map(Box::new),
        session: session.map(Box::new),
        refusals: refusals.into(),
    }
}

/// What could be read; what could not is noted.
pub(super) fn or_refused<T: Default>(read: Result<T, Refusal>, refusals: &mut Vec<Refusal>) -> T {
    read.unwrap_or_else(|refusal| {
        refusals.push(refusal);
        T::default()
    })
}

pub(super) fn reduce_backends(
    backends: &[types::HttpRouteRulesBackendRefs],
    field: &str,
    refusals: &mut Vec<Refusal>,
    names: &mut Interner,
) -> Box<[BackendRef]> {
    let backends = backends.iter().enumerate().map(|(position, backend)| {
        let types::HttpRouteRulesBackendRefs {
            filters: declared,
            group,
            kind,
            name,
            namespace,
            port,
            weight,
        } = backend;
        let field = format!("{field}[{position}].filters");
        let filters = filters::reduce_for_backend(declared.as_deref().unwrap_or_default(), &field, names);
        BackendRef {
            service: ServiceRef::reduce(
                (group.as_deref(), kind.as_deref()),
                (namespace.as_deref(), name),
                *port,
                names,
            ),
            weight: weight.map_or(1, |weight| u32::try_from(weight).unwrap_or(0)),
            filters: or_refused(filters, refusals),
        }
    });
    backends.collect()
}

fn reduce_retry(retry: &types::HttpRouteRulesRetry, field: &str) -> Result<Retry, Refusal> {
    let types::HttpRouteRulesRetry {
        attempts,
        backoff,
        codes,
    } = retry;
    let mut read = Vec::new();
    for (index, code) in codes.iter().flatten().enumerate() {
        let known = u16::try_from(*code).ok().filter(|code| (400..600).contains(code));
        read.push(known.ok_or_else(|| {
            let message = format!("{code} is no status code of an error; use codes from 400 to 599");
            Refusal::invalid(format!("{field}.codes[{index}]"), message)
        })?);
    }
    read.sort_unstable();
    read.dedup();
    let attempts = match attempts {
        None => DEFAULT_ATTEMPTS,
        Some(attempts) => u32::try_from(*attempts)
            .ok()
            .filter(|attempts| (1..=MOST_ATTEMPTS).contains(attempts))
            .ok_or_else(|| {
                let message = format!("{attempts} attempts are not possible; use 1 to {MOST_ATTEMPTS}");
                Refusal::unsupported(format!("{field}.attempts"), message)
            })?,
    };
    let backoff = match backoff {
        None => DEFAULT_BACKOFF,
        Some(text) => read_duration(text, || format!("{field}.backoff"))?,
    };
    Ok(Retry {
        codes: read.into(),
        attempts,
        backoff,
    })
}

/// Reads a duration of the API.
pub(super) fn read_duration(text: &str, field: impl FnOnce() -> String) -> Result<Duration, Refusal> {
    parse_duration(text).ok_or_else(|| {
        let message = format!("{text:?} is no duration; write for example 10s or 500ms");
        Refusal::invalid(field(), message)
    })
}

fn reduce_match(matches: &types::HttpRouteRulesMatches, field: &str, names: &mut Interner) -> Result<Match, Refusal> {
    use types::{
        HttpRouteRulesMatchesHeadersType as HeaderType, HttpRouteRulesMatchesQueryParamsType as ParameterType,
    };
    let types::HttpRouteRulesMatches {
        headers,
        method,
        path,
        query_params,
    } = matches;
    let headers = headers.iter().flatten().map(|header| HeaderCondition {
        name: &header.name,
        is_pattern: matches!(header.r#type, Some(HeaderType::RegularExpression)),
        value: &header.value,
    });
    let headers = reduce_headers(headers, field, names)?;
    let mut parameters: Vec<Field> = Vec::new();
    for (index, parameter) in query_params.iter().flatten().enumerate() {
        let is_pattern = matches!(parameter.r#type, Some(ParameterType::RegularExpression));
        let value = reduce_value(
            is_pattern,
            &parameter.value,
            || format!("{field}.queryParams[{index}].value"),
            names,
        )?;
        push_first(
            &mut parameters,
            Field {
                name: names.text(&parameter.name),
                value,
            },
        );
    }
    Ok(Match {
        path: path.as_ref().map_or(Ok(PathMatch::Prefix("/".into())), |path| {
            reduce_path(path, field, names)
        })?,
        method: method.as_ref().map(reduce_method),
        headers,
        query: parameters.into(),
        grpc: None,
    })
}

/// A condition on a header, as declared.
pub(super) struct HeaderCondition<'a> {
    pub(super) name: &'a str,
    pub(super) is_pattern: bool,
    pub(super) value: &'a str,
}

pub(super) fn reduce_headers<'a>(
    headers: impl Iterator<Item = HeaderCondition<'a>>,
    field: &str,
    names: &mut Interner,
) -> Result<Box<[Field]>, Refusal> {
    let mut fields: Vec<Field> = Vec::new();
    for (index, header) in headers.enumerate() {
        let place = || format!("{field}.headers[{index}].value");
        let value = reduce_value(header.is_pattern, header.value, place, names)?;
        let name = names.text(&header.name.to_ascii_lowercase());
        push_first(&mut fields, Field { name, value });
    }
    Ok(fields.into())
}

/// Of several conditions on one name only the first counts, as the specification says.
fn push_first(fields: &mut Vec<Field>, field: Field) {
    if !fields.iter().any(|known| known.name == field.name) {
        fields.push(field);
    }
}

fn reduce_path(
    path: &types::HttpRouteRulesMatchesPath,
    field: &str,
    names: &mut Interner,
) -> Result<PathMatch, Refusal> {
    use types::HttpRouteRulesMatchesPathType as Type;
    let value = path.value.as_deref().unwrap_or("/");
    Ok(match path.r#type {
        Some(Type::Exact) => PathMatch::Exact(names.text(value)),
        Some(Type::PathPrefix) | None => PathMatch::Prefix(names.text(value)),
        Some(Type::RegularExpression) => PathMatch::Pattern(pattern(value, || format!("{field}.path.value"))?),
    })
}

fn reduce_value(
    is_pattern: bool,
    value: &str,
    field: impl FnOnce() -> String,
    names: &mut Interner,
) -> Result<TextMatch, Refusal> {
    Ok(if is_pattern {
        TextMatch::Pattern(pattern(value, field)?)
    } else {
        TextMatch::Exact(names.text(value))
    })
}

pub(super) fn pattern(text: &str, field: impl FnOnce() -> String) -> Result<Pattern, Refusal> {
    Pattern::new(text).map_err(|error| {
        let message = format!("regular expression {text:?} cannot be used: {error}");
        Refusal::invalid(field(), message)
    })
}

fn reduce_method(method: &types::HttpRouteRulesMatchesMethod) -> Method {
    use types::HttpRouteRulesMatchesMethod as Declared;
    match method {
        Declared::Get => Method::Get,
        Declared::Head => Method::Head,
        Declared::Post => Method::Post,
        Declared::Put => Method::Put,
        Declared::Delete => Method::Delete,
        Declared::Connect => Method::Connect,
        Declared::Options => Method::Options,
        Declared::Trace => Method::Trace,
        Declared::Patch => Method::Patch,
    }
}

fn reduce_timeouts(timeouts: Option<&types::HttpRouteRulesTimeouts>, field: &str) -> Result<Timeouts, Refusal> {
    let Some(types::HttpRouteRulesTimeouts {
        backend_request,
        request,
    }) = timeouts
    else {
        return Ok(Timeouts::default());
    };
    let read = |text: &Option<String>, name: &str| -> Result<Option<Duration>, Refusal> {
        let Some(text) = text else { return Ok(None) };
        let duration = read_duration(text, || format!("{field}.{name}"))?;
        // A zero switches the limit off, as the specification says.
        Ok(Some(duration).filter(|duration| !duration.is_zero()))
    };
    Ok(Timeouts {
        request: read(request, "request")?,
        backend_request: read(backend_request, "backendRequest")?,
    })
}

#[cfg(test)]
mod tests;
