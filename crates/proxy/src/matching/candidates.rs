//! The entries that share one place in an index, in order of precedence.
//!
//! Almost always there is one, which costs a pointer; where many routes share a path and differ in their headers, a
//! persistent set keeps a change cheap.

use std::{borrow::Borrow, cmp::Ordering, sync::Arc};

use gatewright_ir::Entry;
use imbl::OrdSet;

use super::entry::CompiledEntry;

/// At least one entry.
#[derive(Clone)]
pub(super) enum Candidates {
    One(Arc<CompiledEntry>),
    Many(OrdSet<Ranked>),
}

/// A compiled entry in the order of the entry it was compiled from.
#[derive(Clone)]
pub(super) struct Ranked(Arc<CompiledEntry>);

impl Candidates {
    /// Adds an entry that has a rank of its own.
    pub(super) fn insert(&mut self, added: Arc<CompiledEntry>) {
        match self {
            Self::One(present) => *self = Self::Many([present.clone(), added].into_iter().map(Ranked).collect()),
            Self::Many(set) => {
                set.insert(Ranked(added));
            }
        }
    }

    /// What is left without the entry of this rank.
    pub(super) fn without(mut self, entry: &Entry) -> Option<Self> {
        match &mut self {
            Self::One(present) => (*present.entry).cmp(entry).is_ne().then_some(self),
            Self::Many(set) => {
                set.remove(entry);
                match (set.len(), set.get_min()) {
                    (_, None) => None,
                    (1, Some(Ranked(last))) => Some(Self::One(last.clone())),
                    _ => Some(self),
                }
            }
        }
    }

    /// The first entry that is met, among those that come before a given one.
    pub(super) fn first(
        &self,
        before: Option<&Entry>,
        mut is_met: impl FnMut(&CompiledEntry) -> bool,
    ) -> Option<&Arc<CompiledEntry>> {
        let mut accepts = |candidate: &&Arc<CompiledEntry>| is_met(candidate);
        let is_before = |candidate: &&Arc<CompiledEntry>| before.is_none_or(|best| *candidate.entry < *best);
        match self {
            Self::One(candidate) => Some(candidate).filter(is_before).filter(accepts),
            Self::Many(set) => set
                .iter()
                .map(|Ranked(candidate)| candidate)
                .take_while(is_before)
                .find(&mut accepts),
        }
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.entry.cmp(&other.0.entry)
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}

impl Borrow<Entry> for Ranked {
    fn borrow(&self) -> &Entry {
        &self.0.entry
    }
}
