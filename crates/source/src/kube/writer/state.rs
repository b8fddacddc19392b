//! Everything the writer knows: what is shown, what is wanted, what is queued, what failed.
//!
//! Behind one lock that is never held across a request. The handle puts wishes and observations in, the running jobs
//! take them out and put results in.

use std::{collections::BTreeMap, sync::Arc};

use ahash::AHashMap;
use gatewright_api::{Kind, ObjectName};
use gatewright_world::desired::Status;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    entry::{Entry, Want},
    events::Pending,
    owned::Owned,
    queue::{Job, Queue},
};
use crate::kube::observed::Seen;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) is_leader: bool,
    /// Whether a whole plan has been told.
    pub(super) has_plan: bool,
    /// Whether nothing of ours is deleted: see [`super::Writer::set_keeping`].
    pub(super) is_keeping: bool,
    pub(super) objects: AHashMap<ObjectName, Entry>,
    pub(super) owned: Owned,
    pub(super) queue: Queue,
    /// Objects that were seen since the last plan and of which nothing was wanted yet.
    unjudged: Vec<ObjectName>,
    /// Nothing is asked of the server before.
    pub(super) pause: Option<Instant>,
    pub(super) troubles: u32,
    pub(super) failures: AHashMap<Job, Failure>,
    pub(super) events: Pending,
    pub(super) counters: Counters,
}

/// A job that fails, and since when.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) attempts: u32,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) since: Timestamp,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    /// Requests that changed something, by kind and what was done.
    pub(super) writes: BTreeMap<(&'static str, &'static str), u64>,
    /// Requests that failed, by kind and reason.
    pub(super) failures: BTreeMap<(&'static str, String), u64>,
    /// Writes that met a newer version and were done again.
    pub(super) conflicts: u64,
    /// Differences that the regular comparison found and nothing else had noticed.
    pub(super) drift: u64,
    pub(super) sweeps: u64,
    pub(super) events: u64,
    pub(super) events_dropped: u64,
}

impl State {
    pub(super) fn observe(&mut self, name: &ObjectName, seen: Option<Seen>) {
        let Some(seen) = seen else {
            self.forget(name);
            return;
        };
        let entry = self.objects.entry(name.clone()).or_default();
        if entry.seen.as_ref().is_some_and(|known| seen.is_older_than(known)) {
            return;
        }
        let is_other = entry.seen.as_ref().is_none_or(|known| known.uid != seen.uid);
        entry.seen = Some(seen);
        let is_unsaid = matches!(entry.want, Want::Unsaid);
        let needs_status = entry.needs_status(name.kind);
        if is_other {
            self.judge_owned_of(name);
        }
        if is_unsaid {
            // The plan of the batch it came with will say whether it is ours.
            if needs_status {
                self.unjudged.push(name.clone());
            }
            self.judge_finalizer(name);
        } else {
            self.judge(name);
        }
    }

    fn forget(&mut self, name: &ObjectName) {
        self.failures.remove(&Job::Status(name.clone()));
        self.failures.remove(&Job::Finalizer(name.clone()));
        if let Some(entry) = self.objects.get_mut(name) {
            entry.seen = None;
            entry.made = None;
            if entry.is_idle() {
                self.objects.remove(name);
            }
        }
    }

    pub(super) fn want(&mut self, name: ObjectName, status: Option<(Arc<Status>, u64)>) {
        let entry = self.objects.entry(name.clone()).or_default();
        let before = match &entry.want {
            Want::Status(_, fingerprint) => Some(*fingerprint),
            Want::Nothing { was } => *was,
            Want::Unsaid => None,
        };
        let is_new = match &status {
            Some((_, fingerprint)) => !matches!(&entry.want, Want::Status(_, known) if known == fingerprint),
            None => matches!(entry.want, Want::Status(..)),
        };
        entry.want = match status {
            Some((status, fingerprint)) => Want::Status(status, fingerprint),
            None => Want::Nothing { was: before },
        };
        if entry.is_idle() {
            self.objects.remove(&name);
            return;
        }
        if is_new {
            // What failed before may well work now.
            self.failures.remove(&Job::Status(name.clone()));
            if self.is_active() && self.needs_status(&name) {
                self.queue.push(Job::Status(name));
            }
        } else {
            self.judge(&name);
        }
    }

    pub(super) fn keep(&mut self, name: &ObjectName, keep: bool) {
        self.objects.entry(name.clone()).or_default().keep = Some(keep);
        self.judge_finalizer(name);
    }

    pub(super) fn planned(&mut self) {
        if self.has_plan {
            for name in std::mem::take(&mut self.unjudged) {
                self.judge(&name);
            }
            self.judge_unjudged_owned();
        } else {
            self.has_plan = true;
            self.judge_all();
        }
    }

    pub(super) fn set_leader(&mut self, is_leader: bool) {
        if self.is_leader == is_leader {
            return;
        }
        self.is_leader = is_leader;
        if is_leader {
            self.judge_all();
        } else {
            self.queue.clear();
            self.failures.clear();
            self.pause = None;
            self.troubles = 0;
        }
    }

    pub(super) fn set_keeping(&mut self, is_keeping: bool) {
        if std::mem::replace(&mut self.is_keeping, is_keeping) && !is_keeping {
            self.judge_all_owned();
        }
    }

    /// Whether anything may be written at all.
    pub(super) fn is_active(&self) -> bool {
        self.is_leader && self.has_plan
    }

    fn judge_all(&mut self) {
        self.unjudged.clear();
        let names: Vec<ObjectName> = self.objects.keys().cloned().collect();
        for name in names {
            self.judge(&name);
        }
        self.judge_all_owned();
    }

    /// Queues what differs.
    pub(super) fn judge(&mut self, name: &ObjectName) {
        if self.is_active() && self.needs_status(name) {
            self.queue.push_gently(Job::Status(name.clone()));
        }
        self.judge_finalizer(name);
    }

    fn judge_finalizer(&mut self, name: &ObjectName) {
        if name.kind == Kind::GatewayClass
            && self.is_active()
            && self.objects.get(name).is_some_and(Entry::needs_finalizer)
        {
            self.queue.push_gently(Job::Finalizer(name.clone()));
        }
    }

    pub(super) fn needs_status(&self, name: &ObjectName) -> bool {
        self.objects
            .get(name)
            .is_some_and(|entry| entry.needs_status(name.kind))
    }

    /// The uid of an object that exists.
    pub(super) fn uid(&self, name: &ObjectName) -> Option<&str> {
        self.objects.get(name)?.seen.as_ref().map(|seen| &*seen.uid)
    }

    pub(super) fn count_write(&mut self, kind: &'static str, what: &'static str) {
        *self.counters.writes.entry((kind, what)).or_default() += 1;
    }
}
