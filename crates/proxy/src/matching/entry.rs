//! One entry of the IR with everything prepared that a request needs.

use std::sync::Arc;

use gatewright_ir::{Entry, Field, PathMatch, Text, TextMatch, is_grpc};
use regex::Regex;

use super::{
    patterns::Patterns,
    request::{RequestView, Subject},
    rule::CompiledRule,
};

/// One match of one rule.
pub(crate) struct CompiledEntry {
    /// What this was compiled from; its rank decides between entries.
    pub(crate) entry: Arc<Entry>,
    /// What happens to a request; shared by the matches of one rule.
    pub(crate) rule: Arc<CompiledRule>,
    /// The compiled path, when it is a pattern that compiles.
    pattern: Option<Arc<Regex>>,
    /// Conditions beside path and method; most entries have none.
    conditions: Option<Box<Conditions>>,
}

struct Conditions {
    headers: Box<[Condition]>,
    query: Box<[Condition]>,
}

struct Condition {
    name: Text,
    value: Value,
}

enum Value {
    Exact(Text),
    Pattern(Arc<Regex>),
    /// A pattern that does not compile.
    Never,
}

impl CompiledEntry {
    pub(super) fn compile(entry: &Arc<Entry>, rule: Arc<CompiledRule>, patterns: &mut Patterns) -> Self {
        let matches = &entry.matches;
        let pattern = match &matches.path {
            PathMatch::Pattern(pattern) => patterns.acquire(pattern),
            PathMatch::Exact(_) | PathMatch::Prefix(_) => None,
        };
        let mut compile = |fields: &[Field]| fields.iter().map(|field| Condition::compile(field, patterns)).collect();
        let has_conditions = !(matches.headers.is_empty() && matches.query.is_empty());
        let conditions = has_conditions.then(|| {
            Box::new(Conditions {
                headers: compile(&matches.headers),
                query: compile(&matches.query),
            })
        });
        Self {
            entry: entry.clone(),
            rule,
            pattern,
            conditions,
        }
    }

    /// The prefix by which a request matched, without its trailing slash, if it was by one: what a rewrite replaces.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.entry.matches.path.prefix()
    }

    /// Whether a request meets all conditions, the path included.
    pub(super) fn is_met<R: RequestView>(&self, subject: &Subject<'_, R>) -> bool {
        self.path_is_met(subject.view.path()) && self.rest_is_met(subject)
    }

    /// Whether a path meets the condition on it.
    pub(super) fn path_is_met(&self, path: &str) -> bool {
        match &self.entry.matches.path {
            PathMatch::Exact(expected) => **expected == *path,
            PathMatch::Prefix(prefix) => {
                let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
                path.strip_prefix(prefix)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            PathMatch::Pattern(_) => self.pattern.as_ref().is_some_and(|regex| regex.is_match(path)),
        }
    }

    /// Whether a request meets the conditions other than that on the path.
    pub(super) fn rest_is_met<R: RequestView>(&self, subject: &Subject<'_, R>) -> bool {
        let method = self.entry.matches.method;
        if method.is_some_and(|method| method.as_str() != subject.view.method()) {
            return false;
        }
        if self.entry.matches.grpc.is_some() {
            let content_type = subject.view.header_values("content-type").next();
            if !content_type.is_some_and(|value| is_grpc(subject.view.method(), value)) {
                return false;
            }
        }
        let Some(conditions) = &self.conditions else {
            return true;
        };
        let Conditions { headers, query } = &**conditions;
        // Any one value of a repeated header may meet the condition.
        let header_is_met = |condition: &Condition| {
            let mut values = subject.view.header_values(&condition.name);
            values.any(|value| condition.value.is_met_by(value))
        };
        let parameter_is_met = |condition: &Condition| {
            let value = subject.parameters.first(&condition.name);
            value.is_some_and(|value| condition.value.is_met_by(value.as_bytes()))
        };
        headers.iter().all(header_is_met) && query.iter().all(parameter_is_met)
    }
}

impl Condition {
    fn compile(field: &Field, patterns: &mut Patterns) -> Self {
        let Field { name, value } = field;
        Self {
            name: name.clone(),
            value: match value {
                TextMatch::Exact(text) => Value::Exact(text.clone()),
                TextMatch::Pattern(pattern) => patterns.acquire(pattern).map_or(Value::Never, Value::Pattern),
            },
        }
    }
}

impl Value {
    /// A value that is no UTF-8 meets no pattern: patterns speak of characters.
    fn is_met_by(&self, value: &[u8]) -> bool {
        match self {
            Self::Exact(expected) => expected.as_bytes() == value,
            Self::Pattern(regex) => std::str::from_utf8(value).is_ok_and(|text| regex.is_match(text)),
            Self::Never => false,
        }
    }
}
