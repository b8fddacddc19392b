//! One worker thread: starts it, carries out commands, sweeps what has expired, and ends it.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    runtime::LocalOptions,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{
    accept,
    bind::{Bind, LocalBind},
    buffer::Stock,
    command::{Command, Socket},
    timer::{Deadline, Wheel},
};
use crate::{datagram, metrics::WorkerMetrics, stream::Pipes, upstream::Registry};

/// How often unused upstream connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// What every connection of a worker can reach.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) stock: Stock,
    pub(crate) pipes: Pipes,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) endpoints: Registry,
    /// Copies for mirrors that are under way.
    pub(crate) copies: Cell<u32>,
    /// Bytes of bodies that are remembered.
    pub(crate) remembered: Cell<usize>,
    wheel: Rc<Wheel>,
    recent: Cell<Instant>,
}

impl Worker {
    pub(crate) fn new(metrics: Arc<WorkerMetrics>) -> Rc<Self> {
        Rc::new(Self {
            stock: Stock::default(),
            pipes: Pipes::default(),
            metrics,
            endpoints: Registry::default(),
            copies: Cell::new(0),
            remembered: Cell::new(0),
            wheel: Wheel::new(),
            recent: Cell::new(Instant::now()),
        })
    }

    /// Reads the clock.
    pub(crate) fn tick(&self) -> Instant {
        let now = Instant::now();
        self.recent.set(now);
        now
    }

    /// When the clock was read last: never in the future, and while requests are served never long ago.
    pub(crate) fn recent(&self) -> Instant {
        self.recent.get()
    }

    /// A deadline of this worker's.
    pub(crate) fn deadline(&self) -> Deadline {
        self.wheel.deadline()
    }
}

/// A running worker, as the rest of the process sees it.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    commands: mpsc::UnboundedSender<Command>,
    pub(crate) metrics: Arc<WorkerMetrics>,
    thread: std::thread::JoinHandle<()>,
}

impl WorkerHandle {
    /// Starts a worker.
    pub(crate) fn start(index: usize) -> io::Result<Self> {
        let (commands, inbox) = mpsc::unbounded_channel();
        let metrics = Arc::new(WorkerMetrics::default());
        let counted = Arc::clone(&metrics);
        let (ready, started) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("proxy-{index}"))
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_io()
                    .enable_time()
                    .build_local(LocalOptions::default());
                match runtime {
                    Ok(runtime) => {
                        // The one who waits is `start` below, which does not go away before it has an answer.
                        _ = ready.send(Ok(()));
                        let worker = Worker::new(counted);
                        runtime.block_on(run(Rc::clone(&worker), inbox));
                        // What is still under way ends with the runtime, and may leave connections behind.
                        drop(runtime);
                        worker.endpoints.clear();
                    }
                    Err(error) => _ = ready.send(Err(error)),
                }
            })?;
        match started.recv() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(io::Error::other("the worker thread ended at once")),
        }
        Ok(Self {
            commands,
            metrics,
            thread,
        })
    }

    /// Gives an order. A worker that has ended takes none.
    pub(crate) fn send(&self, command: Command) {
        _ = self.commands.send(command);
    }

    /// Waits for the end of the thread. Blocks.
    pub(crate) fn join(self) {
        drop(self.commands);
        // A worker that panicked has already said so on its own thread.
        _ = self.thread.join();
    }
}

/// The sockets that a worker accepts on, and those whose last connections are still open.
#[derive(Default)]
struct Binds {
    listening: Vec<Listening>,
    draining: Vec<Rc<LocalBind>>,
    is_leaving: bool,
}

struct Listening {
    bind: Rc<LocalBind>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn run(worker: Rc<Worker>, mut inbox: mpsc::UnboundedReceiver<Command>) {
    tokio::task::spawn_local(Rc::clone(&worker.wheel).run());
    let binds = Rc::new(RefCell::new(Binds::default()));
    tokio::task::spawn_local(sweep(Rc::clone(&worker), Rc::clone(&binds)));
    while let Some(command) = inbox.recv().await {
        match command {
            Command::Listen { bind, socket, done } => {
                match listen(&worker, bind, socket) {
                    Ok(listening) => {
                        let mut binds = binds.borrow_mut();
                        if binds.is_leaving {
                            listening.bind.leave();
                        }
                        binds.listening.push(listening);
                    }
                    Err(error) => tracing::error!(%error, "a listening socket cannot be watched"),
                }
                _ = done.send(());
            }
            Command::Close { bind, drain, done } => {
                let removed = {
                    let mut binds = binds.borrow_mut();
                    let place = binds
                        .listening
                        .iter()
                        .position(|one| Arc::ptr_eq(&one.bind.shared, &bind));
                    place.map(|place| binds.listening.swap_remove(place))
                };
                if let Some(listening) = removed {
                    let bind = listening.close().await;
                    binds.borrow_mut().draining.push(Rc::clone(&bind));
                    tokio::task::spawn_local(force(bind, drain));
                }
                _ = done.send(());
            }
            Command::Leave => {
                let mut binds = binds.borrow_mut();
                binds.is_leaving = true;
                for listening in &binds.listening {
                    listening.bind.leave();
                }
            }
            Command::Stop { grace } => {
                stop(&binds, grace).await;
                return;
            }
        }
    }
}

fn listen(worker: &Rc<Worker>, bind: Arc<Bind>, socket: Socket) -> io::Result<Listening> {
    let bind = LocalBind::new(bind, worker);
    let (stop, stopped) = oneshot::channel();
    let (worker, local) = (Rc::clone(worker), Rc::clone(&bind));
    let task = match socket {
        Socket::Tcp(socket) => {
            let socket = tokio::net::TcpListener::from_std(socket)?;
            tokio::task::spawn_local(accept::run(worker, local, socket, stopped))
        }
        Socket::Udp(socket) => {
            let socket = tokio::net::UdpSocket::from_std(socket)?;
            tokio::task::spawn_local(datagram::run(worker, local, socket, stopped))
        }
    };
    Ok(Listening { bind, stop, task })
}

impl Listening {
    /// Closes the socket and lets connections go.
    async fn close(self) -> Rc<LocalBind> {
        let Self { bind, stop, task } = self;
        // It ends only when it is told to, and does not panic.
        _ = stop.send(());
        _ = task.await;
        bind.drain();
        bind
    }
}

/// Ends what is still open when the time is over.
async fn force(bind: Rc<LocalBind>, after: Duration) {
    tokio::time::sleep(after).await;
    bind.abort();
}

async fn sweep(worker: Rc<Worker>, binds: Rc<RefCell<Binds>>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let mut binds = binds.borrow_mut();
        binds.draining.retain(|bind| !bind.is_empty());
        for listening in &binds.listening {
            // Lets go of an outdated table even when no request comes.
            listening.bind.current();
        }
        worker.endpoints.sweep(Instant::now());
    }
}

/// Closes all sockets and waits for connections to end, but no longer than asked.
async fn stop(binds: &RefCell<Binds>, grace: Duration) {
    let Binds {
        listening,
        mut draining,
        is_leaving: _,
    } = std::mem::take(&mut *binds.borrow_mut());
    for listening in listening {
        draining.push(listening.close().await);
    }
    let deadline = Instant::now() + grace;
    while draining.iter().any(|bind| !bind.is_empty()) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
