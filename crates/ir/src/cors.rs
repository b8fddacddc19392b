//! Which web pages of other origins may read responses, as Gateway API's CORS filter says it.

use std::time::Duration;

use serde::Serialize;

use crate::Text;

/// What a CORS filter grants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cors {
    /// The origins that are allowed.
    pub origins: Box<[OriginPattern]>,
    /// Whether cookies and other credentials may be sent along.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub credentials: bool,
    /// The methods that are allowed.
    pub methods: Listed,
    /// The request headers that are allowed.
    pub request_headers: Listed,
    /// The response headers that may be read, beside those that always may.
    pub exposed_headers: Listed,
    /// How long a browser may remember the answer to a preflight.
    pub max_age: Duration,
}

/// Some names, or all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Listed {
    /// These, as they are written.
    These(Box<[Text]>),
    /// `*`.
    All,
}

/// An allowed origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum OriginPattern {
    /// Every origin.
    Any,
    /// This one, in lower case: `https://shop.example.com:8443`.
    Exact(Text),
    /// `https://*.example.com`: every host below a domain, at any depth, with the scheme and port that are written; and
    /// `https://*`: every host of a scheme.
    Below {
        /// `https://`.
        scheme: Text,
        /// `.example.com`, with the port if one is written that is not the scheme's own.
        rest: Text,
    },
}

impl OriginPattern {
    /// Reads an origin of a CORS filter: `*`, or a scheme and a host whose first label may be `*`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        let lower = text.to_ascii_lowercase();
        let (scheme, host) = lower
            .split_once("://")
            .filter(|(scheme, host)| !scheme.is_empty() && !host.is_empty())?;
        // Browsers leave out the port that a scheme has anyway.
        let usual = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let host = host.strip_suffix(usual).unwrap_or(host);
        match host.strip_prefix('*') {
            Some(rest) if rest.contains('*') || rest == "." => None,
            Some(rest) if rest.is_empty() || rest.starts_with(['.', ':']) => Some(Self::Below {
                scheme: format!("{scheme}://").into(),
                rest: rest.into(),
            }),
            Some(_) => None,
            None if host.contains('*') || host.is_empty() => None,
            None => Some(Self::Exact(format!("{scheme}://{host}").into())),
        }
    }

    /// Whether a request with this `Origin` is meant.
    pub fn matches(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(exact) => exact.eq_ignore_ascii_case(origin),
            Self::Below { scheme, rest } => {
                let (Some(front), Some(host)) = (origin.get(..scheme.len()), origin.get(scheme.len()..)) else {
                    return false;
                };
                let Some(start) = host.len().checked_sub(rest.len()).filter(|start| *start > 0) else {
                    return false;
                };
                let is_below = host.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(rest));
                // A slash or an at sign would make it something else than an origin.
                let is_host = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' || byte == b'_';
                front.eq_ignore_ascii_case(scheme)
                    && is_below
                    && host.get(..start).is_some_and(|labels| labels.bytes().all(is_host))
            }
        }
    }
}

#[cfg(test)]
mod tests;
