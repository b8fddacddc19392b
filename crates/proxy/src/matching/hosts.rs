//! Host names to whatever belongs to them: an exact map, a walk over suffixes for wildcards, and any.
//!
//! [`HostMap`] is persistent and serves twice: within a listener, from hosts to their routes, and as [`BindTable`] within
//! an address and port, from hosts to the listeners that share it.

use ahash::RandomState;
use gatewright_ir::{HostPattern, Text};
use imbl::{GenericHashMap, shared_ptr::DefaultSharedPtr};

type TextMap<T> = GenericHashMap<Text, T, RandomState, DefaultSharedPtr>;

/// A persistent map from host patterns.
#[derive(Clone)]
pub(super) struct HostMap<T> {
    exact: TextMap<T>,
    /// By the suffix below which names lie.
    wildcard: TextMap<T>,
    any: Option<T>,
}

impl<T: Clone> HostMap<T> {
    pub(super) fn new() -> Self {
        Self {
            exact: TextMap::default(),
            wildcard: TextMap::default(),
            any: None,
        }
    }

    pub(super) fn get(&self, pattern: &HostPattern) -> Option<&T> {
        match pattern {
            HostPattern::Exact(name) => self.exact.get(name),
            HostPattern::Wildcard(suffix) => self.wildcard.get(suffix),
            HostPattern::Any => self.any.as_ref(),
        }
    }

    pub(super) fn insert(&mut self, pattern: &HostPattern, value: T) {
        match pattern {
            HostPattern::Exact(name) => drop(self.exact.insert(name.clone(), value)),
            HostPattern::Wildcard(suffix) => drop(self.wildcard.insert(suffix.clone(), value)),
            HostPattern::Any => self.any = Some(value),
        }
    }

    pub(super) fn remove(&mut self, pattern: &HostPattern) -> Option<T> {
        match pattern {
            HostPattern::Exact(name) => self.exact.remove(name),
            HostPattern::Wildcard(suffix) => self.wildcard.remove(suffix),
            HostPattern::Any => self.any.take(),
        }
    }

    /// Everything that holds a host, the most specific first.
    pub(super) fn holding<'t>(&'t self, host: &str) -> impl Iterator<Item = &'t T> {
        self.exact
            .get(host)
            .into_iter()
            .chain(self.below(host))
            .chain(&self.any)
    }

    /// What belongs to the wildcards above a host, the longest suffix first.
    fn below<'t>(&'t self, host: &str) -> impl Iterator<Item = &'t T> {
        let walked = if self.wildcard.is_empty() { "" } else { host };
        walked
            .match_indices('.')
            // A wildcard stands for at least one character.
            .filter(|(dot, _)| *dot > 0)
            .filter_map(|(dot, _)| self.wildcard.get(walked.get(dot + 1..)?))
    }
}

/// The listeners that share an address and a port, by the hosts they answer for.
#[derive(Clone)]
pub(crate) struct BindTable<T>(HostMap<T>);

impl<T: Clone> BindTable<T> {
    /// Builds the table from listeners in the order of their declaration: of two with the same hostname the first wins.
    pub(crate) fn new<'a>(listeners: impl IntoIterator<Item = (&'a HostPattern, T)>) -> Self {
        let mut hosts = HostMap::new();
        for (hostname, listener) in listeners {
            if hosts.get(hostname).is_none() {
                hosts.insert(hostname, listener);
            }
        }
        Self(hosts)
    }

    /// The listener that a host belongs to: the one with the most specific hostname, and that one alone.
    pub(crate) fn listener(&self, host: &str) -> Option<&T> {
        self.0.holding(host).next()
    }
}
