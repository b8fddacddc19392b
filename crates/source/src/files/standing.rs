//! Which declaration of each object is in use, and what changes by that.
//!
//! The first declaration by path and position wins; another one is an error that names both, and takes over when the
//! first goes away. Objects are compared by digest, so that only real changes are handed on and the objects themselves
//! need not be kept. The metadata that an API server would keep is kept here.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
    sync::Arc,
};

use ahash::RandomState;
use gatewright_api::{Kind, Object, ObjectName, meta::Time, validate::Code};
use jiff::Timestamp;

use super::{
    Change, Problem,
    admit::{Declared, Origin, digest_state, place_of},
    folder::{self, notation_of},
    loader::{Files, read_content},
    parse::Notation,
    problem::Place,
};

/// The names whose declarations changed in a scan.
pub(super) type Touched = BTreeSet<Arc<ObjectName>>;

/// An object that a file declares.
pub(super) struct Entry {
    name: Arc<ObjectName>,
    content: u64,
    spec: u64,
    created: Option<Timestamp>,
    origin: Origin,
    /// Kept until it is handed on, and while another declaration wins over it.
    object: Option<Object>,
}

/// Every declared object.
pub(super) struct Standings {
    by_name: HashMap<Arc<ObjectName>, Standing, RandomState>,
    duplicates: BTreeMap<Arc<ObjectName>, Vec<Problem>>,
    resource_version: u64,
    objects: usize,
}

impl Default for Standings {
    fn default() -> Standings {
        let by_name = HashMap::with_hasher(digest_state());
        Standings {
            by_name,
            duplicates: BTreeMap::new(),
            resource_version: 0,
            objects: 0,
        }
    }
}

/// Who declares an object, and what of it is in use.
#[derive(Default)]
struct Standing {
    /// In the order of precedence.
    claims: Vec<Claim>,
    live: Option<Live>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    file: Arc<Path>,
    position: usize,
}

/// The object in use, as far as it must be remembered.
#[derive(Clone, Copy)]
struct Live {
    content: u64,
    spec: u64,
    generation: i64,
    created: Timestamp,
}

impl Standings {
    /// How many objects are in use.
    pub(super) fn objects(&self) -> usize {
        self.objects
    }

    /// Where the declaration in use of an object stands.
    pub(super) fn place_of(&self, name: &ObjectName, files: &Files) -> Option<(Arc<Path>, Place)> {
        let winner = self.by_name.get(name)?.claims.first()?;
        Some((Arc::clone(&winner.file), place(name, winner, files)))
    }

    /// The objects that are declared more than once.
    pub(super) fn duplicates(&self) -> impl Iterator<Item = &Problem> {
        self.duplicates.values().flatten()
    }

    /// A file no longer declares these.
    pub(super) fn withdraw(&mut self, file: &Arc<Path>, entries: Vec<Entry>, touched: &mut Touched) {
        for entry in entries {
            if let Some(standing) = self.by_name.get_mut(&entry.name) {
                standing.claims.retain(|claim| claim.file != *file);
            }
            touched.insert(entry.name);
        }
    }

    /// A file declares these.
    pub(super) fn declare(&mut self, file: &Arc<Path>, declared: Vec<Declared>, touched: &mut Touched) -> Vec<Entry> {
        let enter = |(position, declared): (usize, Declared)| {
            let Declared {
                name,
                object,
                content,
                spec,
                created,
                origin,
            } = declared;
            let known = self.by_name.get_key_value(&name);
            let name = known.map_or_else(|| Arc::new(name), |(name, _)| Arc::clone(name));
            let standing = self.by_name.entry(Arc::clone(&name)).or_default();
            let claim = Claim {
                file: Arc::clone(file),
                position,
            };
            let at = standing.claims.partition_point(|other| *other < claim);
            standing.claims.insert(at, claim);
            touched.insert(Arc::clone(&name));
            Entry {
                name,
                content,
                spec,
                created,
                origin,
                object: Some(object),
            }
        };
        declared.into_iter().enumerate().map(enter).collect()
    }

    /// Decides for each name which declaration is in use, and says what changed by that.
    pub(super) fn settle(&mut self, touched: Touched, files: &mut Files, now: Timestamp) -> Vec<Change> {
        let mut deleted = Vec::new();
        let mut applied = Vec::new();
        for name in touched {
            let Some(standing) = self.by_name.get_mut(&name) else {
                continue;
            };
            let before = standing.live;
            self.duplicates.remove(&name);
            if let [winner, losers @ ..] = standing.claims.as_slice()
                && !losers.is_empty()
            {
                self.duplicates
                    .insert(Arc::clone(&name), shadow(&name, winner, losers, files));
            }
            let winner = standing.claims.first();
            if let Some(Elected { live, object }) = winner.and_then(|winner| elect(&name, winner, before, files, now)) {
                standing.live = Some(live);
                self.objects += usize::from(before.is_none());
                if let Some(object) = object {
                    self.resource_version += 1;
                    let object = stamp(object, &name, live, self.resource_version);
                    applied.push(Change::Apply(Box::new(object)));
                }
            } else {
                if standing.claims.is_empty() {
                    self.by_name.remove(&name);
                } else {
                    standing.live = None;
                }
                if before.is_some() {
                    self.objects -= 1;
                    deleted.push(Change::Delete(name.as_ref().clone()));
                }
            }
        }
        deleted.extend(applied);
        deleted
    }
}

/// The declaration in use; with the object when it differs from the one before.
struct Elected {
    live: Live,
    object: Option<Object>,
}

fn elect(
    name: &ObjectName,
    winner: &Claim,
    before: Option<Live>,
    files: &mut Files,
    now: Timestamp,
) -> Option<Elected> {
    let entry = files.get_mut(&winner.file)?.entries.get_mut(winner.position)?;
    let object = match before {
        Some(live) if live.content == entry.content => {
            entry.object = None;
            None
        }
        // One that was in use, lost to another and now takes over again is read from its file once more.
        _ => Some(
            entry
                .object
                .take()
                .or_else(|| read_again(name, winner, entry.content))?,
        ),
    };
    let live = Live {
        content: entry.content,
        spec: entry.spec,
        generation: before.map_or(1, |live| live.generation + i64::from(live.spec != entry.spec)),
        created: entry.created.or(before.map(|live| live.created)).unwrap_or(now),
    };
    Some(Elected { live, object })
}

/// Reports the declarations that lose, and makes sure that their objects are at hand when they take over.
fn shadow(name: &ObjectName, winner: &Claim, losers: &[Claim], files: &mut Files) -> Vec<Problem> {
    let used = place(name, winner, files);
    let mut problems = Vec::new();
    for loser in losers {
        let here = place(name, loser, files);
        let message = format!(
            "is declared twice: {}:{} comes first and is used",
            winner.file.display(),
            used.line
        );
        let hint = "remove one of the two, or give it another name";
        let mut problem = Problem::of_file(Code::DuplicateObject, &loser.file, message, hint).at(here);
        problem.object = Some(name.clone());
        problems.push(problem);
        if let Some(entry) = files
            .get_mut(&loser.file)
            .and_then(|state| state.entries.get_mut(loser.position))
            && entry.object.is_none()
        {
            entry.object = read_again(name, loser, entry.content);
        }
    }
    problems
}

fn read_again(name: &ObjectName, claim: &Claim, content: u64) -> Option<Object> {
    let bytes = folder::read(&claim.file).ok()?;
    let declared = read_content(&claim.file, bytes).declared;
    let same = declared
        .into_iter()
        .find(|declared| declared.name == *name && declared.content == content);
    same.map(|declared| declared.object)
}

fn place(name: &ObjectName, claim: &Claim, files: &Files) -> Place {
    let entry = files
        .get(&claim.file)
        .and_then(|state| state.entries.get(claim.position));
    let origin = entry.map(|entry| entry.origin.clone()).unwrap_or_default();
    let text = folder::read(&claim.file)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default();
    let notation = notation_of(&claim.file).unwrap_or(Notation::Yaml);
    place_of(
        text.trim_start_matches('\u{feff}'),
        notation,
        &origin,
        name.kind == Kind::Secret,
    )
}

/// Sets what an API server would set.
fn stamp(mut object: Object, name: &ObjectName, live: Live, resource_version: u64) -> Object {
    let metadata = object.metadata_mut();
    metadata.uid = Some(uid(name));
    metadata.generation = Some(live.generation);
    metadata.creation_timestamp = Some(Time(live.created));
    metadata.resource_version = Some(resource_version.to_string());
    object
}

/// A UUID (version 8: made by a rule of our own) that is the same for the same name, on every machine and start.
pub(super) fn uid(name: &ObjectName) -> String {
    let ObjectName { kind, namespace, name } = name;
    // FNV-1a: short, and the same everywhere. The parts are separated by a byte that no name has.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in [kind.group(), kind.as_str(), namespace, name].join("\0").bytes() {
        hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    hash = hash & !(0xf << 76) | (0x8 << 76);
    hash = hash & !(0b11 << 62) | (0b10 << 62);
    let digits = format!("{hash:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| digits.get(range).unwrap_or_default());
    parts.join("-")
}
