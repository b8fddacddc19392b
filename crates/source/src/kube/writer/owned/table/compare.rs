//! What the regular comparison asks about objects we make.

use std::cmp::Ordering;

use super::{Entry, OwnedKind, OwnedName, Step, Wish};
use crate::kube::{
    Cluster,
    observed::age,
    raw::Raw,
    writer::{queue::Job, state::State},
};

impl State {
    /// All that are known of a kind, or wanted.
    pub(in crate::kube::writer) fn owned_of(&self, kind: OwnedKind) -> impl Iterator<Item = &OwnedName> {
        self.owned.entries.keys().filter(move |name| name.kind == kind)
    }

    /// Whether a list shows what the watch has not told.
    pub(in crate::kube::writer) fn owned_is_behind(&self, name: &OwnedName, listed: Option<&Raw>) -> bool {
        let seen = self.owned.entries.get(name).and_then(|entry| entry.seen.as_ref());
        match (seen, listed) {
            (Some(seen), Some(listed)) => {
                *seen.uid != *listed.uid()
                    || age(&seen.resource_version, listed.resource_version()) == Some(Ordering::Less)
            }
            (seen, listed) => seen.is_some() != listed.is_some(),
        }
    }

    /// Whether an object is not as wanted, and nobody is about to do something about it.
    pub(in crate::kube::writer) fn owned_is_amiss(
        &mut self,
        name: &OwnedName,
        cluster: &Cluster,
        controller: &str,
    ) -> bool {
        if !self.is_active() || !self.owned.is_listed(name) || self.queue.has(&Job::Owned(name.clone())) {
            return false;
        }
        let wish = self.owned_wish(name, cluster, controller);
        let Some(entry) = self.owned.entries.get_mut(name) else {
            return false;
        };
        let Entry { seen, made, .. } = entry;
        match wish {
            Wish::Gone => !matches!(entry.deletion(controller), Step::Nothing),
            Wish::Untouched | Wish::Waiting => false,
            Wish::Object { full, .. } => seen.as_mut().is_none_or(|seen| !seen.is_as_wanted(&full, *made)),
        }
    }

    /// What a list showed, where the watch is behind.
    pub(in crate::kube::writer) fn owned_catch_up(&mut self, name: &OwnedName, listed: Option<Raw>) {
        match listed {
            Some(raw) => {
                self.owned_seen(name.clone(), raw);
                self.judge_owned(Job::Owned(name.clone()));
            }
            None => self.owned_gone(name),
        }
    }
}

#[cfg(test)]
mod tests;
