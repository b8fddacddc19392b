//! An external authorisation filter with its names parsed: what is asked, and which headers cross in either direction.

use gatewright_ir::{AuthProtocol, ExternalAuth, PathChange, Target, Text};
use http::HeaderName;

use super::filters::{escape, header_name};

/// Who is asked whether requests may pass, and how.
pub(crate) struct CompiledAuth {
    /// Who is asked.
    pub(crate) target: Target,
    /// So many bytes of the body are sent along; nothing: none.
    pub(crate) max_body: Option<usize>,
    /// Whether the question is asked in gRPC; else in HTTP.
    pub(crate) is_grpc: bool,
    /// What comes before the path of the request; escaped, without a slash at its end.
    pub(crate) path: Text,
    /// Request headers that are sent along.
    pub(crate) request_headers: Passed,
    /// Headers of a grant that are put on the request.
    pub(crate) response_headers: Passed,
}

/// Headers that pass.
pub(crate) enum Passed {
    /// These.
    These(Box<[HeaderName]>),
    /// All of them.
    All,
}

impl CompiledAuth {
    /// Prepares a filter; None when a name or path cannot be used.
    pub(super) fn compile(auth: &ExternalAuth) -> Option<Self> {
        let ExternalAuth {
            target,
            protocol,
            max_body,
        } = auth;
        let max_body = max_body.filter(|most| *most > 0).map(|most| most as usize);
        let (is_grpc, path, request_headers, response_headers) = match protocol {
            AuthProtocol::Grpc { request_headers } => (
                true,
                Text::from(""),
                Passed::compile(request_headers.as_deref())?,
                Passed::All,
            ),
            AuthProtocol::Http {
                path,
                request_headers,
                response_headers,
            } => (
                false,
                front(path),
                Passed::compile(Some(request_headers))?,
                Passed::compile(response_headers.as_deref())?,
            ),
        };
        Some(Self {
            target: target.clone(),
            max_body,
            is_grpc,
            path,
            request_headers,
            response_headers,
        })
    }
}

/// A declared path, made safe, as the front of another.
fn front(path: &Text) -> Text {
    match path.trim_end_matches('/') {
        "" => "".into(),
        path => match escape(&PathChange::Full(path.into())) {
            PathChange::Full(path) | PathChange::Prefix(path) => path,
        },
    }
}

impl Passed {
    fn compile(names: Option<&[Text]>) -> Option<Self> {
        let Some(names) = names else { return Some(Self::All) };
        // Host and length are always sent, as the codec writes them.
        let is_ours = |name: &&Text| !matches!(&***name, "host" | "content-length");
        let names = names.iter().filter(is_ours).map(|name| header_name(name));
        names.collect::<Option<_>>().map(Self::These)
    }

    /// Whether a header passes.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Self::These(names) => names.iter().any(|passed| passed.as_str().eq_ignore_ascii_case(name)),
            Self::All => true,
        }
    }
}
