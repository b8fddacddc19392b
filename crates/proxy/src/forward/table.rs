//! The routing table of an address and port, and a worker's hold on it.
//!
//! A [`Table`] is immutable and shared by all workers; the handle compiles a new one when the IR changes and swaps it in. A
//! [`Held`] adds what a worker looks up once per table instead of once per request: counters, and the endpoints of
//! clusters.

use std::{
    cell::{Cell, OnceCell, RefCell},
    fmt,
    rc::Rc,
    sync::Arc,
};

use ahash::AHashMap;
use gatewright_ir::{
    Cluster, ClusterId, Listener, ListenerSettings, Mirror, Origin, Protocol, Security, Share, Target,
};
use imbl::OrdMap;

use crate::{
    dns::Names,
    forward::Reason,
    matching::{BindTable, CompiledRule, ListenerTable, WholeTable},
    metrics::{ListenerCounters, RouteCounters},
    tls::TlsTable,
    upstream::{ClusterTls, ClusterView},
    worker::Worker,
};

/// What happens to what comes to one address and port.
pub(crate) struct Table {
    listeners: Vec<Routed>,
    by_host: BindTable<usize>,
    clusters: OrdMap<ClusterId, Arc<Cluster>>,
    names: Arc<AHashMap<ClusterId, Names>>,
    /// The clusters that are spoken to over TLS.
    secured: ClusterTls,
    tls: Option<TlsTable>,
    settings: Arc<ListenerSettings>,
}

/// One listener with its routes.
struct Routed {
    listener: Arc<Listener>,
    /// The routes of requests; none where connections are routed as a whole.
    routes: ListenerTable,
    /// The routes of connections, or of datagrams.
    whole: Option<WholeTable>,
}

/// What becomes of a cluster's demand to be spoken to over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demands {
    /// It is met.
    Honoured,
    /// It is of no concern: the client speaks TLS with the backend.
    Ignored,
    /// It cannot be met: datagrams are not carried over TLS.
    Refused,
}

impl Demands {
    fn of(listener: &Listener) -> Self {
        match &listener.protocol {
            Protocol::Http | Protocol::Https(_) | Protocol::Tls(_) | Protocol::Tcp => Self::Honoured,
            Protocol::Passthrough => Self::Ignored,
            Protocol::Udp => Self::Refused,
        }
    }
}

/// How the connections of an address and port begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With a request.
    Request,
    /// With a TLS handshake.
    Handshake,
    /// With whatever client and backend say to each other.
    Anything,
}

impl Routed {
    fn compile(listener: &Arc<Listener>, before: Option<&Self>) -> Self {
        let is_whole = match &listener.protocol {
            Protocol::Http | Protocol::Https(_) => false,
            Protocol::Tls(_) | Protocol::Passthrough | Protocol::Tcp | Protocol::Udp => true,
        };
        let routes = if is_whole {
            ListenerTable::empty()
        } else {
            ListenerTable::compile(listener, before.map(|routed| &routed.routes))
        };
        let whole = is_whole.then(|| WholeTable::compile(listener, before.and_then(|routed| routed.whole.as_ref())));
        Self {
            listener: Arc::clone(listener),
            routes,
            whole,
        }
    }
}

impl Table {
    /// Compiles the listeners that share an address and a port. What `previous` has compiled is taken over.
    pub(crate) fn compile(
        listeners: &[Arc<Listener>],
        clusters: OrdMap<ClusterId, Arc<Cluster>>,
        names: Arc<AHashMap<ClusterId, Names>>,
        secured: ClusterTls,
        previous: Option<&Self>,
    ) -> Self {
        let mut before: AHashMap<&Origin, &Routed> = AHashMap::default();
        for routed in previous.into_iter().flat_map(|previous| &previous.listeners) {
            before.insert(&routed.listener.origin, routed);
        }
        let compile = |listener: &Arc<Listener>| Routed::compile(listener, before.get(&listener.origin).copied());
        let is_tls = |listener: &Arc<Listener>| listener.protocol.begins_with_tls();
        Self {
            by_host: BindTable::new(listeners.iter().map(|listener| &listener.hostname).zip(0..)),
            tls: listeners
                .iter()
                .any(is_tls)
                .then(|| TlsTable::compile(listeners, previous.and_then(Self::tls))),
            settings: listeners
                .first()
                .map(|first| Arc::clone(&first.settings))
                .unwrap_or_default(),
            listeners: listeners.iter().map(compile).collect(),
            clusters,
            names,
            secured,
        }
    }

    /// What concerns connections before any request says whose listener it is for.
    pub(crate) fn settings(&self) -> &Arc<ListenerSettings> {
        &self.settings
    }

    /// The TLS configuration, if connections begin with a handshake.
    pub(crate) fn tls(&self) -> Option<&TlsTable> {
        self.tls.as_ref()
    }

    /// How connections begin.
    pub(crate) fn beginning(&self) -> Beginning {
        match self.listeners.first().map(|first| &first.listener.protocol) {
            Some(Protocol::Tcp | Protocol::Udp) => Beginning::Anything,
            Some(Protocol::Https(_) | Protocol::Tls(_) | Protocol::Passthrough) => Beginning::Handshake,
            Some(Protocol::Http) | None => Beginning::Request,
        }
    }

    fn cluster(&self, id: &ClusterId, demands: Demands, worker: &Worker) -> Result<ClusterView, Reason> {
        let cluster = self.clusters.get(id).ok_or(Reason::NoEndpoints)?;
        let tls = match (&cluster.security, demands) {
            (Security::Clear, _) | (_, Demands::Ignored) => None,
            // Without terms nothing is sent: in clear text least of all.
            (Security::Tls(_), Demands::Honoured) => Some(self.secured.get(id).cloned().ok_or(Reason::BackendRefused)?),
            (Security::Tls(_), Demands::Refused) | (Security::Refused, _) => return Err(Reason::BackendRefused),
        };
        Ok(ClusterView::new(
            cluster,
            self.names.get(id).cloned(),
            tls,
            &worker.endpoints,
        ))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Table")
            .field("listeners", &self.listeners.len())
            .finish_non_exhaustive()
    }
}

/// A worker's hold on a table.
#[derive(Debug)]
pub(crate) struct Held {
    /// The table.
    pub(crate) table: Arc<Table>,
    listeners: Vec<OnceCell<Rc<HeldListener>>>,
}

/// A worker's hold on one listener.
pub(crate) struct HeldListener {
    /// The listener.
    pub(crate) listener: Arc<Listener>,
    /// What is counted about it.
    pub(crate) counters: Arc<ListenerCounters>,
    routes: RefCell<AHashMap<usize, Rc<HeldRoute>>>,
}

/// Where a connection goes.
#[derive(Debug)]
pub(crate) enum WholeRoute {
    /// By this rule.
    To(Rc<HeldRoute>),
    /// Nowhere.
    None,
    /// Nowhere as a whole: its requests are routed.
    OfRequests,
}

/// A worker's hold on one rule.
pub(crate) struct HeldRoute {
    /// The rule.
    pub(crate) rule: Arc<CompiledRule>,
    /// What is counted about its route.
    pub(crate) counters: Arc<RouteCounters>,
    demands: Demands,
    /// Where in its sequence the choice of backends is.
    sequence: Cell<u64>,
    /// Clusters by where their targets stand in the rule.
    clusters: RefCell<Vec<(usize, Rc<ClusterView>)>>,
    /// How much of a request each mirror is owed, by where it stands in the rule.
    owed: RefCell<Vec<(usize, u64)>>,
}

impl Held {
    /// Takes hold of a table.
    pub(crate) fn new(table: Arc<Table>) -> Self {
        Self {
            listeners: table.listeners.iter().map(|_| OnceCell::new()).collect(),
            table,
        }
    }

    /// The listener that a host belongs to, with its routes.
    pub(crate) fn listener(&self, host: &str, worker: &Worker) -> Option<(&Rc<HeldListener>, &ListenerTable)> {
        let index = *self.table.by_host.listener(host)?;
        Some((self.hold(index, worker)?, &self.table.listeners.get(index)?.routes))
    }

    /// The listener that a connection belongs to which asks for a name, or for none; and, where it is routed as a whole, by
    /// which rule.
    pub(crate) fn whole(&self, name: Option<&str>, worker: &Worker) -> Option<(&Rc<HeldListener>, WholeRoute)> {
        let index = *self.table.by_host.listener(name.unwrap_or_default())?;
        let listener = self.hold(index, worker)?;
        let route = match &self.table.listeners.get(index)?.whole {
            None => WholeRoute::OfRequests,
            Some(whole) => whole
                .find(name)
                .map_or(WholeRoute::None, |rule| WholeRoute::To(listener.route(rule))),
        };
        Some((listener, route))
    }

    /// The listener that requests count for which reach none.
    pub(crate) fn first_listener(&self, worker: &Worker) -> Option<&Rc<HeldListener>> {
        self.hold(0, worker)
    }

    fn hold(&self, index: usize, worker: &Worker) -> Option<&Rc<HeldListener>> {
        let Routed { listener, whole, .. } = self.table.listeners.get(index)?;
        let hold = || {
            let counters = worker.metrics.listener(&listener.origin);
            if whole.is_some() {
                counters.streams.mark_whole();
            }
            Rc::new(HeldListener {
                listener: Arc::clone(listener),
                counters,
                routes: RefCell::default(),
            })
        };
        Some(self.listeners.get(index)?.get_or_init(hold))
    }
}

impl HeldListener {
    /// A worker's hold on a rule of this listener.
    pub(crate) fn route(&self, rule: &Arc<CompiledRule>) -> Rc<HeldRoute> {
        let mut routes = self.routes.borrow_mut();
        // The held rule keeps this address from being used again.
        let held = routes.entry(Arc::as_ptr(rule).addr()).or_insert_with(|| {
            Rc::new(HeldRoute {
                rule: Arc::clone(rule),
                counters: self.counters.route(&rule.rule.origin),
                demands: Demands::of(&self.listener),
                sequence: Cell::new(fastrand::u64(..)),
                clusters: RefCell::default(),
                owed: RefCell::default(),
            })
        });
        Rc::clone(held)
    }
}

impl fmt::Debug for HeldListener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("HeldListener").field(&self.listener.origin).finish()
    }
}

/// The step of a sequence that covers any range evenly, however few of its members are looked at.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl HeldRoute {
    /// The place of the backend for the next request. Over any few requests the shares are close to the weights.
    pub(crate) fn next_place(&self) -> usize {
        let next = self.sequence.get().wrapping_add(GOLDEN);
        self.sequence.set(next);
        self.rule.choose(next)
    }

    /// The endpoints of a target that stands in this rule.
    pub(crate) fn cluster(&self, target: &Target, table: &Table, worker: &Worker) -> Result<Rc<ClusterView>, Reason> {
        // The held rule keeps this address from being used again.
        let address = std::ptr::from_ref(target).addr();
        let mut clusters = self.clusters.borrow_mut();
        if let Some((_, cluster)) = clusters.iter().find(|(known, _)| *known == address) {
            return Ok(Rc::clone(cluster));
        }
        let cluster = match target {
            Target::Cluster(id) => table.cluster(id, self.demands, worker)?,
            Target::Unresolved(unresolved) => return Err((*unresolved).into()),
        };
        let cluster = Rc::new(cluster);
        clusters.push((address, Rc::clone(&cluster)));
        Ok(cluster)
    }

    /// Whether a mirror of this rule gets a copy of the next request. Over time it gets exactly its share.
    pub(crate) fn is_due(&self, mirror: &Mirror) -> bool {
        let Share { numerator, denominator } = mirror.share;
        if numerator >= denominator {
            return true;
        }
        let denominator = u64::from(denominator);
        let address = std::ptr::from_ref(mirror).addr();
        let mut all = self.owed.borrow_mut();
        if !all.iter().any(|(known, _)| *known == address) {
            // Workers, and the tables that follow each other, begin at different points.
            all.push((address, fastrand::u64(..denominator.max(1))));
        }
        let Some((_, owed)) = all.iter_mut().find(|(known, _)| *known == address) else {
            return false;
        };
        *owed += u64::from(numerator);
        let is_due = *owed >= denominator;
        if is_due {
            *owed -= denominator;
        }
        is_due
    }
}

impl fmt::Debug for HeldRoute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("HeldRoute").field(&self.rule.rule.origin).finish()
    }
}
