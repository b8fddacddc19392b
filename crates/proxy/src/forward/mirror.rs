//! Copies of requests for mirrors: each a task of its own, which never holds the client's request up.
//!
//! What a mirror answers is read and dropped. A copy that cannot be sent, is too slow or too many at once is given up and
//! counted; the client never notices.

use std::{
    rc::Rc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::HeaderMap;

use super::{
    Ending, Forward, Job,
    aside::{Aside, Queue},
    attempt::run,
};
use crate::worker::Worker;

/// Most copies under way in one worker.
const MOST_COPIES: u32 = 256;
/// How long a copy may take in all.
const LONGEST: Duration = Duration::from_mins(1);

/// A copy that is to be sent.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) forward: Forward,
    /// The head in HTTP/1.1, if the mirror speaks that.
    pub(super) head: Vec<u8>,
}

/// The sending end of a copy's body. Dropped before its end, it breaks the copy off.
#[derive(Debug)]
pub(super) struct Feed(Rc<Queue>);

impl Feed {
    /// Adds bytes.
    pub(super) fn push(&self, bytes: &Bytes) {
        self.0.push(bytes);
    }

    /// Ends the body.
    pub(super) fn finish(self, trailers: Option<Box<HeaderMap>>) {
        self.0.finish(trailers);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.break_off();
    }
}

/// Counts a copy under way.
struct UnderWay(Rc<Worker>);

impl UnderWay {
    fn new(worker: &Rc<Worker>) -> Option<Self> {
        let copies = worker.copies.get();
        (copies < MOST_COPIES).then(|| {
            worker.copies.set(copies + 1);
            Self(Rc::clone(worker))
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.copies.set(self.0.copies.get() - 1);
    }
}

/// Starts a copy. If it has a body, that has to be fed to what this returns.
pub(super) fn start(worker: &Rc<Worker>, copied: Copied) -> Option<Feed> {
    let Some(under_way) = UnderWay::new(worker) else {
        worker.metrics.mirror_dropped();
        return None;
    };
    worker.metrics.mirrored();
    let queue = (!copied.forward.facts.body.is_empty()).then(Rc::<Queue>::default);
    let aside = Aside::copy(queue.clone());
    tokio::task::spawn_local(send(under_way, copied, aside));
    queue.map(Feed)
}

async fn send(under_way: UnderWay, copied: Copied, mut aside: Aside) {
    let worker = &under_way.0;
    let limit = worker.deadline();
    limit.set(Instant::now(), LONGEST);
    let deadline = worker.deadline();
    let job = Job::aside(worker, &deadline, &copied.forward, &copied.head);
    let report = limit.guard(Box::pin(run(&mut aside, job, None))).await;
    if !report.is_some_and(|report| matches!(report.ending, Ending::Complete)) {
        worker.metrics.mirror_dropped();
    }
}
