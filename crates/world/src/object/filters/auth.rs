//! The filter that asks somebody else whether a request may pass.

use gatewright_api::httproutes as api;
use gatewright_ir::{AuthProtocol, Text};

use super::{Fault, RefusalCause};
use crate::{
    Interner,
    object::{AuthRef, ServiceRef},
};

pub(super) fn auth(auth: &api::HttpRouteRulesFiltersExternalAuth, names: &mut Interner) -> Result<AuthRef, Fault> {
    use api::HttpRouteRulesFiltersExternalAuthProtocol as Protocol;
    let api::HttpRouteRulesFiltersExternalAuth {
        backend_ref,
        forward_body,
        grpc,
        http,
        protocol,
    } = auth;
    let protocol = match protocol {
        Protocol::Grpc => {
            let allowed = grpc.as_ref().and_then(|grpc| grpc.allowed_headers.as_deref());
            AuthProtocol::Grpc {
                request_headers: headers_or_all(allowed, names)?,
            }
        }
        Protocol::Http => {
            let http = http.clone().unwrap_or_default();
            AuthProtocol::Http {
                path: path(http.path.as_deref(), names)?,
                request_headers: headers(http.allowed_headers.as_deref().unwrap_or_default(), names)?,
                response_headers: headers_or_all(http.allowed_response_headers.as_deref(), names)?,
            }
        }
    };
    let max_size = forward_body.as_ref().and_then(|body| body.max_size).unwrap_or(0);
    let max_size = u16::try_from(max_size).map_err(|_| {
        let message = format!("forwardBody.maxSize {max_size} is not between 0 and 65535");
        (RefusalCause::Invalid, message)
    })?;
    let api::HttpRouteRulesFiltersExternalAuthBackendRef {
        group,
        kind,
        name,
        namespace,
        port,
    } = backend_ref;
    Ok(AuthRef {
        service: ServiceRef::reduce(
            (group.as_deref(), kind.as_deref()),
            (namespace.as_deref(), name),
            *port,
            names,
        ),
        protocol,
        // Nothing of the body is sent along where its size is zero, says the specification.
        max_body: Some(u32::from(max_size)).filter(|size| *size > 0),
    })
}

/// An empty list means all of them.
fn headers_or_all(declared: Option<&[String]>, names: &mut Interner) -> Result<Option<Box<[Text]>>, Fault> {
    match declared {
        None | Some([]) => Ok(None),
        Some(declared) => headers(declared, names).map(Some),
    }
}

fn headers(declared: &[String], names: &mut Interner) -> Result<Box<[Text]>, Fault> {
    let is_name = |name: &&String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(bad) = declared.iter().find(|name| !is_name(name)) {
        return Err((RefusalCause::Invalid, format!("{bad:?} is no name of a header")));
    }
    let mut headers: Vec<Text> = declared
        .iter()
        .map(|name| names.text(&name.to_ascii_lowercase()))
        .collect();
    headers.sort();
    headers.dedup();
    Ok(headers.into())
}

/// What comes before the path of the request: nothing, or a path without a slash at its end.
fn path(declared: Option<&str>, names: &mut Interner) -> Result<Text, Fault> {
    let declared = declared.unwrap_or_default().trim_end_matches('/');
    let is_plain = declared.is_empty()
        || (declared.starts_with('/')
            && declared
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"?#\\".contains(&byte))
            && !declared.split('/').any(|segment| segment == ".." || segment == "."));
    if is_plain {
        Ok(names.text(declared))
    } else {
        let message = format!("http.path {declared:?} is no path; write for example /check");
        Err((RefusalCause::Invalid, message))
    }
}
