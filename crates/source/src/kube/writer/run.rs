//! The task that does the jobs: a bounded number at a time, at a bounded rate, none while the server is in trouble.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::Instant,
};

use super::{
    OwnedConflict, WriterSettings,
    bucket::Bucket,
    finalizer,
    jobs::Trouble,
    owned,
    queue::Job,
    state::{Failure, State},
    status,
};
use crate::kube::{Cluster, backoff};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// What the handle and the tasks share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) cluster: Cluster,
    pub(super) settings: WriterSettings,
    state: Mutex<State>,
    /// There may be something to do.
    work: Notify,
    /// There may be an Event to publish.
    pub(super) events: Notify,
    pub(super) settled: watch::Sender<bool>,
    pub(super) conflicts: watch::Sender<Arc<Vec<OwnedConflict>>>,
}

impl Shared {
    pub(super) fn new(cluster: Cluster, settings: WriterSettings) -> Self {
        Self {
            cluster,
            settings,
            state: Mutex::default(),
            work: Notify::new(),
            events: Notify::new(),
            settled: watch::Sender::new(true),
            conflicts: watch::Sender::new(Arc::default()),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the state and has a look taken at the queue.
    pub(super) fn wake(&self, state: MutexGuard<'_, State>) {
        let is_settled = state.queue.is_settled();
        self.settled.send_if_modified(|known| {
            let is_news = *known != is_settled;
            *known = is_settled;
            is_news
        });
        drop(state);
        self.work.notify_one();
    }
}

/// Runs for as long as the writer exists.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut running: JoinSet<()> = JoinSet::new();
    let mut bucket = Bucket::new(shared.settings.rate, shared.settings.burst);
    loop {
        let now = Instant::now();
        let until = match next(&shared, running.len(), now, &mut bucket) {
            Next::Job(job) => {
                running.spawn(perform(shared.clone(), job));
                continue;
            }
            Next::At(until) => until,
        };
        tokio::select! {
            () = shared.work.notified() => {}
            Some(_) = running.join_next() => {}
            () = sleep_until(until) => {}
        }
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

enum Next {
    Job(Job),
    /// Nothing now; look again then.
    At(Option<Instant>),
}

fn next(shared: &Shared, running: usize, now: Instant, bucket: &mut Bucket) -> Next {
    let mut state = shared.lock();
    if !state.is_active() || running >= shared.settings.in_flight {
        return Next::At(None);
    }
    if let Some(pause) = state.pause {
        if pause > now {
            return Next::At(Some(pause));
        }
        state.pause = None;
    }
    let Some(job) = state.queue.pop(now) else {
        return Next::At(state.queue.next_due());
    };
    match bucket.take(now) {
        Ok(()) => Next::Job(job),
        Err(wait) => {
            state.queue.put_back(job);
            Next::At(Some(now + wait))
        }
    }
}

async fn perform(shared: Arc<Shared>, job: Job) {
    let result = match &job {
        Job::Status(name) => status::write(&shared, name).await,
        Job::Finalizer(name) => finalizer::write(&shared, name).await,
        Job::Owned(name) => owned::write(&shared, name).await,
    };
    let mut state = shared.lock();
    let retry = match result {
        Ok(()) => {
            state.failures.remove(&job);
            state.troubles = 0;
            None
        }
        Err(trouble) => Some(note(&mut state, &job, &trouble)),
    };
    let retry = if state.is_active() { retry } else { None };
    state.queue.done(job, retry);
    shared.wake(state);
}

/// Takes note of a failure and says when to try again.
fn note(state: &mut State, job: &Job, trouble: &Trouble) -> Instant {
    let Trouble {
        reason,
        message,
        is_of_the_server,
        wait,
        longest,
    } = trouble;
    let now = Instant::now();
    *state.counters.failures.entry((job.kind(), reason.clone())).or_default() += 1;
    if *is_of_the_server {
        let pause = backoff::delay(FIRST_PAUSE, LONGEST_PAUSE, state.troubles).max(wait.unwrap_or_default());
        state.troubles = state.troubles.saturating_add(1);
        if state.pause.is_none_or(|known| known < now + pause) {
            state.pause = Some(now + pause);
        }
        tracing::debug!(
            object = job.object(),
            reason,
            message,
            ?pause,
            "the API server is in trouble; writing pauses"
        );
        return now + pause;
    }
    let failure = state.failures.entry(job.clone()).or_insert_with(|| Failure {
        attempts: 0,
        reason: String::new(),
        message: String::new(),
        since: Timestamp::now(),
    });
    if failure.reason != *reason {
        tracing::warn!(
            object = job.object(),
            action = job.action(),
            reason,
            message,
            "cannot be written; tried again later"
        );
    }
    failure.reason.clone_from(reason);
    failure.message.clone_from(message);
    let delay = backoff::delay(FIRST_WAIT, *longest, failure.attempts);
    failure.attempts = failure.attempts.saturating_add(1);
    now + delay.max(wait.unwrap_or_default())
}
