//! Gathers what the watches of all kinds say into batches.
//!
//! An idle consumer gets a change at once; while it is busy, changes gather, up to a limit at which the watches wait.

use std::collections::BTreeMap;

use tokio::sync::mpsc;

use super::Batch;
use crate::{Change, kube::observed::Observed};

/// So many changes are in one batch at most: they are whole objects, and there may be a hundred thousand.
const MOST: usize = 2048;

/// What the watch of one kind says.
#[derive(Debug)]
pub(super) enum Message {
    /// Something changed.
    Changed {
        change: Option<Change>,
        observed: Option<Observed>,
    },
    /// The definitions of Gateway API are these now.
    Defined(BTreeMap<String, Option<String>>),
    /// Everything has been listed once. Each watch says this once.
    Listed,
    /// Instead of this watch there are now so many.
    Split(usize),
}

/// Runs until nobody speaks or nobody listens.
pub(super) async fn gather(mut messages: mpsc::Receiver<Message>, batches: mpsc::Sender<Batch>, waiting: usize) {
    let mut gathered = Gathered {
        batch: Batch::default(),
        waiting,
        is_due: false,
    };
    loop {
        if !gathered.is_due {
            match messages.recv().await {
                Some(message) => gathered.take(message),
                None => return,
            }
        }
        while gathered.has_room()
            && let Ok(message) = messages.try_recv()
        {
            gathered.take(message);
        }
        if !gathered.is_due {
            continue;
        }
        tokio::select! {
            biased;
            Some(message) = messages.recv(), if gathered.has_room() => gathered.take(message),
            permit = batches.reserve() => match permit {
                Ok(permit) => permit.send(gathered.next()),
                Err(_) => return,
            },
        }
    }
}

struct Gathered {
    batch: Batch,
    /// How many watches have not listed yet.
    waiting: usize,
    /// Whether the batch is worth sending.
    is_due: bool,
}

impl Gathered {
    fn has_room(&self) -> bool {
        self.batch.changes.len().max(self.batch.observed.len()) < MOST
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Changed { change, observed } => {
                self.batch.changes.extend(change);
                self.batch.observed.extend(observed);
                self.is_due = true;
            }
            Message::Defined(definitions) => {
                self.batch.definitions = Some(definitions);
                self.is_due = true;
            }
            Message::Listed => self.waiting = self.waiting.saturating_sub(1),
            Message::Split(count) => self.waiting = (self.waiting + count).saturating_sub(1),
        }
        if self.waiting == 0 && !self.batch.is_synced {
            self.batch.is_synced = true;
            self.is_due = true;
        }
    }

    fn next(&mut self) -> Batch {
        self.is_due = false;
        let next = Batch {
            is_synced: self.batch.is_synced,
            ..Batch::default()
        };
        std::mem::replace(&mut self.batch, next)
    }
}
