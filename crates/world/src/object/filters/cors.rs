//! The filter that lets web pages of other origins read responses.

use std::time::Duration;

use gatewright_api::httproutes as api;
use gatewright_ir::{Cors, Listed, OriginPattern};

use super::{Fault, RefusalCause};
use crate::Interner;

/// How long a preflight is remembered, in seconds, where the filter does not say it.
const DEFAULT_MAX_AGE: i32 = 5;

pub(super) fn cors(cors: &api::HttpRouteRulesFiltersCors, names: &mut Interner) -> Result<Cors, Fault> {
    let api::HttpRouteRulesFiltersCors {
        allow_credentials,
        allow_headers,
        allow_methods,
        allow_origins,
        expose_headers,
        max_age,
    } = cors;
    let origins = allow_origins.iter().flatten().map(|origin| {
        OriginPattern::parse(origin).ok_or_else(|| {
            let message = format!("{origin:?} in allowOrigins is no origin; write for example https://*.example.com");
            (RefusalCause::Invalid, message)
        })
    });
    let origins = origins.collect::<Result<_, _>>()?;
    let max_age = max_age.unwrap_or(DEFAULT_MAX_AGE);
    let max_age = u64::try_from(max_age).map_err(|_| {
        let message = format!("maxAge {max_age} is less than no time");
        (RefusalCause::Invalid, message)
    })?;
    Ok(Cors {
        origins,
        credentials: allow_credentials.unwrap_or(false),
        methods: listed("allowMethods", allow_methods.as_deref(), names)?,
        request_headers: listed("allowHeaders", allow_headers.as_deref(), names)?,
        exposed_headers: listed("exposeHeaders", expose_headers.as_deref(), names)?,
        max_age: Duration::from_secs(max_age),
    })
}

/// Names stay as they are written: they are shown to browsers.
fn listed(field: &str, declared: Option<&[String]>, names: &mut Interner) -> Result<Listed, Fault> {
    let declared = declared.unwrap_or_default();
    if declared.iter().any(|name| name == "*") {
        return Ok(Listed::All);
    }
    let is_visible = |name: &&String| name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    if let Some(bad) = declared.iter().find(|name| !is_visible(name)) {
        let message = format!("{bad:?} in {field} cannot stand in a header");
        return Err((RefusalCause::Invalid, message));
    }
    Ok(Listed::These(declared.iter().map(|name| names.text(name)).collect()))
}
