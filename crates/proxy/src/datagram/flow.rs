//! One client's datagrams: the backend that they go to, and the way back.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    rc::Rc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use ahash::AHashMap;
use gatewright_ir::Target;
use socket2::SockRef;
use tokio::net::UdpSocket;

use super::{
    ancillary,
    socket::{LONGEST, Sender, answer},
};
use crate::{
    forward::{Held, HeldListener, Reason, WholeRoute},
    metrics::OpenStream,
    stream::{Destination, Occupied},
    worker::{BoundConnection, Deadline, LocalBind, Worker},
};

/// How often it is looked whether the backend of a flow is still one.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What the flows of one socket share.
pub(super) struct Flows {
    pub(super) worker: Rc<Worker>,
    pub(super) bind: Rc<LocalBind>,
    pub(super) socket: UdpSocket,
    open: RefCell<AHashMap<Sender, Rc<Flow>>>,
    /// For answers, one at a time.
    buffer: RefCell<Vec<u8>>,
}

/// One client's datagrams.
struct Flow {
    sender: Sender,
    /// What makes answers come from the address that was asked.
    control: Vec<u8>,
    backend: UdpSocket,
    occupied: Occupied,
    target: Target,
    listener: Rc<HeldListener>,
    deadline: Deadline,
    patience: Duration,
    /// The table that names the backend, as far as was looked.
    table: Cell<usize>,
    checked: Cell<Instant>,
    _bound: BoundConnection,
    _counted: OpenStream,
}

impl Flows {
    pub(super) fn new(worker: Rc<Worker>, bind: Rc<LocalBind>, socket: UdpSocket) -> Rc<Self> {
        Rc::new(Self {
            worker,
            bind,
            socket,
            open: RefCell::default(),
            buffer: RefCell::new(vec![0; LONGEST]),
        })
    }

    /// Sends a datagram on its way.
    pub(super) fn handle(self: &Rc<Self>, sender: Sender, bytes: &[u8]) {
        let routing = self.bind.current();
        let now = self.worker.tick();
        let known = self.open.borrow().get(&sender).cloned();
        let mut avoid = None;
        if let Some(flow) = known {
            if flow.is_valid(&routing, &self.worker, now) {
                match flow.send(bytes, now) {
                    Ok(()) => return,
                    Err(error) if is_of_the_way(&error) => {
                        flow.lost(now);
                        avoid = Some(flow.occupied.endpoint().address);
                    }
                    Err(error) => return flow.dropped(&error),
                }
            }
            self.end(&flow);
        }
        let Some((listener, route)) = routing.whole(None, &self.worker) else {
            return;
        };
        if let Err(reason) = self.begin(sender, bytes, listener, &route, &routing, avoid) {
            listener.counters.streams.refused(reason);
        }
    }

    /// Gives a client a backend, and the backend its datagram.
    fn begin(
        self: &Rc<Self>,
        sender: Sender,
        bytes: &[u8],
        listener: &Rc<HeldListener>,
        route: &WholeRoute,
        routing: &Held,
        avoid: Option<SocketAddr>,
    ) -> Result<(), &'static str> {
        let worker = &self.worker;
        let WholeRoute::To(route) = route else {
            return Err(Reason::NoRoute.label());
        };
        let destination = Destination::next(route, routing, sender.client.ip(), worker).map_err(Reason::label)?;
        let endpoint = destination
            .choose(worker, avoid)
            .ok_or_else(|| Reason::NoEndpoints.label())?;
        let settings = &listener.listener.settings;
        let deadline = worker.deadline();
        let bound = self
            .bind
            .admit(deadline.nudge(), settings.max_connections)
            .ok_or("too_many_flows")?;
        let backend = match connect(endpoint.address) {
            Ok(backend) => backend,
            Err(error) => {
                tracing::debug!(address = %endpoint.address, %error, "cannot send to a backend");
                endpoint.note_unreachable(worker.recent());
                return Err(Reason::ConnectFailed.label());
            }
        };
        let place = bound.place;
        let flow = Rc::new(Flow {
            sender,
            control: sender.local.map(ancillary::write).unwrap_or_default(),
            backend,
            occupied: Occupied::new(endpoint),
            target: destination.target,
            listener: Rc::clone(listener),
            deadline,
            patience: settings.datagram_idle_timeout,
            table: Cell::new(address_of(routing)),
            checked: Cell::new(worker.recent()),
            _bound: bound,
            _counted: listener.counters.streams.open(),
        });
        if let Err(error) = flow.send(bytes, worker.recent()) {
            flow.dropped(&error);
        }
        self.open.borrow_mut().insert(sender, Rc::clone(&flow));
        let task = tokio::task::spawn_local(answers(Rc::clone(self), flow));
        self.bind.started(place, task.abort_handle());
        Ok(())
    }

    /// Forgets a flow, which then ends.
    fn end(&self, flow: &Rc<Flow>) {
        let mut open = self.open.borrow_mut();
        if open.get(&flow.sender).is_some_and(|known| Rc::ptr_eq(known, flow)) {
            open.remove(&flow.sender);
        }
        drop(open);
        flow.deadline.expire();
    }

    /// Forgets all flows.
    pub(super) fn clear(&self) {
        self.open.take();
        self.bind.abort();
    }
}

impl Flow {
    fn send(&self, bytes: &[u8], now: Instant) -> io::Result<()> {
        // Not through the runtime: it would first wait to hear that a new socket can be written to.
        let count = SockRef::from(&self.backend).send(bytes)?;
        self.listener.counters.received.add(count as u64);
        self.deadline.set(now, self.patience);
        Ok(())
    }

    /// Takes note that nobody was there for an earlier datagram.
    fn lost(&self, now: Instant) {
        self.occupied.endpoint().note_unreachable(now);
        self.listener.counters.streams.refused(Reason::ConnectFailed.label());
    }

    fn dropped(&self, error: &io::Error) {
        tracing::debug!(address = %self.occupied.endpoint().address, %error, "a datagram is dropped");
        self.listener.counters.streams.refused("backend_busy");
    }

    /// Whether its backend is still one that the client's datagrams may go to. Looked up when the table has changed, and
    /// once in a while, because the addresses of a name change without it.
    fn is_valid(&self, routing: &Held, worker: &Worker, now: Instant) -> bool {
        let is_known = self.table.get() == address_of(routing);
        if is_known && now.saturating_duration_since(self.checked.get()) < CHECK_EVERY {
            return true;
        }
        let Some((_, WholeRoute::To(route))) = routing.whole(None, worker) else {
            return false;
        };
        let has_it = |target: &Target| {
            let cluster = route.cluster(target, &routing.table, worker);
            let address = self.occupied.endpoint().address;
            cluster.is_ok_and(|cluster| cluster.at(&worker.endpoints, address).is_some())
        };
        let mut targets = route.rule.weighted().map(|(_, backend)| &backend.target);
        let is_valid = targets.any(|target| *target == self.target && has_it(target));
        self.table.set(address_of(routing));
        self.checked.set(now);
        is_valid
    }

    /// Hands over what the backend answers. Ready when the flow is over.
    fn poll_answers(&self, context: &mut Context<'_>, flows: &Flows) -> Poll<()> {
        loop {
            if self.deadline.poll(context).is_ready() {
                return Poll::Ready(());
            }
            match self.backend.poll_recv_ready(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
            let mut buffer = flows.buffer.borrow_mut();
            match self.backend.try_recv(&mut buffer) {
                Ok(count) => {
                    let bytes = buffer.get(..count).unwrap_or_default();
                    match answer(&flows.socket, self.sender, &self.control, bytes) {
                        Ok(_) => self.listener.counters.sent.add(count as u64),
                        Err(error) => {
                            tracing::debug!(client = %self.sender.client, %error, "an answer is dropped");
                            self.listener.counters.streams.refused("client_unreachable");
                        }
                    }
                    self.occupied.endpoint().note_reachable();
                    self.deadline.set(flows.worker.tick(), self.patience);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Nobody listens there. The next datagram looks for another endpoint.
                Err(error) if is_of_the_way(&error) => {
                    self.lost(flows.worker.tick());
                    return Poll::Ready(());
                }
                Err(_) => return Poll::Ready(()),
            }
        }
    }
}

/// Carries answers until the flow is over.
async fn answers(flows: Rc<Flows>, flow: Rc<Flow>) {
    poll_fn(|context| flow.poll_answers(context, &flows)).await;
    flows.end(&flow);
}

/// A socket that speaks with one address only.
fn connect(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if address.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Whether nobody can be reached at an address, as far as the network has said.
fn is_of_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable
    )
}

/// Tells one table from the next. Should another come to stand at the same address, the next look finds out.
fn address_of(routing: &Held) -> usize {
    std::sync::Arc::as_ptr(&routing.table).addr()
}
