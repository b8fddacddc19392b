//! HTTPRoute filters, into IR form.
//!
//! A filter that we do not honour is refused here, never skipped: its rule then answers 500, as the specification demands
//! of filters that cannot be applied.

use gatewright_api::httproutes as api;
use gatewright_ir::{Filters, HeaderChange, PathChange, Redirect, Rewrite, Scheme, Text};

use super::{Refusal, RefusalCause};
use crate::Interner;

type Filter = api::HttpRouteRulesFilters;

/// Reads the filters of a rule. `field` is the path of the list.
pub(super) fn reduce(filters: &[Filter], field: &str, names: &mut Interner) -> Result<Option<Box<Filters>>, Refusal> {
    let mut reduced = Filters::default();
    for (index, filter) in filters.iter().enumerate() {
        reduce_one(filter, &mut reduced, names).map_err(|(cause, message)| Refusal {
            cause,
            field: format!("{field}[{index}]").into(),
            message: message.into(),
        })?;
    }
    if reduced.redirect.is_some() && reduced.rewrite.is_some() {
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
) -> Result<Option<Box<Filters>>, Refusal> {
    let copied = serde_json::to_value(filters).and_then(serde_json::from_value::<Vec<Filter>>);
    let filters = copied.map_err(|error| Refusal::invalid(field, format!("filters cannot be read: {error}")))?;
    let reduced = reduce(&filters, field, names)?;
    if reduced
        .as_ref()
        .is_some_and(|filters| filters.redirect.is_some() || filters.rewrite.is_some())
    {
        let message = "RequestRedirect and URLRewrite are not supported on a backendRef; move the filter to the rule";
        return Err(Refusal::unsupported(field, message));
    }
    Ok(reduced)
}

fn reduce_one(filter: &Filter, into: &mut Filters, names: &mut Interner) -> Result<(), (RefusalCause, String)> {
    use api::HttpRouteRulesFiltersType as Type;
    let unsupported = |what: &str| Err((RefusalCause::Unsupported, format!("the filter {what} is not supported")));
    let missing = |field: &str| Err((RefusalCause::Invalid, format!("the filter needs the field `{field}`")));
    let Filter {
        cors: _,
        extension_ref,
        external_auth: _,
        request_header_modifier,
        request_mirror: _,
        request_redirect,
        response_header_modifier,
        r#type,
        url_rewrite,
    } = filter;
    match r#type {
        Type::RequestHeaderModifier => match request_header_modifier {
            Some(change) => into.request_headers = Some(request_headers(change, names)?),
            None => return missing("requestHeaderModifier"),
        },
        Type::ResponseHeaderModifier => match response_header_modifier {
            Some(change) => into.response_headers = Some(response_headers(change, names)?),
            None => return missing("responseHeaderModifier"),
        },
        Type::RequestRedirect => match request_redirect {
            Some(change) => into.redirect = Some(redirect(change, names)?),
            None => return missing("requestRedirect"),
        },
        Type::UrlRewrite => match url_rewrite {
            Some(change) => into.rewrite = Some(rewrite(change, names)?),
            None => return missing("urlRewrite"),
        },
        Type::ExtensionRef => {
            let kind = extension_ref.as_ref().map_or_else(String::new, |reference| {
                format!("{} {} of group {}", reference.kind, reference.name, reference.group)
            });
            let message = format!("an ExtensionRef to {kind} cannot be honoured: the kind is not known here");
            return Err((RefusalCause::InvalidKind, message));
        }
        Type::RequestMirror => return unsupported("RequestMirror"),
        Type::Cors => return unsupported("CORS"),
        Type::ExternalAuth => return unsupported("ExternalAuth"),
    }
    Ok(())
}

/// Header names compare without case; keeping them in lower case makes that a byte comparison.
macro_rules! header_change {
    ($function:ident, $type:ty) => {
        fn $function(change: &$type, names: &mut Interner) -> Result<HeaderChange, (RefusalCause, String)> {
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
fn one_change_each(mut change: HeaderChange) -> Result<HeaderChange, (RefusalCause, String)> {
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

fn header_name(name: &str, names: &mut Interner) -> Result<Text, (RefusalCause, String)> {
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

fn pair(name: &str, value: &str, names: &mut Interner) -> Result<(Text, Text), (RefusalCause, String)> {
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

fn redirect(
    change: &api::HttpRouteRulesFiltersRequestRedirect,
    names: &mut Interner,
) -> Result<Redirect, (RefusalCause, String)> {
    use api::HttpRouteRulesFiltersRequestRedirectPathType as PathType;
    use api::HttpRouteRulesFiltersRequestRedirectScheme as ApiScheme;
    let path = change.path.as_ref().map(|path| match path.r#type {
        PathType::ReplaceFullPath => full(path.replace_full_path.as_deref(), names),
        PathType::ReplacePrefixMatch => prefix(path.replace_prefix_match.as_deref(), names),
    });
    let status = change.status_code.unwrap_or(302);
    let status = u16::try_from(status)
        .ok()
        .filter(|status| [301, 302, 303, 307, 308].contains(status))
        .ok_or_else(|| {
            (
                RefusalCause::Unsupported,
                format!("status code {status} is no redirect; use 301, 302, 303, 307 or 308"),
            )
        })?;
    let port = change.port.map(|port| {
        u16::try_from(port).map_err(|_| (RefusalCause::Invalid, format!("port {port} is not between 1 and 65535")))
    });
    Ok(Redirect {
        scheme: change.scheme.as_ref().map(|scheme| match scheme {
            ApiScheme::Http => Scheme::Http,
            ApiScheme::Https => Scheme::Https,
        }),
        hostname: names.optional(change.hostname.as_deref()),
        port: port.transpose()?,
        path: path.transpose()?,
        status,
    })
}

fn rewrite(
    change: &api::HttpRouteRulesFiltersUrlRewrite,
    names: &mut Interner,
) -> Result<Rewrite, (RefusalCause, String)> {
    use api::HttpRouteRulesFiltersUrlRewritePathType as PathType;
    let path = change.path.as_ref().map(|path| match path.r#type {
        PathType::ReplaceFullPath => full(path.replace_full_path.as_deref(), names),
        PathType::ReplacePrefixMatch => prefix(path.replace_prefix_match.as_deref(), names),
    });
    Ok(Rewrite {
        hostname: names.optional(change.hostname.as_deref()),
        path: path.transpose()?,
    })
}

fn full(path: Option<&str>, names: &mut Interner) -> Result<PathChange, (RefusalCause, String)> {
    let missing = || {
        (
            RefusalCause::Invalid,
            "type ReplaceFullPath needs the field `replaceFullPath`".to_owned(),
        )
    };
    Ok(PathChange::Full(names.text(path.ok_or_else(missing)?)))
}

fn prefix(path: Option<&str>, names: &mut Interner) -> Result<PathChange, (RefusalCause, String)> {
    let missing = || {
        (
            RefusalCause::Invalid,
            "type ReplacePrefixMatch needs the field `replacePrefixMatch`".to_owned(),
        )
    };
    Ok(PathChange::Prefix(names.text(path.ok_or_else(missing)?)))
}

#[cfg(test)]
mod tests;
