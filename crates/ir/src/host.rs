//! Host names as listeners and routes write them: exact, with a leading wildcard label, or any.
//!
//! Used by the planner to intersect a listener's and a route's names, and by matchers to find the most specific name.
//! Names are kept in lower case without a trailing dot, because both are equal in DNS.

use std::{cmp::Ordering, fmt};

use serde::{Serialize, Serializer};

use crate::Text;

/// A set of host names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// One name, for example `shop.example.com`.
    Exact(Text),
    /// Every name with at least one more label in front: `*.example.com` is kept as `example.com`.
    Wildcard(Text),
    /// Every name, and none at all.
    Any,
}

/// Why a text is not a host pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostPatternError {
    /// Neither labels of letters, digits and dashes nor a wildcard in front of them.
    Malformed,
    /// An IP address, which the specification excludes.
    Address,
}

impl HostPattern {
    /// Reads a hostname field. An empty text means any host, as the specification says.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        let text = text.trim_end_matches('.').to_ascii_lowercase();
        if text.is_empty() || text == "*" {
            return Ok(Self::Any);
        }
        if text.parse::<std::net::IpAddr>().is_ok() {
            return Err(HostPatternError::Address);
        }
        let (is_wildcard, name) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if text.len() > 253 || !name.split('.').all(is_label) {
            return Err(HostPatternError::Malformed);
        }
        Ok(if is_wildcard {
            Self::Wildcard(name.into())
        } else {
            Self::Exact(name.into())
        })
    }

    /// Whether a host (lower case, without port) belongs to this set.
    pub fn contains(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name) => **name == *host,
            Self::Wildcard(suffix) => is_below(host, suffix),
        }
    }

    /// The names that belong to both sets: the more specific pattern, or nothing.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, pattern) | (pattern, Self::Any) => Some(pattern.clone()),
            (Self::Exact(name), pattern) | (pattern, Self::Exact(name)) => {
                pattern.contains(name).then(|| Self::Exact(name.clone()))
            }
            (Self::Wildcard(left), Self::Wildcard(right)) => {
                if left == right || is_below(left, right) {
                    Some(self.clone())
                } else if is_below(right, left) {
                    Some(other.clone())
                } else {
                    None
                }
            }
        }
    }

    /// How many characters of a host this pattern pins down, and whether all of them: greater is more specific.
    fn specificity(&self) -> (bool, usize) {
        match self {
            Self::Exact(name) => (true, name.len()),
            Self::Wildcard(suffix) => (false, suffix.len() + 1),
            Self::Any => (false, 0),
        }
    }
}

/// Whether `host` is `suffix` with at least one label in front.
fn is_below(host: &str, suffix: &str) -> bool {
    host.strip_suffix(suffix)
        .is_some_and(|front| front.len() > 1 && front.ends_with('.'))
}

/// The more specific pattern comes first, so that an ordered map is walked from the best to the least.
impl Ord for HostPattern {
    fn cmp(&self, other: &Self) -> Ordering {
        let text = |pattern: &Self| match pattern {
            Self::Exact(name) | Self::Wildcard(name) => name.clone(),
            Self::Any => "".into(),
        };
        other
            .specificity()
            .cmp(&self.specificity())
            .then_with(|| text(self).cmp(&text(other)))
    }
}

impl PartialOrd for HostPattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => out.write_str(name),
            Self::Wildcard(suffix) => write!(out, "*.{suffix}"),
            Self::Any => out.write_str("*"),
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Malformed => "must be a DNS name, optionally with a leading `*.`",
            Self::Address => "must be a DNS name, not an IP address",
        })
    }
}

impl std::error::Error for HostPatternError {}

#[cfg(test)]
mod tests;
