//! What the cluster shows of an object whose status we write.
//!
//! The watch makes these beside the changes for the world, the writer keeps them: a fingerprint instead of a status, so
//! that a hundred thousand routes cost little and comparing costs nothing.

use std::cmp::Ordering;

use gatewright_api::{Kind, ObjectName};

use super::{raw::Raw, writer::shown};

/// What the cluster shows of one object. Made by the watch, for the writer.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(crate) name: ObjectName,
    /// Nothing: it is gone.
    pub(crate) seen: Option<Seen>,
}

/// An object that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    pub(crate) finalizers: Box<[Box<str>]>,
    /// Whether it is being deleted.
    pub(crate) is_ending: bool,
    /// The fingerprint of what is ours in its status.
    pub(crate) ours: u64,
    /// Whether anything in its status is ours.
    pub(crate) has_ours: bool,
    /// Whether its status says nothing at all, so that it can be written without being read first.
    pub(crate) is_blank: bool,
}

impl Observed {
    /// The object this is about.
    pub fn name(&self) -> &ObjectName {
        &self.name
    }
}

impl Seen {
    pub(crate) fn of(kind: Kind, raw: &Raw, controller: &str) -> Self {
        let finalizers = raw.metadata.finalizers.iter().flatten();
        let status = raw.status();
        Self {
            uid: raw.uid().into(),
            resource_version: raw.resource_version().into(),
            finalizers: finalizers.map(|finalizer| finalizer.as_str().into()).collect(),
            is_ending: raw.metadata.deletion_timestamp.is_some(),
            ours: shown::fingerprint(kind, status, controller),
            has_ours: shown::has_ours(kind, status, controller),
            is_blank: shown::is_blank(kind, status),
        }
    }

    /// Whether this is older than what is known already: an event that was under way while we wrote.
    pub(crate) fn is_older_than(&self, other: &Seen) -> bool {
        self.uid == other.uid && age(&self.resource_version, &other.resource_version) == Some(Ordering::Less)
    }
}

/// Compares two versions of one object. API servers count them up; should one not, nothing is known.
pub(crate) fn age(one: &str, other: &str) -> Option<Ordering> {
    let (one, other) = (one.parse::<u128>().ok()?, other.parse::<u128>().ok()?);
    Some(one.cmp(&other))
}
