//! HTTPRoute filters, into IR form.
//!
//! A filter that we do not honour is refused here, never skipped: its rule then answers 500, as the specification demands
//! of filters that cannot be applied.

mod auth;
mod cors;
mod mirror;
mod url;

use gatewright_api::httproutes as api;
use gatewright_ir::{HeaderChange, Text};

use super::{MirrorRef, Refusal, RefusalCause, RouteFilters};
use crate::Interner;

type Filter = api::HttpRouteRulesFilters;

/// Why a filter is refused; who reads the list adds where.
type Fault = (RefusalCause, String);

/// Reads the filters of a rule. `field` is the path of the list.
pub(super) fn reduce(
    filters: &[Filter],
    field: &str,
    names: &mut Interner,
) -> Result<Option<Box<RouteFilters>>, Refusal> {
    let mut reduced = RouteFilters::default();
    let mut mirrors = Vec::new();
    for (index, filter) in filters.iter().enumerate() {
        reduce_one(filter, &mut reduced, &mut mirrors, names).map_err(|(cause, message)| Refusal {
            cause,
            field: format!("{field}[{index}]").into(),
            message: message.into(),
        })?;
    }
    reduced.mirrors = mirrors.into();
    if reduced.plain.redirect.is_some() && reduced.plain.rewrite.is_some() {
        return Err(Refusal::invalid(
            field,
            "a rule cannot both redirect and rewrite; keep one of the two filters",
        ));
    }
    Ok((!reduced.is_empty()).then(|| Box::new(reduced)))
}

/// Reads the filters of a backendRef. Their generated types are copies of a rule's under other names, so they take the way
/// over JSON; they are rare.
pub(super) fn reduce_for_backend(
    filters: &[api::HttpRouteRulesBackendRefsFilters],
    field: &str,
    names: &mut Interner,
) -> Result<Option<Box<RouteFilters>>, Refusal> {
    if filters.is_empty() {
        return Ok(None);
    }
    reduce(&recast::<Vec<Filter>>(filters, field)?, field, names)
}

/// The same fields under types of another name.
pub(super) fn recast<T: serde::de::DeserializeOwned>(
    value: &(impl serde::Serialize + ?Sized),
    field: &str,
) -> Result<T, Refusal> {
    serde_json::to_value(value)
        .and_then(serde_json::from_value)
        .map_err(|error| Refusal::invalid(field, format!("cannot be read: {error}")))
}

fn reduce_one(
    filter: &Filter,
    into: &mut RouteFilters,
    mirrors: &mut Vec<MirrorRef>,
    names: &mut Interner,
) -> Result<(), Fault> {
    use api::HttpRouteRulesFiltersType as Type;
    let missing = |field: &str| Err((RefusalCause::Invalid, format!("the filter needs the field `{field}`")));
    let Filter {
        cors,
        extension_ref,
        external_auth,
        request_header_modifier,
        request_mirror,
        request_redirect,
        response_header_modifier,
        r#type,
        url_rewrite,
    } = filter;
    match r#type {
        Type::RequestHeaderModifier => match request_header_modifier {
            Some(change) => into.plain.request_headers = Some(request_headers(change, names)?),
            None => return missing("requestHeaderModifier"),
        },
        Type::ResponseHeaderModifier => match response_header_modifier {
            Some(change) => into.plain.response_headers = Some(response_headers(change, names)?),
            None => return missing("responseHeaderModifier"),
        },
        Type::RequestRedirect => match request_redirect {
            Some(change) => into.plain.redirect = Some(url::redirect(change, names)?),
            None => return missing("requestRedirect"),
        },
        Type::UrlRewrite => match url_rewrite {
            Some(change) => into.plain.rewrite = Some(url::rewrite(change, names)?),
            None => return missing("urlRewrite"),
        },
        Type::RequestMirror => match request_mirror {
            Some(mirror) => mirrors.push(mirror::mirror(mirror, names)?),
            None => return missing("requestMirror"),
        },
        Type::Cors => match cors {
            Some(cors) => into.plain.cors = Some(Box::new(cors::cors(cors, names)?)),
            None => return missing("cors"),
        },
        Type::ExternalAuth => match external_auth {
            // Two may not be joined: what the one lets pass the other would not have been asked.
            Some(_) if into.auth.is_some() => {
                let message = "a second ExternalAuth filter is not supported; keep one of them";
                return Err((RefusalCause::Unsupported, message.to_owned()));
            }
            Some(auth) => into.auth = Some(auth::auth(auth, names)?),
            None => return missing("externalAuth"),
        },
        Type::ExtensionRef => {
            let kind = extension_ref.as_ref().map_or_else(String::new, |reference| {
                format!("{} {} of group {}", reference.kind, reference.name, reference.group)
            });
            let message = format!("an ExtensionRef to {kind} cannot be honoured: the kind is not known here");
            return Err((RefusalCause::InvalidKind, message));
        }
    }
    Ok(())
}

/// Header names compare without case; keeping them in lower case makes that a byte comparison.
macro_rules! header_change {
    ($function:ident, $type:ty) => {
        fn $function(change: &$type, names: &mut Interner) -> Result<HeaderChange, Fault> {
            let set = change
                .set
                .iter()
                .flatten()
                .map(|header| pair(&header.name, &header.value, names));
            let set: Vec<_> = set.collect::<Result<_, _>>()?;
            let add = change
                .add
                .iter()
                .flatten()
                .map(|header| pair(&header.name, &header.value, names));
            let add: Vec<_> = add.collect::<Result<_, _>>()?;
            let remove = change
                .remove
                .iter()
                .flatten()
                .map(|name| header_name(name, names));
            let remove: Vec<_> = remove.collect::<Result<_, _>>()?;
            one_change_each(HeaderChange { set, add, remove })
        }
    };
}
header_change!(request_headers, api::HttpRouteRulesFiltersRequestHeaderModifier);
header_change!(response_headers, api::HttpRouteRulesFiltersResponseHeaderModifier);

/// Of several entries for one name only the first counts, and the lists must not name the same header: the specification
/// allows one action per name.
fn one_change_each(mut change: HeaderChange) -> Result<HeaderChange, Fault> {
    let HeaderChange { set, add, remove } = &mut change;
    for list in [&mut *set, &mut *add] {
        let mut seen: Vec<Text> = Vec::new();
        list.retain(|(name, _)| {
            let is_first = !seen.contains(name);
            seen.push(name.clone());
            is_first
        });
    }
    remove.sort();
    remove.dedup();
    let named = |name: &Text| set.iter().chain(&*add).filter(|(other, _)| other == name).count();
    let twice = set.iter().map(|(name, _)| name).find(|name| named(name) > 1);
    if let Some(name) = twice.or_else(|| remove.iter().find(|name| named(name) > 0)) {
        let message = format!("the header {name} is changed in more than one way; keep one of set, add and remove");
        return Err((RefusalCause::Invalid, message));
    }
    Ok(change)
}

/// Headers that say where a message ends or to whom it goes: the proxy's alone, for who could change them could smuggle.
const FRAMING: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn header_name(name: &str, names: &mut Interner) -> Result<Text, Fault> {
    let lower = name.to_ascii_lowercase();
    if FRAMING.contains(&lower.as_str()) {
        let hint = if lower == "host" {
            "; use a URLRewrite filter for the host"
        } else {
            ""
        };
        return Err((
            RefusalCause::Unsupported,
            format!("the header {name} belongs to the proxy and cannot be changed{hint}"),
        ));
    }
    Ok(names.text(&lower))
}

fn pair(name: &str, value: &str, names: &mut Interner) -> Result<(Text, Text), Fault> {
    if value
        .chars()
        .any(|character| character.is_control() && character != '\t')
    {
        return Err((
            RefusalCause::Invalid,
            format!("the value of header {name} must not hold control characters"),
        ));
    }
    Ok((header_name(name, names)?, names.text(value)))
}

#[cfg(test)]
mod tests;
