//! HTTPRoute, reduced: matches and filters in IR form, references not yet resolved.

use std::time::Duration;

use gatewright_api::{self as api, GATEWAY_GROUP, httproutes as types};
use gatewright_ir::{Field, Filters, HostPattern, Match, Method, PathMatch, Pattern, Text, TextMatch, Timeouts};

use super::{Meta, Refusal, filters, parse_duration};
use crate::Interner;

/// An HTTPRoute.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRoute {
    /// Generation and age.
    pub meta: Meta,
    /// The hosts; none means those of the listener.
    pub hostnames: Box<[HostPattern]>,
    /// Whether every hostname it names was refused: then it is for no host, and not for those of the listener.
    pub is_hostless: bool,
    /// Where it wants to attach.
    pub parents: Box<[ParentRef]>,
    /// The rules.
    pub rules: Box<[RouteRule]>,
    /// Fields of the route itself that cannot be honoured.
    pub refusals: Box<[Refusal]>,
}

/// Where a route wants to attach.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParentRef {
    /// The group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, if the route names one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
    /// One listener, by name.
    pub section: Option<Text>,
    /// Listeners on one port.
    pub port: Option<u16>,
}

impl ParentRef {
    /// Whether it names a Gateway.
    pub fn is_gateway(&self) -> bool {
        *self.group == *GATEWAY_GROUP && &*self.kind == "Gateway"
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRule {
    /// Its name.
    pub name: Option<Text>,
    /// The matches that could be understood.
    pub matches: Box<[Match]>,
    /// Filters of the rule.
    pub filters: Option<Box<Filters>>,
    /// Backends, references not yet resolved.
    pub backends: Box<[BackendRef]>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// What cannot be honoured in it. Requests that meet a match of such a rule are answered with 500: letting them fall
    /// through to another rule could lead them past the very filter that was asked for.
    pub refusals: Box<[Refusal]>,
}

/// A reference to a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendRef {
    /// The group.
    pub group: Text,
    /// The kind.
    pub kind: Text,
    /// The namespace, if it names one.
    pub namespace: Option<Text>,
    /// The name.
    pub name: Text,
    /// The port.
    pub port: Option<u16>,
    /// Its share of the requests.
    pub weight: u32,
    /// Filters of this backend alone.
    pub filters: Option<Box<Filters>>,
}

impl HttpRoute {
    pub(crate) fn reduce(route: &api::HttpRoute, names: &mut Interner) -> Self {
        let mut refusals = Vec::new();
        let types::HttpRouteSpec {
            hostnames,
            parent_refs,
            rules,
            use_default_gateways,
        } = &route.spec;
        if matches!(use_default_gateways, Some(types::HttpRouteUseDefaultGateways::All)) {
            refusals.push(Refusal::unsupported(
                "spec.useDefaultGateways",
                "default Gateways are not supported; name a Gateway in parentRefs",
            ));
        }
        let mut hosts = Vec::new();
        for (index, hostname) in hostnames.iter().flatten().enumerate() {
            match HostPattern::parse(hostname) {
                Ok(pattern) => hosts.push(pattern),
                Err(error) => {
                    let field = format!("spec.hostnames[{index}]");
                    refusals.push(Refusal::invalid(field, format!("hostname {hostname:?} {error}")));
                }
            }
        }
        Self {
            meta: Meta::of(&route.metadata),
            is_hostless: hosts.is_empty() && hostnames.as_ref().is_some_and(|hostnames| !hostnames.is_empty()),
            hostnames: hosts.into(),
            parents: parent_refs
                .iter()
                .flatten()
                .map(|parent| reduce_parent(parent, names))
                .collect(),
            rules: rules
                .iter()
                .flatten()
                .enumerate()
                .map(|(index, rule)| reduce_rule(rule, index, names))
                .collect(),
            refusals: refusals.into(),
        }
    }
}

fn reduce_parent(parent: &types::HttpRouteParentRefs, names: &mut Interner) -> ParentRef {
    ParentRef {
        group: names.text(parent.group.as_deref().unwrap_or(GATEWAY_GROUP)),
        kind: names.text(parent.kind.as_deref().unwrap_or("Gateway")),
        namespace: names.optional(parent.namespace.as_deref()),
        name: names.text(&parent.name),
        section: names.optional(parent.section_name.as_deref()),
        port: parent.port.and_then(|port| u16::try_from(port).ok()),
    }
}

fn reduce_rule(rule: &types::HttpRouteRules, index: usize, names: &mut Interner) -> RouteRule {
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
    if retry.is_some() {
        refusals.push(Refusal::unsupported(field("retry"), "retries are not supported"));
    }
    if session_persistence.is_some() {
        refusals.push(Refusal::unsupported(
            field("sessionPersistence"),
            "session persistence is not supported",
        ));
    }
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
    let filters = filters::reduce(declared, &field("filters"), names).unwrap_or_else(|refusal| {
        refusals.push(refusal);
        None
    });
    let backends = backend_refs.iter().flatten().enumerate().map(|(position, backend)| {
        let field = field(&format!("backendRefs[{position}].filters"));
        let filters = filters::reduce_for_backend(backend.filters.as_deref().unwrap_or_default(), &field, names);
        BackendRef {
            group: names.text(backend.group.as_deref().unwrap_or_default()),
            kind: names.text(backend.kind.as_deref().unwrap_or("Service")),
            namespace: names.optional(backend.namespace.as_deref()),
            name: names.text(&backend.name),
            port: backend.port.and_then(|port| u16::try_from(port).ok()),
            weight: backend.weight.map_or(1, |weight| u32::try_from(weight).unwrap_or(0)),
            filters: filters.unwrap_or_else(|refusal| {
                refusals.push(refusal);
                None
            }),
        }
    });
    let backends = backends.collect();
    let timeouts = reduce_timeouts(timeouts.as_ref(), &field("timeouts")).unwrap_or_else(|refusal| {
        refusals.push(refusal);
        Timeouts::default()
    });
    RouteRule {
        name: names.optional(name.as_deref()),
        matches: reduced.into(),
        filters,
        backends,
        timeouts,
        refusals: refusals.into(),
    }
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
    let mut fields: Vec<Field> = Vec::new();
    for (index, header) in headers.iter().flatten().enumerate() {
        let is_pattern = matches!(header.r#type, Some(HeaderType::RegularExpression));
        let value = reduce_value(
            is_pattern,
            &header.value,
            || format!("{field}.headers[{index}].value"),
            names,
        )?;
        push_first(
            &mut fields,
            Field {
                name: names.text(&header.name.to_ascii_lowercase()),
                value,
            },
        );
    }
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
        headers: fields.into(),
        query: parameters.into(),
    })
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

fn pattern(text: &str, field: impl FnOnce() -> String) -> Result<Pattern, Refusal> {
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
        let duration = parse_duration(text).ok_or_else(|| {
            Refusal::invalid(
                format!("{field}.{name}"),
                format!("{text:?} is no duration; write for example 10s or 500ms"),
            )
        })?;
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
