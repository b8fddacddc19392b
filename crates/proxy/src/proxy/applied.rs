//! What was applied last, and how the next set of gateways is applied: by what differs.
//!
//! Order matters. First what is no longer wanted is closed, so that its addresses are free; then new addresses are opened;
//! then tables are swapped in and sockets handed to workers; at last facts are sent. An address that works is never
//! closed because of a change elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::Arc,
};

use ahash::AHashMap;
use gatewright_ir::{Fact, Gateway, ListenFailure, Listener, ListenerState, Origin};
use imbl::OrdMap;
use tokio::sync::{mpsc, oneshot};

use super::{
    addresses::{self, Claims},
    names::{self, ClusterNames},
};
use crate::{
    dns::Resolver,
    forward::Table,
    upstream::{ClusterTls, KnownTls},
    worker::{self, Bind, BindAddress, Bound, Command, WorkerHandle},
};

/// What was applied last.
#[derive(Debug)]
pub(super) struct Applied {
    workers: Arc<Vec<WorkerHandle>>,
    resolver: Resolver,
    facts: mpsc::UnboundedSender<Fact>,
    gateways: OrdMap<Origin, Arc<Gateway>>,
    names: AHashMap<Origin, ClusterNames>,
    secured: AHashMap<Origin, ClusterTls>,
    known_tls: KnownTls,
    claims: Claims,
    places: BTreeMap<BindAddress, Place>,
    /// Tables that workers may still hold. The last to let go of a large table spends a while freeing it, and that must
    /// not be a worker.
    outdated: Vec<Arc<Table>>,
    /// The last fact about each listener.
    known: AHashMap<Origin, (i64, ListenerState)>,
}

/// What became of an address that is wanted.
#[derive(Debug)]
enum Place {
    /// Workers accept connections.
    Open(Arc<Bind>),
    /// It could not be opened.
    Failed(ListenFailure),
}

/// Sockets that were opened and not yet handed over.
type Opened = BTreeMap<BindAddress, Bound>;

impl Applied {
    pub(super) fn new(workers: Arc<Vec<WorkerHandle>>, resolver: Resolver, facts: mpsc::UnboundedSender<Fact>) -> Self {
        Self {
            workers,
            resolver,
            facts,
            gateways: OrdMap::new(),
            names: AHashMap::default(),
            secured: AHashMap::default(),
            known_tls: KnownTls::default(),
            claims: Claims::default(),
            places: BTreeMap::new(),
            outdated: Vec::new(),
            known: AHashMap::default(),
        }
    }

    /// Lets go of the workers, which are about to end.
    pub(super) fn forget_workers(&mut self) {
        self.workers = Arc::default();
        self.gateways = OrdMap::new();
        self.places.clear();
    }

    /// Tries again to open what could not be opened, and frees what nobody holds any more.
    pub(super) async fn tend(&mut self) {
        self.outdated.retain(|table| Arc::strong_count(table) > 1);
        let failed = |(address, place): (&BindAddress, &Place)| matches!(place, Place::Failed(_)).then_some(*address);
        let touched: BTreeSet<_> = self.places.iter().filter_map(failed).collect();
        if !touched.is_empty() {
            self.follow(touched, BTreeSet::new()).await;
        }
    }

    /// Applies a set of gateways.
    pub(super) async fn apply(&mut self, gateways: OrdMap<Origin, Arc<Gateway>>) {
        let old = std::mem::replace(&mut self.gateways, gateways);
        let new = self.gateways.clone();
        let mut touched = BTreeSet::new();
        let mut changed = BTreeSet::new();
        let removed = old.keys().filter(|origin| !new.contains_key(*origin));
        for origin in new.keys().chain(removed) {
            let (before, after) = (old.get(origin), new.get(origin));
            // By identity: comparing the contents of a large gateway would cost as much as compiling it.
            if let (Some(before), Some(after)) = (before, after)
                && Arc::ptr_eq(before, after)
            {
                continue;
            }
            let wanted =
                |gateway: Option<&Arc<Gateway>>| gateway.map(|it| addresses::addresses(it)).unwrap_or_default();
            let (was, is) = (wanted(before), wanted(after));
            self.claims.set(origin, &was, &is);
            touched.extend(was);
            touched.extend(is);
            self.follow_names(origin, before, after);
            self.follow_security(origin, before, after);
            self.forget_listeners(before, after);
            changed.insert(origin.clone());
        }
        if !changed.is_empty() {
            self.follow(touched, changed).await;
        }
    }

    fn follow_names(&mut self, origin: &Origin, before: Option<&Arc<Gateway>>, after: Option<&Arc<Gateway>>) {
        let Some(after) = after else {
            self.names.remove(origin);
            return;
        };
        let nothing = OrdMap::new();
        let old = before.map_or(&nothing, |before| &before.clusters);
        let names = self.names.entry(origin.clone()).or_default();
        *names = names::follow(names, old, &after.clusters, &self.resolver);
    }

    fn follow_security(&mut self, origin: &Origin, before: Option<&Arc<Gateway>>, after: Option<&Arc<Gateway>>) {
        let Some(after) = after else {
            self.secured.remove(origin);
            return;
        };
        let secured = self.secured.entry(origin.clone()).or_default();
        *secured = self.known_tls.follow(secured, before.map(|before| &**before), after);
    }

    /// Says of listeners that their gateway no longer has, that they are gone.
    fn forget_listeners(&mut self, before: Option<&Arc<Gateway>>, after: Option<&Arc<Gateway>>) {
        let stays = |origin: &Origin| {
            let mut listeners = after.into_iter().flat_map(|after| &after.listeners);
            listeners.any(|listener| listener.origin == *origin)
        };
        for listener in before.into_iter().flat_map(|before| &before.listeners) {
            let origin = &listener.origin;
            if !stays(origin) && self.known.remove(origin).is_some() {
                for worker in self.workers.iter() {
                    worker.metrics.forget_listener(origin);
                }
                self.send(Fact::Gone { origin: origin.clone() });
            }
        }
    }

    /// Makes sockets and tables follow at these addresses, and tells what became of the listeners there.
    async fn follow(&mut self, mut touched: BTreeSet<BindAddress>, mut gateways: BTreeSet<Origin>) {
        // A listener that fails on one address is served on none, so its other addresses are concerned too.
        loop {
            for address in &touched {
                self.claims.settle(address);
                gateways.extend(self.claims.gateways(address).cloned());
            }
            let of_gateways = gateways.iter().filter_map(|origin| self.gateways.get(origin));
            let all: BTreeSet<_> = of_gateways.flat_map(|gateway| addresses::addresses(gateway)).collect();
            let count = touched.len();
            touched.extend(all);
            if touched.len() == count {
                break;
            }
        }
        let unwanted: Vec<_> = touched
            .iter()
            .filter(|address| self.claims.owner(address).is_none())
            .copied()
            .collect();
        self.close(&unwanted).await;
        let mut opened = self.open(&touched);
        let mut idle = Vec::new();
        let mut waiting = Vec::new();
        for address in &touched {
            let listeners = self.servable(address);
            if listeners.is_empty() {
                // Sockets that were just opened close when `opened` is dropped.
                if matches!(self.places.get(address), Some(Place::Open(_))) {
                    idle.push(*address);
                }
                continue;
            }
            self.swap(address, &listeners, &mut opened, &mut waiting);
        }
        self.close(&idle).await;
        for acknowledged in waiting {
            // A worker that has ended acknowledges by dropping its end.
            _ = acknowledged.await;
        }
        for gateway in gateways
            .iter()
            .filter_map(|origin| self.gateways.get(origin).cloned())
            .collect::<Vec<_>>()
        {
            self.report(&gateway);
        }
    }

    /// Closes addresses and waits until their sockets are gone.
    async fn close(&mut self, addresses: &[BindAddress]) {
        let mut waiting = Vec::new();
        for address in addresses {
            let Some(Place::Open(bind)) = self.places.remove(address) else {
                continue;
            };
            let table = bind.table.load_full();
            let drain = table.settings().drain_timeout;
            self.outdated.push(table);
            for worker in self.workers.iter() {
                worker.metrics.forget_bind(bind.address);
            }
            waiting.extend(self.tell(|done| {
                Some(Command::Close {
                    bind: Arc::clone(&bind),
                    drain,
                    done,
                })
            }));
        }
        for acknowledged in waiting {
            _ = acknowledged.await;
        }
    }

    /// Opens the addresses that are wanted and not open.
    fn open(&mut self, touched: &BTreeSet<BindAddress>) -> Opened {
        let mut opened = Opened::new();
        for address in touched {
            let is_open = matches!(self.places.get(address), Some(Place::Open(_)));
            if is_open || self.claims.owner(address).is_none() {
                continue;
            }
            match worker::bind(*address, self.workers.len()) {
                Ok(bound) => {
                    self.places.remove(address);
                    opened.insert(*address, bound);
                }
                Err(error) => self.failed(address, &error),
            }
        }
        opened
    }

    fn failed(&mut self, address: &BindAddress, error: &io::Error) {
        let before = self.places.insert(*address, Place::Failed(worker::failure(error)));
        if before.is_none() {
            tracing::warn!(%address, %error, "an address cannot be listened on");
        }
    }

    /// The listeners on an address that are open wherever they want to be.
    fn servable(&self, address: &BindAddress) -> Vec<Arc<Listener>> {
        let owner = self.claims.owner(address).and_then(|owner| self.gateways.get(owner));
        let Some(gateway) = owner else { return Vec::new() };
        addresses::on_address(gateway, address)
            .filter(|listener| self.obstacle(gateway, listener).is_none())
            .cloned()
            .collect()
    }

    /// The address that keeps a listener from being served, and why.
    fn obstacle(&self, gateway: &Gateway, listener: &Listener) -> Option<(BindAddress, ListenFailure)> {
        addresses::of_listener(listener).find_map(|address| {
            let is_ours = self.claims.owner(&address) == Some(&gateway.origin);
            if !is_ours || !addresses::fits(listener, gateway, &address) {
                return Some((address, ListenFailure::InUse));
            }
            match self.places.get(&address) {
                Some(Place::Failed(failure)) => Some((address, failure.clone())),
                Some(Place::Open(_)) | None => None,
            }
        })
    }

    /// Gives an address its table, and its sockets to the workers if they are new.
    fn swap(
        &mut self,
        address: &BindAddress,
        listeners: &[Arc<Listener>],
        opened: &mut Opened,
        waiting: &mut Vec<oneshot::Receiver<()>>,
    ) {
        let owner = self.claims.owner(address).and_then(|owner| self.gateways.get(owner));
        let Some(gateway) = owner.cloned() else { return };
        let names = self.names.get(&gateway.origin).cloned().unwrap_or_default();
        let secured = self.secured.get(&gateway.origin).cloned().unwrap_or_default();
        let compile = |previous: Option<&Table>| {
            Arc::new(Table::compile(
                listeners,
                gateway.clusters.clone(),
                names.clone(),
                secured.clone(),
                previous,
            ))
        };
        if let Some(Place::Open(bind)) = self.places.get(address) {
            let table = compile(Some(&bind.table.load()));
            self.outdated.push(bind.table.swap(table));
        } else if let Some(bound) = opened.remove(address) {
            let bind = Bind::new(bound.address, compile(None));
            let mut sockets = match bound.listen() {
                Ok(sockets) => sockets.into_iter(),
                Err(error) => return self.failed(address, &error),
            };
            self.places.insert(*address, Place::Open(Arc::clone(&bind)));
            waiting.extend(self.tell(|done| {
                Some(Command::Listen {
                    bind: Arc::clone(&bind),
                    socket: sockets.next()?,
                    done,
                })
            }));
        }
    }

    /// Sends every worker a command, and returns what each answers through.
    fn tell(&self, mut command: impl FnMut(oneshot::Sender<()>) -> Option<Command>) -> Vec<oneshot::Receiver<()>> {
        let mut waiting = Vec::with_capacity(self.workers.len());
        for worker in self.workers.iter() {
            let (done, acknowledged) = oneshot::channel();
            if let Some(command) = command(done) {
                worker.send(command);
                waiting.push(acknowledged);
            }
        }
        waiting
    }

    /// Tells what became of a gateway's listeners, as far as that changed.
    fn report(&mut self, gateway: &Gateway) {
        for listener in &gateway.listeners {
            let state = match self.obstacle(gateway, listener) {
                Some((address, failure)) => ListenerState::Failed {
                    address: address.socket,
                    failure,
                },
                None => ListenerState::Listening(self.actual(listener)),
            };
            let current = (gateway.generation, state);
            if self.known.get(&listener.origin) != Some(&current) {
                self.known.insert(listener.origin.clone(), current.clone());
                self.send(Fact::Listener {
                    origin: listener.origin.clone(),
                    generation: current.0,
                    state: current.1,
                });
            }
        }
    }

    /// The addresses that a listener is really on, which differ from those wanted when the port was left open.
    fn actual(&self, listener: &Listener) -> Vec<SocketAddr> {
        let actual = |address: BindAddress| match self.places.get(&address) {
            Some(Place::Open(bind)) => bind.address.socket,
            Some(Place::Failed(_)) | None => address.socket,
        };
        addresses::of_listener(listener).map(actual).collect()
    }

    fn send(&self, fact: Fact) {
        // Whoever dropped the receiver does not want to know.
        _ = self.facts.send(fact);
    }
}
