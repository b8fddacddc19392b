//! What is wanted and what is there, of the objects we make.
//!
//! Keeps a verdict per object instead of the object: the hash of the wish that it was found to fulfil.

mod compare;

use std::{sync::Arc, time::Duration};

use ahash::{AHashMap, AHashSet};
use gatewright_api::ObjectName;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    OwnedConflict, OwnedKind, OwnedName, OwnedObject,
    object::{self, Full, Owner, Whose},
};
use crate::kube::{
    Cluster,
    backoff::delay,
    raw::Raw,
    writer::{queue::Job, state::State},
};

/// The wait between the first correction of an object and the second.
const FIRST_CORRECTION: Duration = Duration::from_millis(500);
const LONGEST_CORRECTION: Duration = Duration::from_mins(5);
/// After so long, corrections are counted from the beginning.
const FORGIVEN: Duration = Duration::from_mins(30);

#[derive(Debug, Default)]
pub(in crate::kube::writer) struct Owned {
    entries: AHashMap<OwnedName, Entry>,
    /// Kinds of which everything ours has been listed, everywhere or in one namespace. Nothing is done about others.
    listed: AHashSet<(OwnedKind, Option<Box<str>>)>,
    unjudged: Vec<OwnedName>,
}

impl Owned {
    fn is_listed(&self, name: &OwnedName) -> bool {
        let in_its_namespace = (name.kind, Some(name.namespace.as_str().into()));
        self.listed.contains(&(name.kind, None)) || self.listed.contains(&in_its_namespace)
    }
}

#[derive(Debug, Default)]
struct Entry {
    desired: Option<Arc<OwnedObject>>,
    seen: Option<Seen>,
    /// What the server made of what we applied: the hash of the wish and the content that came of it.
    made: Option<(u64, u64)>,
    conflict: Option<String>,
    /// How often an object that was as wanted had to be put right, and when last.
    corrections: Option<(u32, Instant)>,
}

#[derive(Debug)]
struct Seen {
    uid: Box<str>,
    resource_version: Box<str>,
    content: u64,
    /// The object, until it has been compared with a wish.
    raw: Option<Box<Raw>>,
    /// The hash of the wish that it fulfils.
    fulfils: Option<u64>,
}

/// What is wanted of an object.
enum Wish {
    /// It should not be there.
    Gone,
    /// It stays as it is, whatever that is.
    Untouched,
    /// An owner that is not there takes what it owns with it; should it come, this is looked at again.
    Waiting,
    Object {
        full: Full,
        object: Arc<OwnedObject>,
        owner_uid: Box<str>,
    },
}

/// What to do about an object.
#[derive(Debug)]
pub(super) enum Step {
    Nothing,
    /// Make it so. With the version it is made from; without one it must not exist.
    Apply {
        full: Full,
        object: Arc<OwnedObject>,
        owner_uid: Box<str>,
        version: Option<Box<str>>,
    },
    Delete {
        uid: Box<str>,
        version: Box<str>,
    },
    /// Somebody keeps changing it back; not before so long.
    Wait(Duration),
}

impl State {
    pub(in crate::kube::writer) fn own(&mut self, name: OwnedName, desired: Option<Arc<OwnedObject>>) {
        let entry = self.owned.entries.entry(name.clone()).or_default();
        let is_new = entry.desired != desired;
        entry.desired = desired;
        if entry.desired.is_none() {
            entry.conflict = None;
            if entry.seen.is_none() {
                self.owned.entries.remove(&name);
                self.failures.remove(&Job::Owned(name));
                return;
            }
        }
        let job = Job::Owned(name);
        if is_new {
            self.failures.remove(&job);
            if self.is_active() {
                // Whether there is anything to do is looked up when its turn comes.
                self.queue.push(job);
            }
        } else {
            self.judge_owned(job);
        }
    }

    fn judge_owned(&mut self, job: Job) {
        if self.is_active() {
            self.queue.push_gently(job);
        }
    }

    pub(in crate::kube::writer) fn judge_unjudged_owned(&mut self) {
        for name in std::mem::take(&mut self.owned.unjudged) {
            self.judge_owned(Job::Owned(name));
        }
    }

    pub(in crate::kube::writer) fn judge_all_owned(&mut self) {
        self.owned.unjudged.clear();
        let names: Vec<OwnedName> = self.owned.entries.keys().cloned().collect();
        for name in names {
            self.judge_owned(Job::Owned(name));
        }
    }

    /// Objects that wait for their owner to be seen.
    pub(in crate::kube::writer) fn judge_owned_of(&mut self, owner: &ObjectName) {
        if !self.is_active() {
            return;
        }
        let is_of = |entry: &Entry| entry.desired.as_ref().is_some_and(|object| object.owner == *owner);
        let names = self.owned.entries.iter().filter(|(_, entry)| is_of(entry));
        for name in names.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.judge_owned(Job::Owned(name));
        }
    }

    /// Everything of a kind has been listed, everywhere or in one place: what was not in the list is gone.
    pub(super) fn owned_listed(&mut self, kind: OwnedKind, place: Option<&str>, there: &AHashSet<OwnedName>) {
        let is_meant =
            |name: &OwnedName| name.kind == kind && place.is_none_or(|place| name.namespace.as_str() == place);
        let gone =
            |(name, entry): &(&OwnedName, &Entry)| is_meant(name) && entry.seen.is_some() && !there.contains(*name);
        let gone: Vec<OwnedName> = self
            .owned
            .entries
            .iter()
            .filter(gone)
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.owned_gone(&name);
        }
        self.owned.listed.insert((kind, place.map(Into::into)));
        let names = self.owned.entries.keys().filter(|name| is_meant(name));
        for name in names.cloned().collect::<Vec<_>>() {
            self.judge_owned(Job::Owned(name));
        }
    }

    /// An object with our label was seen.
    pub(super) fn owned_seen(&mut self, name: OwnedName, raw: Raw) {
        let entry = self.owned.entries.entry(name.clone()).or_default();
        let known = entry.seen.as_ref();
        if known.is_some_and(|known| *known.uid == *raw.uid() && *known.resource_version == *raw.resource_version()) {
            return;
        }
        let has_wish = entry.desired.is_some();
        entry.seen = Some(Seen::of(raw, None));
        if has_wish {
            self.judge_owned(Job::Owned(name));
        } else {
            self.owned.unjudged.push(name);
        }
    }

    /// An object is gone, or has lost our label.
    pub(super) fn owned_gone(&mut self, name: &OwnedName) {
        let Some(entry) = self.owned.entries.get_mut(name) else {
            return;
        };
        entry.seen = None;
        if entry.desired.is_some() {
            self.judge_owned(Job::Owned(name.clone()));
        } else {
            self.owned.entries.remove(name);
            self.failures.remove(&Job::Owned(name.clone()));
        }
    }

    /// What an apply made of an object, or what a look at it found to be as wanted.
    pub(super) fn owned_made(&mut self, name: &OwnedName, raw: Raw, hash: u64) {
        let Some(entry) = self.owned.entries.get_mut(name) else {
            return;
        };
        let mut seen = Seen::of(raw, Some(hash));
        seen.raw = None;
        entry.made = Some((hash, seen.content));
        entry.seen = Some(seen);
        entry.conflict = None;
    }

    pub(super) fn owned_conflict(&mut self, name: &OwnedName, message: String) {
        if let Some(entry) = self.owned.entries.get_mut(name).filter(|entry| entry.desired.is_some()) {
            entry.conflict = Some(message);
        }
    }

    pub(super) fn conflicts(&self) -> Vec<OwnedConflict> {
        let entries = self.owned.entries.iter();
        let conflicts = entries.filter_map(|(name, entry)| {
            Some(OwnedConflict {
                name: name.clone(),
                owner: entry.desired.as_ref()?.owner.clone(),
                message: entry.conflict.clone()?,
            })
        });
        let mut conflicts: Vec<OwnedConflict> = conflicts.collect();
        conflicts.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        conflicts
    }

    /// What to do about an object now.
    pub(super) fn owned_step(
        &mut self,
        name: &OwnedName,
        cluster: &Cluster,
        controller: &str,
        is_watched: bool,
    ) -> Step {
        if !self.is_active() || (is_watched && !self.owned.is_listed(name)) {
            return Step::Nothing;
        }
        let wish = self.owned_wish(name, cluster, controller);
        let Some(entry) = self.owned.entries.get_mut(name) else {
            return Step::Nothing;
        };
        let (full, object, owner_uid) = match wish {
            Wish::Gone => return entry.deletion(controller),
            Wish::Untouched => {
                entry.conflict = None;
                return Step::Nothing;
            }
            Wish::Waiting => return Step::Nothing,
            Wish::Object {
                full,
                object,
                owner_uid,
            } => (full, object, owner_uid),
        };
        let version = match &mut entry.seen {
            None => None,
            Some(seen) => {
                if seen.is_as_wanted(&full, entry.made) {
                    entry.conflict = None;
                    return Step::Nothing;
                }
                let version = seen.resource_version.clone();
                if let Some(wait) = entry.contested(full.hash) {
                    return Step::Wait(wait);
                }
                Some(version)
            }
        };
        Step::Apply {
            full,
            object,
            owner_uid,
            version,
        }
    }

    /// What is wanted of an object now.
    fn owned_wish(&self, name: &OwnedName, cluster: &Cluster, controller: &str) -> Wish {
        let Some(object) = self.owned.entries.get(name).and_then(|entry| entry.desired.clone()) else {
            return if self.is_keeping { Wish::Untouched } else { Wish::Gone };
        };
        let Some(owner_uid) = self.uid(&object.owner) else {
            return Wish::Waiting;
        };
        let Some(wanted) = &object.value else {
            return Wish::Untouched;
        };
        let owner = Owner {
            name: &object.owner,
            resource: &cluster.served(object.owner.kind),
            uid: owner_uid,
        };
        Wish::Object {
            full: object::full(name, wanted, owner, controller),
            owner_uid: owner_uid.into(),
            object,
        }
    }

    /// The object as it was seen, if it has not been compared yet.
    pub(super) fn owned_raw(&self, name: &OwnedName) -> Option<Raw> {
        let raw = self.owned.entries.get(name)?.seen.as_ref()?.raw.as_ref()?;
        Some(Raw::clone(raw))
    }
}

impl Entry {
    /// An object that was right and no longer is was changed by somebody. A person does that once; something that does it
    /// again and again is answered less and less often.
    fn contested(&mut self, hash: u64) -> Option<Duration> {
        if self.made.is_none_or(|(made, _)| made != hash) {
            return None;
        }
        let now = Instant::now();
        let (times, last) = self.corrections.unwrap_or((0, now));
        if times > 0 {
            let wait = delay(FIRST_CORRECTION, LONGEST_CORRECTION, times - 1);
            let until = last + wait;
            if until > now {
                return Some(until - now);
            }
        }
        let is_over = now > last + FORGIVEN;
        self.corrections = Some((if is_over { 1 } else { times.saturating_add(1) }, now));
        None
    }

    fn deletion(&self, controller: &str) -> Step {
        let Some(seen) = &self.seen else { return Step::Nothing };
        // What was compared with a wish of ours is ours.
        let is_ours = seen.fulfils.is_some()
            || seen
                .raw
                .as_ref()
                .is_some_and(|raw| object::whose(raw, None, controller) == Whose::Ours);
        if !is_ours {
            return Step::Nothing;
        }
        Step::Delete {
            uid: seen.uid.clone(),
            version: seen.resource_version.clone(),
        }
    }
}

impl Seen {
    fn of(raw: Raw, fulfils: Option<u64>) -> Self {
        Self {
            uid: raw.uid().into(),
            resource_version: raw.resource_version().into(),
            content: raw.content_without_counters(),
            raw: Some(Box::new(trimmed(raw))),
            fulfils,
        }
    }

    fn is_as_wanted(&mut self, full: &Full, made: Option<(u64, u64)>) -> bool {
        if self.fulfils == Some(full.hash) {
            return true;
        }
        let is_covered = self
            .raw
            .as_ref()
            .is_some_and(|raw| object::is_as_wanted(&raw.value, full));
        if is_covered || made == Some((full.hash, self.content)) {
            self.fulfils = Some(full.hash);
            self.raw = None;
            return true;
        }
        false
    }
}

/// Without its status, which nobody compares.
fn trimmed(mut raw: Raw) -> Raw {
    if let Value::Object(fields) = &mut raw.value {
        fields.remove("status");
    }
    raw
}
