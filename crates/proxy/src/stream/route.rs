//! Which backend a connection, or the datagrams of a client, go to.

use std::{
    net::{IpAddr, SocketAddr},
    rc::Rc,
};

use gatewright_ir::Target;

use crate::{
    forward::{Held, HeldRoute, Reason},
    upstream::{Anchor, ClusterView, Endpoint},
    worker::Worker,
};

/// The backend that a rule's weights gave.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Its endpoints.
    pub(crate) cluster: Rc<ClusterView>,
    /// The client, where the cluster keeps clients at their endpoints.
    anchor: Option<Anchor>,
    /// What the rule says about it.
    pub(crate) target: Target,
}

impl Destination {
    /// Chooses the next backend of a rule.
    pub(crate) fn next(route: &HeldRoute, routing: &Held, client: IpAddr, worker: &Worker) -> Result<Self, Reason> {
        let backend = route.rule.backend(route.next_place()).ok_or(Reason::NoBackend)?;
        let cluster = route.cluster(&backend.target, &routing.table, worker)?;
        Ok(Self {
            anchor: cluster.is_by_client.then(|| Anchor::of(client)),
            cluster,
            target: backend.target.clone(),
        })
    }

    /// An endpoint, if there is any; the one to avoid only if there is no other.
    pub(crate) fn choose(&self, worker: &Worker, avoid: Option<SocketAddr>) -> Option<Rc<Endpoint>> {
        match self.anchor {
            Some(anchor) => self.cluster.choose_for(anchor, &worker.endpoints, avoid),
            None => self.cluster.choose(&worker.endpoints, avoid),
        }
    }
}

/// An endpoint that serves somebody, and counts as that much busier.
#[derive(Debug)]
pub(crate) struct Occupied(Rc<Endpoint>);

impl Occupied {
    /// Counts one more at an endpoint.
    pub(crate) fn new(endpoint: Rc<Endpoint>) -> Self {
        endpoint.in_flight.set(endpoint.in_flight.get() + 1);
        Self(endpoint)
    }

    /// The endpoint.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.0
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get().saturating_sub(1));
    }
}
