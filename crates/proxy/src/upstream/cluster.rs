//! The endpoints of one cluster, as one worker sees them, and which of them gets the next request.

use std::{cell::RefCell, net::SocketAddr, rc::Rc, sync::Arc};

use gatewright_ir::{Cluster, Endpoints, UpstreamProtocol};

use super::{Endpoint, Registry};
use crate::dns::Names;

/// The endpoints of a cluster.
#[derive(Debug)]
pub(crate) struct ClusterView {
    /// What they speak.
    pub(crate) protocol: UpstreamProtocol,
    endpoints: RefCell<Vec<Rc<Endpoint>>>,
    names: Option<Names>,
    /// The list that the endpoints were made from; lists never change in place.
    resolved: RefCell<Arc<Vec<SocketAddr>>>,
}

impl ClusterView {
    /// Looks up the endpoints of a cluster. `names` is given when the cluster is a name.
    pub(crate) fn new(cluster: &Cluster, names: Option<Names>, registry: &Registry) -> Self {
        let endpoints = match &cluster.endpoints {
            Endpoints::Known(endpoints) => endpoints
                .iter()
                .map(|endpoint| registry.endpoint(endpoint.address, cluster.protocol))
                .collect(),
            Endpoints::Named { .. } => Vec::new(),
        };
        Self {
            protocol: cluster.protocol,
            endpoints: RefCell::new(endpoints),
            names,
            resolved: RefCell::default(),
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
                    let is_bad = endpoint.is_resting() || Some(endpoint.address) == avoid;
                    (is_bad, endpoint.in_flight.get())
                };
                let best = [several.get(first), several.get(second)]
                    .into_iter()
                    .flatten()
                    .min_by_key(cost)?;
                if !cost(&best).0 {
                    return Some(Rc::clone(best));
                }
                several.iter().min_by_key(cost).cloned()
            }
        }
    }

    fn follow_names(&self, registry: &Registry) {
        let Some(names) = &self.names else { return };
        let addresses = names.addresses();
        let mut resolved = self.resolved.borrow_mut();
        if !Arc::ptr_eq(&addresses, &resolved) {
            let endpoints = addresses
                .iter()
                .map(|address| registry.endpoint(*address, self.protocol));
            *self.endpoints.borrow_mut() = endpoints.collect();
            *resolved = Arc::clone(&addresses);
        }
    }
}
