//! What a rule or a backend changes about requests and responses.
//!
//! The specification allows each of these once per rule, mirrors excepted, so they are fields and not a list; the data plane
//! applies them in the order CORS, external authorisation, redirect, mirrors, rewrite, request headers, response headers.
//! A mirror gets the request as the rule changes it.

use serde::Serialize;

use crate::{Cors, ExternalAuth, Target, Text};

/// All changes of one rule or backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Filters {
    /// Changes to the request's headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<HeaderChange>,
    /// Changes to the response's headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_headers: Option<HeaderChange>,
    /// Answer with a redirect instead of asking a backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Ask the backend for something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Who else gets a copy of the request; what they answer is dropped.
    #[serde(skip_serializing_if = "<[Mirror]>::is_empty")]
    pub mirrors: Box<[Mirror]>,
    /// Which web pages of other origins may read the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors: Option<Box<Cors>>,
    /// Who is asked whether the request may pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Box<ExternalAuth>>,
}

impl Filters {
    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A second receiver of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mirror {
    /// Where copies go; what is unresolved gets none.
    pub target: Target,
    /// How many of the requests are copied.
    pub share: Share,
}

/// A part of all requests, exactly: one in three is not 33 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share {
    /// So many…
    pub numerator: u32,
    /// …out of so many; never zero.
    pub denominator: u32,
}

impl Share {
    /// All of them.
    pub const ALL: Self = Self {
        numerator: 1,
        denominator: 1,
    };
}

/// Header changes, in the order set, add, remove. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeaderChange {
    /// Headers to overwrite.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<(Text, Text)>,
    /// Headers to add beside what is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<(Text, Text)>,
    /// Headers to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<Text>,
}

/// A redirect; what is absent is kept from the request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Redirect {
    /// The new scheme.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<Scheme>,
    /// The new host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    /// The new port; when absent, the well-known port of a given scheme, else the listener's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The new path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChange>,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
}

/// The scheme of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Scheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
}

/// What the backend is asked for instead.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rewrite {
    /// The new `Host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<Text>,
    /// The new path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChange>,
}

/// A new path; the query is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum PathChange {
    /// The whole path.
    Full(Text),
    /// The part that the rule's prefix match matched, by whole segments.
    Prefix(Text),
}

impl PathChange {
    /// The changed path. `matched_prefix` is the prefix that the rule matched by, if it matched by one.
    ///
    /// The specification's table: `/foo/bar` with prefix `/foo` replaced by `/xyz` or `/xyz/` is `/xyz/bar`, and by `/`
    /// or nothing is `/bar`.
    pub fn apply(&self, path: &str, matched_prefix: Option<&str>) -> String {
        match self {
            Self::Full(replacement) => replacement.to_string(),
            Self::Prefix(replacement) => {
                let prefix = matched_prefix.unwrap_or("/").trim_end_matches('/');
                let rest = path.strip_prefix(prefix).unwrap_or(path);
                let rest = rest.strip_prefix('/').unwrap_or(rest);
                let has_tail = path.len() > prefix.len();
                match (replacement.trim_end_matches('/'), rest) {
                    ("", rest) => format!("/{rest}"),
                    (front, "") if has_tail && replacement.ends_with('/') => format!("{front}/"),
                    (front, "") => {
                        if has_tail && path.ends_with('/') {
                            format!("{front}/")
                        } else {
                            front.to_owned()
                        }
                    }
                    (front, rest) => format!("{front}/{rest}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PathChange;

    #[test]
    fn a_replaced_prefix_follows_the_specification_s_table() {
        // path, prefix, replacement, result
        let table = [
            ("/foo/bar", "/foo", "/xyz", "/xyz/bar"),
            ("/foo/bar", "/foo", "/xyz/", "/xyz/bar"),
            ("/foo/bar", "/foo/", "/xyz", "/xyz/bar"),
            ("/foo/bar", "/foo/", "/xyz/", "/xyz/bar"),
            ("/foo", "/foo", "/xyz", "/xyz"),
            ("/foo/", "/foo", "/xyz", "/xyz/"),
            ("/foo/bar", "/foo", "", "/bar"),
            ("/foo/", "/foo", "", "/"),
            ("/foo", "/foo", "", "/"),
            ("/foo/", "/foo", "/", "/"),
            ("/foo", "/foo", "/", "/"),
            ("/foo/bar", "/", "/xyz", "/xyz/foo/bar"),
            ("/", "/", "/xyz", "/xyz/"),
        ];
        for (path, prefix, replacement, expected) in table {
            let change = PathChange::Prefix(replacement.into());
            assert_eq!(
                change.apply(path, Some(prefix)),
                expected,
                "{path} {prefix} {replacement}"
            );
        }
    }

    #[test]
    fn a_full_replacement_ignores_what_matched() {
        assert_eq!(PathChange::Full("/new".into()).apply("/a/b", None), "/new");
    }
}
