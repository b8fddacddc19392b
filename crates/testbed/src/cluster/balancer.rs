//! Services of type LoadBalancer: an address from the cluster's pool for each, and real traffic to its ready endpoints.
//!
//! What a cloud's load balancer does is done here by a proxy in user space, on the thread that lives in the cluster's
//! namespace, where every address of the pool can be bound. It follows Services and EndpointSlices, whoever writes them,
//! so Services without a selector work too. Clients' addresses are not preserved.

mod addresses;
mod endpoints;
mod tcp;
mod udp;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::reflector::Store,
};
use serde_json::json;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
};

use self::{addresses::Pool, endpoints::backends};
use super::{
    network::Subnet,
    node::{Tone, tell, watched},
};

/// Where traffic arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Front {
    address: Ipv4Addr,
    port: u16,
    transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Transport {
    Tcp,
    Udp,
}

/// Where traffic goes; empty while nobody is ready.
type Backends = Arc<[SocketAddr]>;

/// A front that is served.
struct Serving {
    backends: watch::Sender<Backends>,
    task: AbortHandle,
}

/// Starts to serve, as long as `tasks` lives.
pub(super) fn start(client: Client, subnet: Subnet, tasks: &mut JoinSet<()>) {
    let (sender, receiver) = watch::channel(0);
    let sender = Arc::new(sender);
    let balancer = Balancer {
        services: watched(Api::all(client.clone()), &sender, tasks),
        slices: watched(Api::all(client.clone()), &sender, tasks),
        pool: Pool::new(subnet.balancers()),
        fronts: HashMap::new(),
        tasks: JoinSet::new(),
        shown: BTreeMap::new(),
        complaints: BTreeMap::new(),
        client,
    };
    tasks.spawn(balancer.run(receiver));
}

struct Balancer {
    client: Client,
    services: Store<Service>,
    slices: Store<EndpointSlice>,
    pool: Pool,
    fronts: HashMap<Front, Serving>,
    tasks: JoinSet<()>,
    /// The address that each Service's status was last told to show.
    shown: BTreeMap<String, Ipv4Addr>,
    /// What each Service was last told is wrong with it.
    complaints: BTreeMap<String, String>,
}

impl Balancer {
    async fn run(mut self, mut changes: watch::Receiver<u64>) {
        let are_listed = self.services.wait_until_ready().await.is_ok() && self.slices.wait_until_ready().await.is_ok();
        if !are_listed {
            return;
        }
        loop {
            changes.borrow_and_update();
            self.follow().await;
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Makes everything as the Services say now.
    async fn follow(&mut self) {
        let (mut services, others): (Vec<_>, Vec<_>) =
            self.services.state().into_iter().partition(|service| is_ours(service));
        self.withdraw(&others).await;
        // The oldest first: an address that two ask for is the older one's.
        services.sort_by_key(|service| (service.creation_timestamp(), service.uid()));
        let living: BTreeSet<String> = services.iter().filter_map(|service| service.uid()).collect();
        self.pool.keep_only(&living);
        self.shown.retain(|uid, _| living.contains(uid));
        self.complaints.retain(|uid, _| living.contains(uid));
        let slices = endpoints::by_service(self.slices.state());
        let mut wanted = BTreeMap::new();
        for service in &services {
            let uid = service.uid().unwrap_or_default();
            let spec = service.spec.as_ref();
            let request = spec
                .and_then(|spec| spec.load_balancer_ip.as_deref())
                .filter(|text| !text.is_empty());
            match self.pool.give(&uid, request) {
                Ok(address) => {
                    self.show(service, &uid, address).await;
                    let own = slices.get(&(service.namespace().unwrap_or_default(), service.name_any()));
                    wanted.extend(fronts(service, address, own.map(Vec::as_slice).unwrap_or_default()));
                }
                Err(message) => self.complain(service, uid, message).await,
            }
        }
        self.serve(wanted);
    }

    /// Serves exactly what is wanted.
    fn serve(&mut self, wanted: BTreeMap<Front, Backends>) {
        self.fronts.retain(|front, serving| {
            let is_wanted = wanted.contains_key(front);
            if !is_wanted {
                serving.task.abort();
            }
            is_wanted
        });
        while self.tasks.try_join_next().is_some() {}
        for (front, backends) in wanted {
            if let Some(serving) = self.fronts.get(&front) {
                serving.backends.send_if_modified(|known| {
                    let is_new = *known != backends;
                    *known = backends;
                    is_new
                });
                continue;
            }
            let (sender, receiver) = watch::channel(backends);
            let address = SocketAddr::from((front.address, front.port));
            let task = match front.transport {
                Transport::Tcp => self.tasks.spawn(tcp::serve(address, receiver)),
                Transport::Udp => self.tasks.spawn(udp::serve(address, receiver)),
            };
            self.fronts.insert(front, Serving { backends: sender, task });
        }
    }

    /// Says in the Service's status which address it has.
    async fn show(&mut self, service: &Service, uid: &str, address: Ipv4Addr) {
        let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let ingress = status.and_then(|status| status.ingress.as_deref()).unwrap_or_default();
        let has_it = matches!(ingress, [only] if only.ip.as_deref() == Some(&address.to_string()));
        // The store may not have seen our own write yet.
        if has_it || (self.shown.get(uid) == Some(&address) && ingress.is_empty()) {
            return;
        }
        let services: Api<Service> = Api::namespaced(self.client.clone(), &service.namespace().unwrap_or_default());
        let patch = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": address, "ipMode": "VIP" }] } } });
        let outcome = services
            .patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
            .await;
        if outcome.is_ok() {
            self.shown.insert(uid.to_owned(), address);
        }
    }

    /// Takes the address out of the status of Services that are no longer LoadBalancers.
    async fn withdraw(&mut self, others: &[Arc<Service>]) {
        for service in others {
            if self.shown.remove(&service.uid().unwrap_or_default()).is_none() {
                continue;
            }
            let services: Api<Service> = Api::namespaced(self.client.clone(), &service.namespace().unwrap_or_default());
            let patch = json!({ "status": { "loadBalancer": { "ingress": null } } });
            // It fails if the Service is being deleted, and then nobody reads it.
            let _ = services
                .patch_status(&service.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await;
        }
    }

    async fn complain(&mut self, service: &Service, uid: String, message: String) {
        if self.complaints.get(&uid) != Some(&message) {
            tell(&self.client, service, Tone::Warning, "SyncLoadBalancerFailed", &message).await;
            self.complaints.insert(uid, message);
        }
    }
}

/// A LoadBalancer that nobody else looks after.
fn is_ours(service: &Service) -> bool {
    let is_balancer = |spec: &k8s_openapi::api::core::v1::ServiceSpec| {
        spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none()
    };
    service.metadata.deletion_timestamp.is_none() && service.spec.as_ref().is_some_and(is_balancer)
}

/// The ports of a Service, and where each leads.
fn fronts(service: &Service, address: Ipv4Addr, slices: &[Arc<EndpointSlice>]) -> Vec<(Front, Backends)> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let fronts = ports.filter_map(|port| {
        let (transport, protocol) = match port.protocol.as_deref() {
            None | Some("TCP") => (Transport::Tcp, "TCP"),
            Some("UDP") => (Transport::Udp, "UDP"),
            Some(_) => return None,
        };
        let number = u16::try_from(port.port).ok()?;
        let front = Front {
            address,
            port: number,
            transport,
        };
        Some((
            front,
            backends(slices, port.name.as_deref().unwrap_or_default(), protocol),
        ))
    });
    fronts.collect()
}
