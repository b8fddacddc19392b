//! What happens to a request that meets a match, and which match wins when several are met.
//!
//! An [`Entry`] is one match of one route rule. Entries are totally ordered: the order is Gateway API's precedence, so that
//! "the rule that wins" is simply the first entry in order whose match is met.

use std::{cmp::Ordering, cmp::Reverse, fmt, sync::Arc, time::Duration};

use serde::{Serialize, Serializer};

use crate::{ClusterId, Filters, Match, Origin, PathMatch, Text};

/// One match of one rule.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The conditions.
    pub matches: Match,
    /// What decides between entries whose matches are equally specific.
    pub rank: Rank,
    /// What happens to the request.
    pub rule: Arc<Rule>,
}

/// What decides between equally specific matches: the oldest route, then its name, then the position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Rank {
    /// When the route was created, in seconds since 1970.
    pub created: i64,
    /// `namespace/name` of the route.
    pub route: Text,
    /// The position of the rule in its route.
    pub rule: u16,
    /// The position of the match in its rule.
    pub position: u16,
}

impl Entry {
    /// How specific the match is, the most specific first.
    ///
    /// Exact paths come before all others; prefixes and patterns by their length, which is also how the other data
    /// planes rank patterns (the specification leaves it open); then a method, then the number of header and of query
    /// conditions. Of gRPC calls the characters of the service count, then those of the method: a path is as long as its
    /// service, and what is for gRPC alone comes before what is for everything.
    fn specificity(&self) -> impl Ord + use<> {
        let Match {
            path,
            method,
            headers,
            query,
            grpc,
        } = &self.matches;
        let (is_exact, length) = match (path, grpc) {
            (PathMatch::Exact(path), _) => (true, path.len()),
            (PathMatch::Prefix(prefix), _) => (false, prefix.len()),
            (PathMatch::Pattern(_), Some(grpc)) => (false, 1 + usize::from(grpc.service)),
            (PathMatch::Pattern(pattern), None) => (false, pattern.as_str().len()),
        };
        Reverse((
            is_exact,
            length,
            grpc.map(|grpc| grpc.method),
            method.is_some(),
            headers.len(),
            query.len(),
        ))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.specificity()
            .cmp(&other.specificity())
            .then_with(|| self.rank.cmp(&other.rank))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Equal in every part, not only in order: two snapshots that differ in a rule are different.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
            && self.matches == other.matches
            && (Arc::ptr_eq(&self.rule, &other.rule) || self.rule == other.rule)
    }
}

impl Eq for Entry {}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// The route this rule stands in.
    pub origin: Origin,
    /// The rule's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Changes to requests and responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Box<Filters>>,
    /// Where requests go, by weight. Without any, and without a redirect, the answer is 500.
    pub backends: Box<[Backend]>,
    /// How long things may take.
    #[serde(skip_serializing_if = "Timeouts::is_empty")]
    pub timeouts: Timeouts,
    /// When a request is sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How a client keeps its backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Box<Session>>,
}

/// One of a rule's backends.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Backend {
    /// Its share of the requests, relative to the sum of all weights; zero gets none.
    pub weight: u32,
    /// Where they go.
    pub target: Target,
    /// Changes to the requests and responses of this backend alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<Box<Filters>>,
}

/// Where a backend's share of requests goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Target {
    /// To a cluster of the same gateway.
    Cluster(ClusterId),
    /// Nowhere: the reference does not hold, and its share of requests is answered with 500.
    Unresolved(Unresolved),
}

/// Why a backend reference does not hold; a label of the counter that tells operators why requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Unresolved {
    /// The object does not exist.
    NotFound,
    /// No ReferenceGrant allows it.
    NotPermitted,
    /// It is of a kind that cannot be a backend.
    InvalidKind,
    /// Its protocol is not supported, or it asks for something that is not.
    Unsupported,
}

impl Unresolved {
    /// A stable label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "backend_not_found",
            Self::NotPermitted => "ref_not_permitted",
            Self::InvalidKind => "invalid_kind",
            Self::Unsupported => "unsupported",
        }
    }
}

/// How long things may take; absent means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeouts {
    /// From the request's first byte to the response's last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Duration>,
    /// One attempt at a backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_request: Option<Duration>,
}

/// When a request is sent again: after an answer with one of these codes, a connection that failed, or an attempt that took
/// longer than [`Timeouts::backend_request`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retry {
    /// Status codes of backends.
    pub codes: Box<[u16]>,
    /// So many times beyond the first.
    pub attempts: u32,
    /// The least time between two attempts.
    pub backoff: Duration,
}

/// How a client keeps its backend over several requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Session {
    /// What carries the choice.
    pub carrier: Carrier,
    /// The name of the cookie or of the header; a header in lower case.
    pub name: Text,
    /// A session ends so long after it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absolute_timeout: Option<Duration>,
    /// A session ends so long after its last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    /// What makes the choice unreadable and unforgeable; every replica has the same, so that each honours what another
    /// chose.
    pub key: SessionKey,
}

/// A secret of 32 bytes. No dump and no log shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    /// Wraps a secret.
    pub fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The secret, for whoever makes and checks tokens.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SessionKey(redacted)")
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("redacted")
    }
}

/// What tells to which session a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Carrier {
    /// A cookie that ends with the browser's session.
    SessionCookie,
    /// A cookie that lives as long as the absolute timeout.
    PermanentCookie,
    /// A header that the client sends back.
    Header,
}

impl Timeouts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Carrier, Session, SessionKey};

    #[test]
    fn no_dump_shows_a_session_s_key() {
        let session = Session {
            carrier: Carrier::Header,
            name: "seat".into(),
            absolute_timeout: None,
            idle_timeout: None,
            key: SessionKey::new([173; 32]),
        };
        let dumped = serde_json::to_string(&session).unwrap();
        let logged = format!("{session:?}");
        assert!(dumped.contains("redacted") && !dumped.contains("173"), "{dumped}");
        assert!(logged.contains("redacted") && !logged.contains("173"), "{logged}");
        assert_eq!(session.key.expose(), &[173; 32]);
    }
}
