//! References of a route to what answers requests, resolved to clusters.

use gatewright_ir::{ClusterId, Target, Unresolved, UpstreamProtocol};
use gatewright_world::{
    World,
    desired::Reason,
    object::{RouteKey, Service, ServiceRef},
    resolve::{Granted, Reference, Referrer, Refused},
};

use crate::{
    cluster::{self, Traffic, Unspoken},
    gateway::Trouble,
};

/// A Service port that a route sends requests to.
#[derive(Clone, Debug)]
pub(crate) struct BackendUse {
    pub(crate) cluster: ClusterId,
    pub(crate) service: Granted<Service>,
    pub(crate) port: u16,
    pub(crate) protocol: UpstreamProtocol,
}

/// Resolves references of one route, and notes what they come to.
pub(super) struct Resolver<'a> {
    pub(super) world: &'a World,
    pub(super) route: &'a RouteKey,
    pub(super) backends: Vec<BackendUse>,
    /// The first reference that does not hold.
    pub(super) trouble: Option<Trouble>,
}

impl Resolver<'_> {
    /// What a reference leads to. One that does not hold leads nowhere, and its trouble is noted.
    pub(super) fn target(&mut self, reference: &ServiceRef, traffic: Traffic) -> Target {
        match self.resolve(reference, traffic) {
            Ok(resolved) => {
                let target = Target::Cluster(resolved.cluster.clone());
                self.backends.push(resolved);
                target
            }
            Err((unresolved, trouble)) => {
                self.trouble.get_or_insert(trouble);
                Target::Unresolved(unresolved)
            }
        }
    }

    /// Notes what is wrong with a reference that is not used.
    pub(super) fn check(&mut self, reference: &ServiceRef, traffic: Traffic) {
        if let Err((_, trouble)) = self.resolve(reference, traffic) {
            self.trouble.get_or_insert(trouble);
        }
    }

    fn resolve(&self, reference: &ServiceRef, traffic: Traffic) -> Result<BackendUse, (Unresolved, Trouble)> {
        let ServiceRef {
            group,
            kind,
            namespace,
            name,
            port,
        } = reference;
        let own = &self.route.key.namespace;
        let shown = reference.key(own);
        let from = Referrer::Namespaced(self.route.kind.kind(), own);
        let to = Reference {
            group,
            kind,
            namespace: namespace.as_ref(),
            name,
        };
        let service: Granted<Service> = self.world.resolve(from, to).map_err(|refused| match refused {
            Refused::InvalidKind => {
                let message = format!("a {kind} of group {group:?} cannot be a backend; use a Service");
                (Unresolved::InvalidKind, Trouble::new(Reason::InvalidKind, message))
            }
            Refused::NotPermitted => {
                let message = format!(
                    "no ReferenceGrant in the namespace of Service {shown} lets {}s of namespace {own} use it",
                    self.route.kind.kind()
                );
                (Unresolved::NotPermitted, Trouble::new(Reason::RefNotPermitted, message))
            }
            Refused::NotFound => not_found(format!("Service {shown} does not exist")),
        })?;
        let number = port.ok_or_else(|| not_found(format!("the reference to Service {shown} needs a port")))?;
        let declared = self
            .world
            .read(&service)
            .ok_or_else(|| not_found(format!("Service {shown} does not exist")))?;
        let wanted = traffic.port(number);
        let port = declared.port(wanted);
        if port.is_none() && declared.external_name.is_none() {
            let transport = wanted.transport.as_str();
            return Err(not_found(format!("Service {shown} has no {transport} port {number}")));
        }
        let protocol = cluster::protocol(self.world, service.key(), port, traffic).map_err(|unspoken| {
            let message = match (unspoken, traffic) {
                (Unspoken::NoPolicy, _) => format!(
                    "port {number} of Service {shown} speaks HTTPS; a BackendTLSPolicy must say how it is known"
                ),
                (Unspoken::Protocol(protocol), Traffic::Grpc) => {
                    format!("port {number} of Service {shown} speaks {protocol}, over which gRPC cannot go")
                }
                (Unspoken::Protocol(protocol), _) => {
                    format!("port {number} of Service {shown} speaks {protocol}, which is not supported")
                }
            };
            let trouble = Trouble::new(Reason::UnsupportedProtocol, message);
            (Unresolved::Unsupported, trouble)
        })?;
        Ok(BackendUse {
            cluster: cluster::id(service.key(), number, protocol),
            service,
            port: number,
            protocol,
        })
    }
}

fn not_found(message: String) -> (Unresolved, Trouble) {
    (Unresolved::NotFound, Trouble::new(Reason::BackendNotFound, message))
}
