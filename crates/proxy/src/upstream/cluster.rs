//! The endpoints of one cluster, as one worker sees them, and which of them gets the next request.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc};

use gatewright_ir::{Cluster, ClusterId, Endpoints, UpstreamProtocol};

use super::{Anchor, BackendTls, Budget, Endpoint, Registry};
use crate::{
    dns::Names,
    session::{CompiledSession, Tag},
};

/// The endpoints of a cluster.
#[derive(Debug)]
pub(crate) struct ClusterView {
    /// What they speak.
    pub(crate) protocol: UpstreamProtocol,
    /// Whether the requests of one client go to one endpoint.
    pub(crate) is_by_client: bool,
    /// On which terms they are spoken to over TLS; absent means in clear text.
    tls: Option<Arc<BackendTls>>,
    endpoints: RefCell<Vec<Rc<Endpoint>>>,
    names: Option<Names>,
    /// How many retries they may get, all rules taken together; absent means as many as the rules want.
    pub(crate) budget: Option<Rc<Budget>>,
    /// The list that the endpoints were made from; lists never change in place.
    resolved: RefCell<Arc<Vec<SocketAddr>>>,
    /// By what sessions know the endpoints; empty until a session asks.
    tags: RefCell<Vec<(Tag, SocketAddr)>>,
}

impl ClusterView {
    /// Looks up the endpoints of a cluster. `names` is given when the cluster is a name, `tls` when its endpoints are to be
    /// spoken to over TLS.
    pub(crate) fn new(
        cluster: &Cluster,
        names: Option<Names>,
        tls: Option<Arc<BackendTls>>,
        registry: &Registry,
    ) -> Self {
        let endpoints = match &cluster.endpoints {
            Endpoints::Known(endpoints) => endpoints
                .iter()
                .map(|endpoint| registry.endpoint(endpoint.address, cluster.protocol, tls.as_ref()))
                .collect(),
            Endpoints::Named { .. } => Vec::new(),
        };
        Self {
            protocol: cluster.protocol,
            is_by_client: cluster.is_by_client,
            tls,
            endpoints: RefCell::new(endpoints),
            names,
            budget: cluster
                .retry_budget
                .map(|limits| registry.budgets.budget(&cluster.origin, limits)),
            resolved: RefCell::default(),
            tags: RefCell::default(),
        }
    }

    /// The names to wait for when no endpoint is known yet.
    pub(crate) fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// The less busy of two endpoints taken at random, which spreads load almost as well as asking all. Endpoints that
    /// failed a moment ago, and the one to avoid, are taken only when there is no other.
    pub(crate) fn choose(&self, registry: &Registry, avoid: Option<SocketAddr>) -> Option<Rc<Endpoint>> {
        self.follow_names(registry);
        let endpoints = self.endpoints.borrow();
        match endpoints.as_slice() {
            [] => None,
            [only] => Some(Rc::clone(only)),
            several => {
                let first = fastrand::usize(..several.len());
                let second = (first + 1 + fastrand::usize(..several.len() - 1)) % several.len();
                let cost = |endpoint: &&Rc<Endpoint>| {
                    let is_avoided = Some(endpoint.address) == avoid;
                    (is_avoided, endpoint.is_resting(), endpoint.in_flight.get())
                };
                let best = [several.get(first), several.get(second)]
                    .into_iter()
                    .flatten()
                    .min_by_key(cost)?;
                if matches!(cost(&best), (false, false, _)) {
                    return Some(Rc::clone(best));
                }
                // From a random one on, so that equals get equal shares, also when all of them fail.
                let (before, after) = several.split_at_checked(first)?;
                after.iter().chain(before).min_by_key(cost).cloned()
            }
        }
    }

    /// The endpoint of a client: of those that work, the one that ranks first for it. All workers and replicas come to the
    /// same one, and an endpoint that comes or goes moves only the clients that it gets or had.
    pub(crate) fn choose_for(
        &self,
        client: Anchor,
        registry: &Registry,
        avoid: Option<SocketAddr>,
    ) -> Option<Rc<Endpoint>> {
        self.follow_names(registry);
        let endpoints = self.endpoints.borrow();
        let cost = |endpoint: &&Rc<Endpoint>| {
            let is_avoided = Some(endpoint.address) == avoid;
            (is_avoided, endpoint.is_resting(), client.rank(endpoint.address))
        };
        endpoints.iter().min_by_key(cost).cloned()
    }

    /// The endpoint of an address, if it is one of these now.
    pub(crate) fn at(&self, registry: &Registry, address: SocketAddr) -> Option<Rc<Endpoint>> {
        self.follow_names(registry);
        let endpoints = self.endpoints.borrow();
        endpoints.iter().find(|endpoint| endpoint.address == address).cloned()
    }

    /// The address that a session means by a tag, if it is one of these now. A view belongs to one rule, so it is always
    /// asked by the same session.
    pub(crate) fn tagged(
        &self,
        registry: &Registry,
        session: &CompiledSession,
        id: &ClusterId,
        tag: Tag,
    ) -> Option<SocketAddr> {
        self.follow_names(registry);
        let mut tags = self.tags.borrow_mut();
        if tags.is_empty() {
            let endpoints = self.endpoints.borrow();
            let addresses = endpoints.iter().map(|endpoint| endpoint.address);
            *tags = addresses.map(|address| (session.tag(id, address), address)).collect();
        }
        tags.iter()
            .find(|(known, _)| *known == tag)
            .map(|(_, address)| *address)
    }

    fn follow_names(&self, registry: &Registry) {
        let Some(names) = &self.names else { return };
        let addresses = names.addresses();
        let mut resolved = self.resolved.borrow_mut();
        if !Arc::ptr_eq(&addresses, &resolved) {
            let endpoints = addresses
                .iter()
                .map(|address| registry.endpoint(*address, self.protocol, self.tls.as_ref()));
            *self.endpoints.borrow_mut() = endpoints.collect();
            *resolved = Arc::clone(&addresses);
            self.tags.borrow_mut().clear();
        }
    }
}
