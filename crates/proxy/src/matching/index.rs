//! The entries of one host, indexed by path.
//!
//! A host with a handful of entries is a sorted list that is simply tried in order. Beyond that, exact paths are found by
//! hash, prefixes by the hashes of the path's leading segments, and patterns by the literal segments they begin with. All
//! parts are persistent: a changed entry costs the logarithm of the others. The segments form no linked trie because a
//! trie is as deep as a tenant's longest path, and dropping a very deep one overflows the stack.

use std::{
    hash::{BuildHasher, Hasher},
    sync::Arc,
};

use ahash::RandomState;
use gatewright_ir::{Entry, PathMatch, Text};
use imbl::{GenericHashMap, OrdMap, shared_ptr::DefaultSharedPtr};

use super::{
    candidates::Candidates,
    entry::CompiledEntry,
    patterns::literal_head,
    request::{RequestView, Subject},
};

/// Up to this many entries a list is smaller than an index, and no slower.
const LONGEST_LIST: usize = 8;

/// The entries of one host.
#[derive(Clone)]
pub(super) enum HostTable {
    /// In order of precedence.
    List(Vec<Arc<CompiledEntry>>),
    /// A host that once was large stays indexed: only its memory would be saved by going back.
    Index(Box<Index>),
}

#[derive(Clone, Default)]
pub(super) struct Index {
    exact: GenericHashMap<Text, Candidates, RandomState, DefaultSharedPtr>,
    prefixes: SegmentIndex,
    patterns: SegmentIndex,
    /// Patterns that do not begin with any literal segment.
    loose_patterns: Option<Candidates>,
    /// Hashes leading segments, keyed at random so that nobody can make paths collide.
    hasher: RandomState,
}

/// Entries by the hash of whole leading segments.
#[derive(Clone, Default)]
struct SegmentIndex {
    leaves: GenericHashMap<u64, Candidates, RandomState, DefaultSharedPtr>,
    /// How many entries have how many segments.
    depths: OrdMap<usize, usize>,
    /// The greatest key of `depths`: no path is looked at further, however long it is.
    deepest: usize,
}

impl HostTable {
    pub(super) fn new() -> Self {
        Self::List(Vec::new())
    }

    /// Adds an entry that has a rank of its own.
    pub(super) fn insert(&mut self, added: Arc<CompiledEntry>) {
        match self {
            Self::List(list) => {
                let place = list.partition_point(|present| present.entry < added.entry);
                list.insert(place, added);
                if list.len() > LONGEST_LIST {
                    let mut index = Box::<Index>::default();
                    for entry in list.drain(..) {
                        index.insert(entry);
                    }
                    *self = Self::Index(index);
                }
            }
            Self::Index(index) => index.insert(added),
        }
    }

    /// Takes away the entry that was compiled from this one.
    pub(super) fn remove(&mut self, entry: &Entry) {
        match self {
            Self::List(list) => list.retain(|present| (*present.entry).cmp(entry).is_ne()),
            Self::Index(index) => index.remove(entry),
        }
    }

    /// The entry with the highest precedence that a request meets.
    pub(super) fn find<R: RequestView>(&self, subject: &Subject<'_, R>) -> Option<&Arc<CompiledEntry>> {
        match self {
            Self::List(list) => list.iter().find(|entry| entry.is_met(subject)),
            Self::Index(index) => index.find(subject),
        }
    }
}

impl Index {
    fn insert(&mut self, added: Arc<CompiledEntry>) {
        let entry = added.entry.clone();
        match &entry.matches.path {
            PathMatch::Exact(path) => put(&mut self.exact, path.clone(), added),
            PathMatch::Prefix(prefix) => self.prefixes.insert(&self.hasher, without_slash(prefix), added),
            PathMatch::Pattern(pattern) => match (literal_head(pattern), &mut self.loose_patterns) {
                (Some(head), _) => self.patterns.insert(&self.hasher, head, added),
                (None, Some(present)) => present.insert(added),
                (None, empty) => *empty = Some(Candidates::One(added)),
            },
        }
    }

    fn remove(&mut self, entry: &Entry) {
        match &entry.matches.path {
            PathMatch::Exact(path) => take(&mut self.exact, path, entry),
            PathMatch::Prefix(prefix) => self.prefixes.remove(&self.hasher, without_slash(prefix), entry),
            PathMatch::Pattern(pattern) => match literal_head(pattern) {
                Some(head) => self.patterns.remove(&self.hasher, head, entry),
                None => self.loose_patterns = self.loose_patterns.take().and_then(|present| present.without(entry)),
            },
        }
    }

    fn find<R: RequestView>(&self, subject: &Subject<'_, R>) -> Option<&Arc<CompiledEntry>> {
        let path = subject.view.path();
        // Every exact path comes before every prefix and pattern.
        let exact = self
            .exact
            .get(path)
            .and_then(|leaf| leaf.first(None, |entry| entry.rest_is_met(subject)));
        if exact.is_some() {
            return exact;
        }
        let mut prefixes = Hits::new();
        let mut patterns = Hits::new();
        let deepest = self.prefixes.deepest.max(self.patterns.deepest);
        for (hash, leading) in leading_segments(&self.hasher, path).take(deepest) {
            prefixes.note(self.prefixes.leaves.get(&hash), leading);
            if !self.patterns.leaves.is_empty() {
                patterns.note(self.patterns.leaves.get(&hash), leading);
            }
        }
        // More segments make a longer prefix, and a longer prefix comes first.
        let mut best = prefixes.deepest_first().find_map(|(leaf, leading)| {
            leaf.first(None, |entry| {
                entry.prefix() == Some(leading) && entry.rest_is_met(subject)
            })
        });
        // Patterns are ranked among the prefixes, so they are tried only while they come before the best found so far.
        let leaves = patterns.deepest_first().map(|(leaf, _)| leaf);
        for leaf in leaves.chain(&self.loose_patterns) {
            let before = best.map(|best| &*best.entry);
            best = leaf.first(before, |entry| entry.is_met(subject)).or(best);
        }
        best
    }
}

impl SegmentIndex {
    fn insert(&mut self, hasher: &RandomState, segments: &str, added: Arc<CompiledEntry>) {
        let (hash, depth) = hash_and_depth(hasher, segments);
        put(&mut self.leaves, hash, added);
        *self.depths.entry(depth).or_insert(0) += 1;
        self.deepest = self.deepest.max(depth);
    }

    fn remove(&mut self, hasher: &RandomState, segments: &str, entry: &Entry) {
        let (hash, depth) = hash_and_depth(hasher, segments);
        take(&mut self.leaves, &hash, entry);
        if let Some(count) = self.depths.get_mut(&depth) {
            *count -= 1;
            if *count == 0 {
                self.depths.remove(&depth);
            }
        }
        self.deepest = self.depths.get_max().map_or(0, |(depth, _)| *depth);
    }
}

/// The leaves met while walking down a path. A path rarely meets more than two or three, so they are kept on the stack;
/// only beyond that is memory taken.
struct Hits<'t, 'p> {
    first: [Option<(&'t Candidates, &'p str)>; 8],
    count: usize,
    rest: Vec<(&'t Candidates, &'p str)>,
}

impl<'t, 'p> Hits<'t, 'p> {
    fn new() -> Self {
        Self {
            first: [None; 8],
            count: 0,
            rest: Vec::new(),
        }
    }

    fn note(&mut self, leaf: Option<&'t Candidates>, leading: &'p str) {
        let Some(leaf) = leaf else { return };
        match self.first.get_mut(self.count) {
            Some(place) => *place = Some((leaf, leading)),
            None => self.rest.push((leaf, leading)),
        }
        self.count += 1;
    }

    fn deepest_first(&self) -> impl Iterator<Item = (&'t Candidates, &'p str)> {
        let on_stack = self.first.iter().take(self.count).rev().flatten();
        self.rest.iter().rev().chain(on_stack).copied()
    }
}

/// The whole leading segments of a text with their hashes, the shortest first: of `/a/b` these are the empty text, `/a`
/// and `/a/b`. The hash goes on from one to the next, so that a long path is read once.
fn leading_segments<'a>(hasher: &RandomState, text: &'a str) -> impl Iterator<Item = (u64, &'a str)> {
    let mut state = hasher.build_hasher();
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let rest = text.get(start..)?;
        let length = rest.find('/');
        let end = length.map_or(text.len(), |length| start + length);
        next = length.map(|_| end + 1);
        state.write(text.get(start..end)?.as_bytes());
        Some((state.clone().finish(), text.get(..end)?))
    })
}

fn hash_and_depth(hasher: &RandomState, segments: &str) -> (u64, usize) {
    leading_segments(hasher, segments).fold((0, 0), |(_, depth), (hash, _)| (hash, depth + 1))
}

fn without_slash(prefix: &str) -> &str {
    prefix.strip_suffix('/').unwrap_or(prefix)
}

type Leaves<K> = GenericHashMap<K, Candidates, RandomState, DefaultSharedPtr>;

fn put<K: std::hash::Hash + Eq + Clone>(leaves: &mut Leaves<K>, key: K, added: Arc<CompiledEntry>) {
    match leaves.get_mut(&key) {
        Some(present) => present.insert(added),
        None => drop(leaves.insert(key, Candidates::One(added))),
    }
}

fn take<K: std::hash::Hash + Eq + Clone>(leaves: &mut Leaves<K>, key: &K, entry: &Entry) {
    if let Some(left) = leaves.remove(key).and_then(|present| present.without(entry)) {
        leaves.insert(key.clone(), left);
    }
}
