//! What is to be told about the other replicas, the newest only.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use gatewright_world::Replica;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    inside: Mutex<Inside>,
    is_news: Notify,
}

#[derive(Debug, Default)]
struct Inside {
    waiting: BTreeMap<String, Option<Replica>>,
    /// Those that whoever listens knows.
    told: BTreeSet<String>,
    is_closed: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        // No code that holds the lock can panic half-way through a change.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a replica says now; nothing when it is gone.
    pub(super) fn put(&self, identity: &str, replica: Option<Replica>) {
        let mut inside = self.lock();
        if replica.is_none() && !inside.told.contains(identity) {
            // It came and went before anyone looked.
            inside.waiting.remove(identity);
            return;
        }
        inside.waiting.insert(identity.to_owned(), replica);
        drop(inside);
        self.is_news.notify_one();
    }

    /// Nothing more will be put.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.is_news.notify_one();
    }

    /// Everything that is new, as soon as there is something; nothing when it is closed.
    pub(super) async fn next(&self) -> Option<Vec<(String, Option<Replica>)>> {
        loop {
            {
                let mut inside = self.lock();
                let waiting = std::mem::take(&mut inside.waiting);
                for (identity, replica) in &waiting {
                    if replica.is_some() {
                        inside.told.insert(identity.clone());
                    } else {
                        inside.told.remove(identity);
                    }
                }
                if !waiting.is_empty() {
                    return Some(waiting.into_iter().collect());
                }
                if inside.is_closed {
                    return None;
                }
            }
            self.is_news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests;
