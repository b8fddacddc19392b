//! Reverse indexes: from what an object refers to, to the objects that refer to it.

use std::{collections::BTreeSet, hash::Hash};

use ahash::AHashMap;

/// Many values per key, most keys with one. A world with a hundred thousand Services that each serve one route must not
/// pay for a hundred thousand sets.
#[derive(Debug)]
pub struct Index<K, V> {
    entries: AHashMap<K, Few<V>>,
}

#[derive(Debug)]
enum Few<V> {
    One(V),
    Many(BTreeSet<V>),
}

impl<K, V> Default for Index<K, V> {
    fn default() -> Self {
        Self {
            entries: AHashMap::new(),
        }
    }
}

impl<K: Eq + Hash, V: Ord> Index<K, V> {
    /// Adds a value to a key.
    pub fn insert(&mut self, key: K, value: V) {
        use std::collections::hash_map::Entry;
        match self.entries.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(Few::One(value));
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Few::Many(values) => {
                    values.insert(value);
                }
                Few::One(known) if *known == value => {}
                Few::One(_) => {
                    if let Few::One(known) = entry.insert(Few::Many(BTreeSet::new())) {
                        entry.insert(Few::Many(BTreeSet::from([known, value])));
                    }
                }
            },
        }
    }

    /// Takes a value from a key.
    pub fn remove(&mut self, key: &K, value: &V) {
        let is_empty = match self.entries.get_mut(key) {
            None => false,
            Some(Few::One(known)) => known == value,
            Some(Few::Many(values)) => {
                values.remove(value);
                values.is_empty()
            }
        };
        if is_empty {
            self.entries.remove(key);
        }
    }

    /// The values of a key, in order.
    pub fn get(&self, key: &K) -> impl Iterator<Item = &V> {
        let (one, many) = match self.entries.get(key) {
            None => (None, None),
            Some(Few::One(value)) => (Some(value), None),
            Some(Few::Many(values)) => (None, Some(values)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::Index;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn an_index_holds_what_a_set_of_pairs_would_hold(edits in proptest::collection::vec((any::<bool>(), 0..3u8, 0..4u8), 0..60)) {
            let mut index = Index::default();
            let mut model = BTreeSet::new();
            for (inserts, key, value) in edits {
                if inserts { index.insert(key, value); model.insert((key, value)); }
                else { index.remove(&key, &value); model.remove(&(key, value)); }
            }
            for key in 0..3u8 {
                let expected: Vec<u8> = model.iter().filter(|pair| pair.0 == key).map(|pair| pair.1).collect();
                prop_assert_eq!(index.get(&key).copied().collect::<Vec<_>>(), expected);
            }
        }
    }
}
