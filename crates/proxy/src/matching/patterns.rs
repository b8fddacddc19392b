//! The compiled patterns of a listener, each distinct one once.
//!
//! A compiled pattern can take a megabyte, so those that many entries share are counted and dropped with their last user.
//! This file also finds the literal path with which every match of a pattern begins, which lets the index skip patterns
//! that cannot match.

use std::sync::Arc;

use ahash::RandomState;
use gatewright_ir::{Match, PathMatch, Pattern, TextMatch};
use imbl::GenericHashMap;
use regex::Regex;

/// Patterns by their text, with the number of their users.
#[derive(Clone, Default)]
pub(super) struct Patterns(GenericHashMap<Pattern, Shared, RandomState, imbl::shared_ptr::DefaultSharedPtr>);

#[derive(Clone)]
struct Shared {
    /// None when it does not compile: such a pattern matches nothing, as in the reference matcher.
    regex: Option<Arc<Regex>>,
    users: usize,
}

impl Patterns {
    /// The compiled form of a pattern, for one more user.
    pub(super) fn acquire(&mut self, pattern: &Pattern) -> Option<Arc<Regex>> {
        let shared = self.0.entry(pattern.clone()).or_insert_with(|| Shared {
            regex: pattern.compile().ok().map(Arc::new),
            users: 0,
        });
        shared.users += 1;
        shared.regex.clone()
    }

    /// One user less for every pattern of a match.
    pub(super) fn release(&mut self, matches: &Match) {
        for pattern in patterns_of(matches) {
            let Some(shared) = self.0.get_mut(pattern) else {
                continue;
            };
            shared.users -= 1;
            if shared.users == 0 {
                self.0.remove(pattern);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Every pattern of a match, as often as it occurs.
fn patterns_of(matches: &Match) -> impl Iterator<Item = &Pattern> {
    let path = match &matches.path {
        PathMatch::Pattern(pattern) => Some(pattern),
        PathMatch::Exact(_) | PathMatch::Prefix(_) => None,
    };
    let fields = matches.headers.iter().chain(&matches.query);
    path.into_iter().chain(fields.filter_map(|field| match &field.value {
        TextMatch::Pattern(pattern) => Some(pattern),
        TextMatch::Exact(_) => None,
    }))
}

/// The whole leading segments of every text that meets the pattern, without the slash that follows them: those of
/// `/a/b.*` are `/a`, and those of `/.*` are the empty text. None when texts may begin with anything.
///
/// Read from the text and on the safe side: reading stops at the first character that could mean anything else than
/// itself, and an alternative anywhere makes it give up.
pub(super) fn literal_head(pattern: &Pattern) -> Option<&str> {
    let text = pattern.as_str();
    let text = text.strip_prefix('^').unwrap_or(text);
    if text.contains('|') {
        return None;
    }
    let is_literal = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'~' | b'%');
    let length = text.bytes().take_while(|byte| is_literal(byte)).count();
    // A quantifier takes back the character before it.
    let is_quantified = matches!(text.as_bytes().get(length), Some(b'*' | b'?' | b'{' | b'+'));
    let literal = text.get(..length - usize::from(is_quantified && length > 0))?;
    literal.get(..literal.rfind('/')?)
}
