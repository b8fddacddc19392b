//! What one watch has already said about its objects, so that it says only what is different.
//!
//! Keeps a fingerprint per object and no object. A list is compared with it: what has vanished meanwhile is deleted, what
//! is as it was is not said again.

use std::sync::Arc;

use ahash::AHashMap;
use gatewright_api::{Kind, ObjectName};

use super::super::{convert, gather::Message};
use crate::{
    Change,
    kube::{
        observed::{Observed, Seen},
        raw::Raw,
    },
};

pub(super) struct Known {
    kind: Kind,
    controller: Arc<str>,
    /// By namespace and name.
    entries: AHashMap<(Box<str>, Box<str>), Entry>,
    /// Which list is being read, or was read last.
    list: u32,
    invalid: usize,
}

struct Entry {
    content: u64,
    resource_version: Box<str>,
    /// The list in which it was seen last.
    list: u32,
    is_invalid: bool,
}

impl Known {
    pub(super) fn new(kind: Kind, controller: Arc<str>) -> Self {
        Self {
            kind,
            controller,
            entries: AHashMap::new(),
            list: 0,
            invalid: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many objects there are, and how many of them cannot be read.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.entries.len(), self.invalid)
    }

    pub(super) fn begin_list(&mut self) {
        self.list = self.list.wrapping_add(1);
    }

    /// What was not in the list that just ended.
    pub(super) fn end_list(&mut self) -> Vec<Message> {
        let Self {
            kind,
            entries,
            list,
            invalid,
            ..
        } = self;
        let mut gone = Vec::new();
        entries.retain(|(namespace, name), entry| {
            let is_there = entry.list == *list;
            if !is_there {
                *invalid -= usize::from(entry.is_invalid);
                gone.push(deletion(ObjectName {
                    kind: *kind,
                    namespace: namespace.to_string(),
                    name: name.to_string(),
                }));
            }
            is_there
        });
        gone
    }

    /// What is to be said about an object that exists.
    pub(super) fn apply(&mut self, mut raw: Raw) -> Option<Message> {
        let key = (raw.namespace().into(), raw.name().into());
        let before = self.entries.get_mut(&key);
        if let Some(entry) = before
            && *entry.resource_version == *raw.resource_version()
        {
            entry.list = self.list;
            return None;
        }
        convert::reduce(self.kind, &mut raw);
        let is_observed = self.kind.has_status();
        let observed = is_observed.then(|| Observed {
            name: convert::name(self.kind, &raw),
            seen: Some(Seen::of(self.kind, &raw, &self.controller)),
        });
        // The status of these kinds is written by us and read by nobody else here.
        let content = raw.content(!is_observed);
        let resource_version = raw.resource_version().into();
        let before = self.entries.get(&key);
        let was_invalid = before.is_some_and(|entry| entry.is_invalid);
        let is_same = before.is_some_and(|entry| entry.content == content);
        let change = (!is_same).then(|| convert::convert(self.kind, raw));
        let is_invalid = match &change {
            None => was_invalid,
            Some(change) => matches!(change, Change::Invalid { .. }),
        };
        self.invalid = self.invalid + usize::from(is_invalid) - usize::from(was_invalid);
        let list = self.list;
        self.entries.insert(
            key,
            Entry {
                content,
                resource_version,
                list,
                is_invalid,
            },
        );
        (change.is_some() || observed.is_some()).then_some(Message::Changed { change, observed })
    }

    /// What is to be said about an object that is gone.
    pub(super) fn delete(&mut self, raw: &Raw) -> Option<Message> {
        let entry = self.entries.remove(&(raw.namespace().into(), raw.name().into()))?;
        self.invalid -= usize::from(entry.is_invalid);
        Some(deletion(convert::name(self.kind, raw)))
    }
}

fn deletion(name: ObjectName) -> Message {
    let observed = name.kind.has_status().then(|| Observed {
        name: name.clone(),
        seen: None,
    });
    Message::Changed {
        change: Some(Change::Delete(name)),
        observed,
    }
}

#[cfg(test)]
mod tests;
