//! A port of an address that is listened on: what all workers share about it, and what each keeps for itself.
//!
//! The routing table is swapped in from outside. A worker takes it over when the next request comes, into a [`Held`] of
//! its own, so that requests count references on their own thread only.

use std::{
    cell::{Cell, RefCell},
    fmt,
    net::SocketAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use arc_swap::{ArcSwap, Cache};
use gatewright_ir::Transport;
use tokio::task::AbortHandle;

use super::{Worker, timer::Nudge};
use crate::{
    forward::{Held, Table},
    metrics::BindCounters,
};

/// What is listened on. The same number is another port in another transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BindAddress {
    /// The address with the port.
    pub(crate) socket: SocketAddr,
    /// What carries the traffic.
    pub(crate) transport: Transport,
}

impl BindAddress {
    /// An address for connections.
    #[cfg(test)]
    pub(crate) fn tcp(socket: SocketAddr) -> Self {
        Self {
            socket,
            transport: Transport::Tcp,
        }
    }
}

impl fmt::Display for BindAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transport {
            Transport::Tcp => write!(out, "{}", self.socket),
            Transport::Udp => write!(out, "{}/udp", self.socket),
        }
    }
}

/// What all workers share about an address and port.
#[derive(Debug)]
pub(crate) struct Bind {
    /// The address that is listened on.
    pub(crate) address: BindAddress,
    /// What happens to requests.
    pub(crate) table: Arc<ArcSwap<Table>>,
    /// Open connections over all workers.
    connections: AtomicU32,
}

impl Bind {
    /// A bind that nobody listens on yet.
    pub(crate) fn new(address: BindAddress, table: Arc<Table>) -> Arc<Self> {
        Arc::new(Self {
            address,
            table: Arc::new(ArcSwap::new(table)),
            connections: AtomicU32::new(0),
        })
    }
}

/// What one worker keeps about an address and port.
#[derive(Debug)]
pub(crate) struct LocalBind {
    pub(crate) shared: Arc<Bind>,
    pub(crate) counters: Arc<BindCounters>,
    cache: RefCell<Cache<Arc<ArcSwap<Table>>, Arc<Table>>>,
    held: RefCell<Rc<Held>>,
    stage: Cell<Stage>,
    open: RefCell<Vec<Option<Open>>>,
    free: RefCell<Vec<usize>>,
}

/// How far a bind is on its way to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    Leaving,
    Draining,
}

/// A connection that is open.
#[derive(Debug)]
struct Open {
    nudge: Nudge,
    task: Option<AbortHandle>,
}

impl LocalBind {
    /// Prepares a worker's part.
    pub(crate) fn new(shared: Arc<Bind>, worker: &Worker) -> Rc<Self> {
        let mut cache = Cache::new(Arc::clone(&shared.table));
        let held = Rc::new(Held::new(Arc::clone(cache.load())));
        Rc::new(Self {
            counters: worker.metrics.bind(shared.address),
            cache: RefCell::new(cache),
            held: RefCell::new(held),
            stage: Cell::new(Stage::Serving),
            open: RefCell::default(),
            free: RefCell::default(),
            shared,
        })
    }

    /// The routing table as it is now.
    pub(crate) fn current(&self) -> Rc<Held> {
        let mut cache = self.cache.borrow_mut();
        let table = cache.load();
        let mut held = self.held.borrow_mut();
        if !Arc::ptr_eq(table, &held.table) {
            *held = Rc::new(Held::new(Arc::clone(table)));
        }
        Rc::clone(&held)
    }

    /// Whether connections are to end with the next response, or when their client agrees.
    pub(crate) fn is_leaving(&self) -> bool {
        self.stage.get() >= Stage::Leaving
    }

    /// Whether connections that wait for a request are to end now.
    pub(crate) fn is_draining(&self) -> bool {
        self.stage.get() >= Stage::Draining
    }

    /// Asks clients to go elsewhere, without ending a connection on which a request may be under way to us.
    pub(crate) fn leave(&self) {
        self.enter(Stage::Leaving);
    }

    /// Lets connections go: those that wait for a request end now, the others after their response.
    pub(crate) fn drain(&self) {
        self.enter(Stage::Draining);
    }

    fn enter(&self, stage: Stage) {
        self.stage.set(self.stage.get().max(stage));
        for open in self.open.borrow().iter().flatten() {
            open.nudge.wake();
        }
    }

    /// Ends all connections at once.
    pub(crate) fn abort(&self) {
        for open in self.open.borrow().iter().flatten() {
            if let Some(task) = &open.task {
                task.abort();
            }
        }
    }

    /// Whether no connection is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.borrow().len() == self.open.borrow().len()
    }

    /// Counts a new connection in, unless there are too many.
    pub(crate) fn admit(self: &Rc<Self>, nudge: Nudge, most: u32) -> Option<BoundConnection> {
        if self.shared.connections.fetch_add(1, Relaxed) >= most {
            self.shared.connections.fetch_sub(1, Relaxed);
            self.counters.refused.add(1);
            return None;
        }
        self.counters.accepted.add(1);
        let mut open = self.open.borrow_mut();
        let entry = Some(Open { nudge, task: None });
        let place = self.free.borrow_mut().pop().unwrap_or(open.len());
        match open.get_mut(place) {
            Some(free) => *free = entry,
            None => open.push(entry),
        }
        Some(BoundConnection {
            bind: Rc::clone(self),
            place,
        })
    }

    /// Remembers how to end a connection.
    pub(crate) fn started(&self, place: usize, task: AbortHandle) {
        if let Some(Some(open)) = self.open.borrow_mut().get_mut(place) {
            open.task = Some(task);
        }
    }
}

/// A connection's membership in its bind; dropping it counts the connection out.
#[derive(Debug)]
pub(crate) struct BoundConnection {
    pub(crate) bind: Rc<LocalBind>,
    /// The connection's place among the open ones.
    pub(crate) place: usize,
}

impl Drop for BoundConnection {
    fn drop(&mut self) {
        self.bind.shared.connections.fetch_sub(1, Relaxed);
        self.bind.counters.closed.add(1);
        if let Some(place) = self.bind.open.borrow_mut().get_mut(self.place) {
            *place = None;
        }
        self.bind.free.borrow_mut().push(self.place);
    }
}
