//! What is to be done, each thing once, the important first.
//!
//! A job names an object, never a value: what to write is looked up when its turn comes, so that the newest wish wins and a
//! wish that was taken back costs nothing.

use std::collections::{BTreeMap, VecDeque};

use ahash::AHashMap;
use gatewright_api::ObjectName;
use tokio::time::Instant;

use super::OwnedName;

/// Something to do about one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Job {
    /// Write its status.
    Status(ObjectName),
    /// Add or remove our finalizer.
    Finalizer(ObjectName),
    /// Create, correct or delete it.
    Owned(OwnedName),
}

#[derive(Debug)]
enum Place {
    Ready,
    Delayed(Instant, u64),
    Running { again: bool },
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    places: AHashMap<Job, Place>,
    /// Gateways, classes and owned objects: few, and routes wait for them.
    urgent: VecDeque<Job>,
    routine: VecDeque<Job>,
    delayed: BTreeMap<(Instant, u64), Job>,
    /// Makes keys of jobs with the same time different.
    count: u64,
    running: usize,
}

impl Queue {
    /// Has this done as soon as possible. A job that waits after a failure is not held back any more.
    pub(super) fn push(&mut self, job: Job) {
        match self.places.get_mut(&job) {
            Some(Place::Ready) => {}
            Some(Place::Running { again }) => *again = true,
            Some(Place::Delayed(at, count)) => {
                let key = (*at, *count);
                self.delayed.remove(&key);
                self.ready(job);
            }
            None => self.ready(job),
        }
    }

    /// Has this done unless it is waiting already.
    pub(super) fn push_gently(&mut self, job: Job) {
        if !matches!(self.places.get(&job), Some(Place::Delayed(..))) {
            self.push(job);
        }
    }

    /// Has this done not before `at`.
    fn push_at(&mut self, job: Job, at: Instant) {
        self.count += 1;
        self.places.insert(job.clone(), Place::Delayed(at, self.count));
        self.delayed.insert((at, self.count), job);
    }

    fn ready(&mut self, job: Job) {
        self.places.insert(job.clone(), Place::Ready);
        match &job {
            Job::Status(name) if name.kind.shared_status().is_some() => self.routine.push_back(job),
            _ => self.urgent.push_back(job),
        }
    }

    /// The next job whose time has come; it is running until [`done`](Self::done).
    pub(super) fn pop(&mut self, now: Instant) -> Option<Job> {
        while let Some(first) = self.delayed.first_entry()
            && first.key().0 <= now
        {
            let job = first.remove();
            self.ready(job);
        }
        let job = self.urgent.pop_front().or_else(|| self.routine.pop_front())?;
        self.places.insert(job.clone(), Place::Running { again: false });
        self.running += 1;
        Some(job)
    }

    /// A job that was popped is not done now after all; it is the next one.
    pub(super) fn put_back(&mut self, job: Job) {
        self.running = self.running.saturating_sub(1);
        self.places.insert(job.clone(), Place::Ready);
        self.urgent.push_front(job);
    }

    /// When the next delayed job is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    /// A running job has ended; it is tried again at `retry`, or at once if it was pushed meanwhile.
    pub(super) fn done(&mut self, job: Job, retry: Option<Instant>) {
        self.running = self.running.saturating_sub(1);
        match (self.places.remove(&job), retry) {
            (Some(Place::Running { again: true }), _) => self.ready(job),
            (_, Some(at)) => self.push_at(job, at),
            (_, None) => {}
        }
    }

    /// Forgets everything that is not running.
    pub(super) fn clear(&mut self) {
        self.urgent.clear();
        self.routine.clear();
        self.delayed.clear();
        self.places.retain(|_, place| {
            if let Place::Running { again } = place {
                *again = false;
            }
            matches!(place, Place::Running { .. })
        });
    }

    /// Whether a job is waiting or running.
    pub(super) fn has(&self, job: &Job) -> bool {
        self.places.contains_key(job)
    }

    pub(super) fn is_settled(&self) -> bool {
        self.running == 0 && self.urgent.is_empty() && self.routine.is_empty()
    }

    /// How many wait, and how many are running.
    pub(super) fn len(&self) -> (usize, usize) {
        (
            self.urgent.len() + self.routine.len() + self.delayed.len(),
            self.running,
        )
    }
}

#[cfg(test)]
mod tests;
