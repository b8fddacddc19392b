//! The filters that change where a request goes: redirect and rewrite.

use gatewright_api::httproutes as api;
use gatewright_ir::{PathChange, Redirect, Rewrite, Scheme};

use super::{Fault, RefusalCause};
use crate::Interner;

pub(super) fn redirect(
    change: &api::HttpRouteRulesFiltersRequestRedirect,
    names: &mut Interner,
) -> Result<Redirect, Fault> {
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

pub(super) fn rewrite(change: &api::HttpRouteRulesFiltersUrlRewrite, names: &mut Interner) -> Result<Rewrite, Fault> {
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

fn full(path: Option<&str>, names: &mut Interner) -> Result<PathChange, Fault> {
    let missing = || {
        (
            RefusalCause::Invalid,
            "type ReplaceFullPath needs the field `replaceFullPath`".to_owned(),
        )
    };
    Ok(PathChange::Full(names.text(path.ok_or_else(missing)?)))
}

fn prefix(path: Option<&str>, names: &mut Interner) -> Result<PathChange, Fault> {
    let missing = || {
        (
            RefusalCause::Invalid,
            "type ReplacePrefixMatch needs the field `replacePrefixMatch`".to_owned(),
        )
    };
    Ok(PathChange::Prefix(names.text(path.ok_or_else(missing)?)))
}
