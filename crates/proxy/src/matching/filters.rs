//! Filters in the form in which requests and responses need them.
//!
//! Names and values are parsed once, here, and every text that ends up in a message is made safe: header values must be
//! legal, and paths are escaped so that no character of a declared path can end a request line or start a query.

use gatewright_ir::{Filters, HeaderChange, Mirror, PathChange, Redirect, Rewrite, Text};
use http::{HeaderName, HeaderValue};

use super::{auth::CompiledAuth, cors::CompiledCors};

use crate::normalise::{is_host_name, push_escaped};

/// Headers that frame a message or name its recipient. A filter that changed them could make the backend read other
/// messages than the proxy wrote, so a rule that tries is refused.
const FRAMING: [&str; 8] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// All changes of one rule or backend.
#[derive(Default)]
pub(crate) struct CompiledFilters {
    /// Changes to the request's headers.
    pub(crate) request_headers: HeaderChanges,
    /// Changes to the response's headers.
    pub(crate) response_headers: HeaderChanges,
    /// Answer with a redirect instead of asking a backend. Its path is escaped.
    pub(crate) redirect: Option<Box<Redirect>>,
    /// Ask the backend for something else.
    pub(crate) rewrite: Option<Box<CompiledRewrite>>,
    /// Who else gets a copy.
    pub(crate) mirrors: Box<[Mirror]>,
    /// Which pages of other origins may read the response.
    pub(crate) cors: Option<Box<CompiledCors>>,
    /// Who is asked whether the request may pass.
    pub(crate) auth: Option<Box<CompiledAuth>>,
}

/// Header changes, to be made in the order set, add, remove.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeaderChanges {
    /// Headers to overwrite.
    pub(crate) set: Box<[(HeaderName, HeaderValue)]>,
    /// Headers to add beside what is there.
    pub(crate) add: Box<[(HeaderName, HeaderValue)]>,
    /// Headers to remove.
    pub(crate) remove: Box<[HeaderName]>,
}

/// What the backend is asked for instead.
pub(crate) struct CompiledRewrite {
    /// The new `Host`.
    pub(crate) hostname: Option<HeaderValue>,
    /// The new path; escaped.
    pub(crate) path: Option<PathChange>,
}

impl CompiledFilters {
    /// Prepares filters; None when one of them cannot be carried out literally.
    pub(crate) fn compile(filters: &Filters) -> Option<Self> {
        let Filters {
            request_headers,
            response_headers,
            redirect,
            rewrite,
            mirrors,
            cors,
            auth,
        } = filters;
        Some(Self {
            request_headers: HeaderChanges::compile(request_headers.as_ref())?,
            response_headers: HeaderChanges::compile(response_headers.as_ref())?,
            redirect: match redirect {
                Some(redirect) => Some(Box::new(compile_redirect(redirect)?)),
                None => None,
            },
            rewrite: match rewrite {
                Some(rewrite) => Some(Box::new(CompiledRewrite::compile(rewrite)?)),
                None => None,
            },
            mirrors: mirrors.clone(),
            cors: match cors {
                Some(cors) => Some(Box::new(CompiledCors::compile(cors)?)),
                None => None,
            },
            auth: match auth {
                Some(auth) => Some(Box::new(CompiledAuth::compile(auth)?)),
                None => None,
            },
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.request_headers.is_empty()
            && self.response_headers.is_empty()
            && self.redirect.is_none()
            && self.rewrite.is_none()
            && self.mirrors.is_empty()
            && self.cors.is_none()
            && self.auth.is_none()
    }
}

impl HeaderChanges {
    fn compile(change: Option<&HeaderChange>) -> Option<Self> {
        let Some(HeaderChange { set, add, remove }) = change else {
            return Some(Self::default());
        };
        let pairs = |pairs: &[(Text, Text)]| {
            let pair = |(name, value): &(Text, Text)| {
                Some((header_name(name)?, HeaderValue::from_bytes(value.as_bytes()).ok()?))
            };
            pairs.iter().map(pair).collect::<Option<Box<_>>>()
        };
        Some(Self {
            set: pairs(set)?,
            add: pairs(add)?,
            remove: remove.iter().map(|name| header_name(name)).collect::<Option<_>>()?,
        })
    }

    /// Changes that follow others, as one.
    pub(crate) fn join(first: Option<Box<Self>>, second: Self) -> Self {
        let Some(first) = first else { return second };
        let stays = |name: &HeaderName| !second.replaces(name.as_str().as_bytes());
        let pairs = |pairs: Box<[(HeaderName, HeaderValue)]>| pairs.into_iter().filter(|(name, _)| stays(name));
        let kept: Vec<_> = pairs(first.set).collect();
        let added: Vec<_> = pairs(first.add).collect();
        Self {
            set: kept.into_iter().chain(second.set).collect(),
            add: added.into_iter().chain(second.add).collect(),
            remove: first.remove.into_iter().chain(second.remove).collect(),
        }
    }

    /// Whether nothing is changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.add.is_empty() && self.remove.is_empty()
    }

    /// Whether a header that is present must not be passed on, because it is overwritten or removed.
    pub(crate) fn replaces(&self, name: &[u8]) -> bool {
        let is_same = |candidate: &HeaderName| candidate.as_str().as_bytes().eq_ignore_ascii_case(name);
        self.set.iter().any(|(candidate, _)| is_same(candidate)) || self.remove.iter().any(is_same)
    }

    /// The headers to write after those that are passed on. One that is also to be removed stays away: removal comes
    /// last.
    pub(crate) fn additions(&self) -> impl Iterator<Item = &(HeaderName, HeaderValue)> {
        let stays = |(name, _): &&(HeaderName, HeaderValue)| !self.remove.contains(name);
        self.set.iter().chain(&self.add).filter(stays)
    }
}

impl CompiledRewrite {
    fn compile(rewrite: &Rewrite) -> Option<Self> {
        let Rewrite { hostname, path } = rewrite;
        Some(Self {
            hostname: match hostname {
                Some(name) if is_host_name(name) => Some(HeaderValue::from_str(name).ok()?),
                Some(_) => return None,
                None => None,
            },
            path: path.as_ref().map(escape),
        })
    }
}

fn compile_redirect(redirect: &Redirect) -> Option<Redirect> {
    let mut redirect = redirect.clone();
    redirect.path = redirect.path.as_ref().map(escape);
    redirect
        .hostname
        .as_deref()
        .is_none_or(is_host_name)
        .then_some(redirect)
}

/// A name that a filter may change.
pub(super) fn header_name(name: &str) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    (!FRAMING.contains(&name.as_str())).then_some(name)
}

/// Makes a declared path one that can stand in a message: whatever is no legal character of a path is escaped.
pub(super) fn escape(change: &PathChange) -> PathChange {
    let escape = |text: &Text, front: &str| {
        let mut escaped = String::with_capacity(text.len() + front.len());
        escaped.push_str(front);
        for byte in text.bytes() {
            if matches!(byte, b'!' | b'$'..=b';' | b'=' | b'@'..=b'Z' | b'_' | b'a'..=b'z' | b'~') {
                escaped.push(char::from(byte));
            } else {
                push_escaped(&mut escaped, byte);
            }
        }
        escaped.into()
    };
    // A path begins with a slash; only a replaced prefix may be nothing at all.
    let front = |text: &Text| if text.starts_with('/') { "" } else { "/" };
    match change {
        PathChange::Full(text) => PathChange::Full(escape(text, front(text))),
        PathChange::Prefix(text) if text.is_empty() => PathChange::Prefix(text.clone()),
        PathChange::Prefix(text) => PathChange::Prefix(escape(text, front(text))),
    }
}
