//! Backend references, resolved to clusters.

use gatewright_api::Kind;
use gatewright_ir::{ClusterId, Target, Unresolved};
use gatewright_world::{
    Key, World,
    desired::Reason,
    object::{AppProtocol, BackendRef, Service},
    resolve::{Granted, Reference, Referrer, Refused},
};

use crate::{cluster, gateway::Trouble};

/// A Service port that a route sends requests to.
#[derive(Clone, Debug)]
pub(crate) struct BackendUse {
    pub(crate) cluster: ClusterId,
    pub(crate) service: Granted<Service>,
    pub(crate) port: u16,
}

/// Resolves a backend reference of a route.
pub(super) fn resolve(world: &World, route: &Key, backend: &BackendRef) -> Result<BackendUse, (Unresolved, Trouble)> {
    let BackendRef {
        group,
        kind,
        namespace,
        name,
        port,
        weight: _,
        filters: _,
    } = backend;
    let shown = format!("{}/{name}", namespace.as_ref().unwrap_or(&route.namespace));
    let from = Referrer::Namespaced(Kind::HttpRoute, &route.namespace);
    let to = Reference {
        group,
        kind,
        namespace: namespace.as_ref(),
        name,
    };
    let service: Granted<Service> = world.resolve(from, to).map_err(|refused| match refused {
        Refused::InvalidKind => (
            Unresolved::InvalidKind,
            Trouble::new(
                Reason::InvalidKind,
                format!("a {kind} of group {group:?} cannot be a backend; use a Service"),
            ),
        ),
        Refused::NotPermitted => (
            Unresolved::NotPermitted,
            Trouble::new(
                Reason::RefNotPermitted,
                format!(
                    "no ReferenceGrant in the namespace of Service {shown} lets HTTPRoutes of namespace {} use it",
                    route.namespace
                ),
            ),
        ),
        Refused::NotFound => not_found(format!("Service {shown} does not exist")),
    })?;
    let number = port.ok_or_else(|| not_found(format!("the reference to Service {shown} needs a port")))?;
    let declared = world
        .read(&service)
        .ok_or_else(|| not_found(format!("Service {shown} does not exist")))?;
    match declared.port(number).map(|port| &port.protocol) {
        Some(AppProtocol::Unsupported(protocol)) => {
            let message = format!("port {number} of Service {shown} speaks {protocol}, which is not supported");
            return Err((
                Unresolved::Unsupported,
                Trouble::new(Reason::UnsupportedProtocol, message),
            ));
        }
        Some(AppProtocol::Http | AppProtocol::H2c) => {}
        None if declared.external_name.is_some() => {}
        None => return Err(not_found(format!("Service {shown} has no port {number}"))),
    }
    Ok(BackendUse {
        cluster: cluster::id(service.key(), number),
        service,
        port: number,
    })
}

fn not_found(message: String) -> (Unresolved, Trouble) {
    (Unresolved::NotFound, Trouble::new(Reason::BackendNotFound, message))
}

impl BackendUse {
    pub(super) fn target(&self) -> Target {
        Target::Cluster(self.cluster.clone())
    }
}
