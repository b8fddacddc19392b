//! The handle to the data plane: starts workers, gives them sockets and tables, and reports what became of listeners.
//!
//! Runs on whatever runtime the caller uses, never on the workers' own. All changes go through one lock, so that gateways
//! are applied one set after the other.

mod addresses;
mod applied;
mod limits;
mod names;

use std::{
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use gatewright_ir::{Fact, Gateway, Origin};
use imbl::OrdMap;
use tokio::{
    runtime::Handle,
    sync::{Mutex, mpsc},
};

use self::applied::Applied;
use crate::{
    dns::Resolver,
    metrics::{Metrics, merge},
    worker::{Command, WorkerHandle},
};

/// How often addresses that could not be opened are tried again.
const TEND_EVERY: Duration = Duration::from_secs(1);

/// How the data plane runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// How many threads carry traffic; 0 means one per processor core.
    pub workers: usize,
}

/// Why the data plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The system gives no more threads or descriptors.
    #[error("cannot start a proxy worker; look at the limits on threads and open files: {0}")]
    Worker(#[source] io::Error),
    /// Called from outside of a runtime.
    #[error("the proxy must be started on a tokio runtime")]
    NoRuntime,
}

/// The running data plane.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    workers: Arc<Vec<WorkerHandle>>,
}

#[derive(Debug)]
struct Shared {
    applied: Mutex<Applied>,
}

impl Proxy {
    /// Starts the worker threads. Facts arrive on the receiver.
    ///
    /// Must be called on a tokio runtime, which then also resolves the names of backends.
    pub fn start(settings: ProxySettings) -> Result<(Self, mpsc::UnboundedReceiver<Fact>), ProxyError> {
        let ProxySettings { workers } = settings;
        let runtime = Handle::try_current().map_err(|_| ProxyError::NoRuntime)?;
        limits::raise_open_files();
        let count = match workers {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            count => count,
        };
        let workers = (0..count)
            .map(WorkerHandle::start)
            .collect::<io::Result<Vec<_>>>()
            .map_err(ProxyError::Worker)?;
        let workers = Arc::new(workers);
        let (facts, receiver) = mpsc::unbounded_channel();
        let resolver = Resolver::new(runtime.clone());
        let shared = Arc::new(Shared {
            applied: Mutex::new(Applied::new(Arc::clone(&workers), resolver, facts)),
        });
        runtime.spawn(tend(Arc::downgrade(&shared)));
        Ok((Self { shared, workers }, receiver))
    }

    /// Makes traffic follow these gateways: opens, changes and closes listeners, and swaps routing tables.
    ///
    /// Costs what changed since the last call. Returns when every worker has the sockets and the tables; facts are sent
    /// for listeners whose state or whose gateway's generation changed. An address that cannot be opened is tried again
    /// until it can, or until it is no longer wanted.
    pub async fn apply(&self, gateways: OrdMap<Origin, Arc<Gateway>>) {
        self.shared.applied.lock().await.apply(gateways).await;
    }

    /// What was counted since the start, over all workers.
    pub fn metrics(&self) -> Metrics {
        merge(self.workers.iter().map(|worker| &worker.metrics))
    }

    /// Asks clients to go elsewhere: responses end their connections, HTTP/2 clients are told to open another. Everything
    /// that still comes is served, so that a change of whoever sends connections here costs no request.
    pub fn leave(&self) {
        for worker in self.workers.iter() {
            worker.send(Command::Leave);
        }
    }

    /// Stops accepting, lets open connections finish for as long as `grace` allows, and ends.
    pub async fn shutdown(self, grace: Duration) {
        let Self { shared, workers } = self;
        for worker in workers.iter() {
            worker.send(Command::Stop { grace });
        }
        // Waits for a change under way, and keeps the tending task from beginning another.
        let mut applied = shared.applied.lock().await;
        applied.forget_workers();
        drop(applied);
        drop(shared);
        let join = move || {
            for worker in Arc::into_inner(workers).into_iter().flatten() {
                worker.join();
            }
        };
        // The task cannot fail: joining does not panic, and nobody aborts it.
        _ = tokio::task::spawn_blocking(join).await;
    }
}

/// Looks after what was applied, for as long as the proxy lives.
async fn tend(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(TEND_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.applied.lock().await.tend().await;
    }
}

#[cfg(test)]
mod tests;
