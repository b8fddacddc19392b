//! The entries of one host, in order of precedence, in a persistent collection.
//!
//! A set ordered by precedence alone would be blind to a rule that changed while its rank stayed: to the order both
//! versions are the same element. Each entry is therefore kept with its identity, so that comparing two snapshots finds
//! such changes too, and still skips everything the snapshots share.

use std::{fmt, sync::Arc};

use imbl::{OrdMap, ordmap::DiffItem};
use serde::{Serialize, Serializer};

use crate::Entry;

/// Entries in order of precedence. Cloning costs nothing, a change costs the logarithm of the size.
#[derive(Clone, Default)]
pub struct Entries(OrdMap<Arc<Entry>, Identity>);

/// The address of an entry. Both snapshots of a comparison keep their entries alive, so that equal addresses mean the
/// same entry.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity(usize);

/// One difference between two snapshots.
#[derive(Clone, Copy, Debug)]
pub enum EntryChange<'old, 'new> {
    /// Only the new snapshot has an entry at this rank.
    Added(&'new Arc<Entry>),
    /// Only the old snapshot has an entry at this rank.
    Removed(&'old Arc<Entry>),
    /// Both have an entry at this rank, but not the same one.
    Replaced {
        /// The old snapshot's.
        old: &'old Arc<Entry>,
        /// The new snapshot's.
        new: &'new Arc<Entry>,
    },
}

impl Entries {
    /// No entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries, the one with the highest precedence first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> + ExactSizeIterator {
        self.0.keys()
    }

    /// Puts an entry at its place, and returns the one that had this rank before.
    pub fn insert(&mut self, entry: Arc<Entry>) -> Option<Arc<Entry>> {
        let before = self.0.get_key_value(&entry).map(|(entry, _)| entry.clone());
        let identity = Identity(Arc::as_ptr(&entry).addr());
        self.0.insert(entry, identity);
        before
    }

    /// Takes away the entry at the place of this one.
    pub fn remove(&mut self, entry: &Arc<Entry>) -> Option<Arc<Entry>> {
        self.0.remove_with_key(entry).map(|(entry, _)| entry)
    }

    /// Whether both are the same snapshot, which costs one comparison.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// What must change in this snapshot to make it the other one; what they share costs nothing.
    pub fn diff<'old, 'new>(&'old self, other: &'new Self) -> impl Iterator<Item = EntryChange<'old, 'new>> {
        self.0.diff(&other.0).filter_map(|item| match item {
            DiffItem::Add(entry, _) => Some(EntryChange::Added(entry)),
            DiffItem::Remove(entry, _) => Some(EntryChange::Removed(entry)),
            // A new object with the old content is no change.
            DiffItem::Update { old, new } if old.0 == new.0 => None,
            DiffItem::Update { old, new } => Some(EntryChange::Replaced { old: old.0, new: new.0 }),
        })
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.diff(other).next().is_none()
    }
}

impl FromIterator<Arc<Entry>> for Entries {
    fn from_iter<I: IntoIterator<Item = Arc<Entry>>>(entries: I) -> Self {
        let mut all = Self::new();
        all.extend(entries);
        all
    }
}

impl Extend<Arc<Entry>> for Entries {
    fn extend<I: IntoIterator<Item = Arc<Entry>>>(&mut self, entries: I) {
        for entry in entries {
            self.insert(entry);
        }
    }
}

impl fmt::Debug for Entries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests;
