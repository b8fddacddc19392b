//! A small stage for tests of behaviour: objects are put on it, a data plane is played, and what is shown and served can be
//! read as short texts. After each change the plan made change by change must equal the plan made from scratch.

use std::net::SocketAddr;

use gatewright_api::{Kind, Object, ObjectName, config::Entry};
use gatewright_ir::{Fact, Gateway, Listener, ListenerState, Protocol, Target};
use gatewright_plan::{PlanSettings, Planner, StatusKey};
use gatewright_world::{
    Key, World,
    desired::{Condition, Status},
};
use serde_json::{Value, json};

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) planner: Planner,
    settings: PlanSettings,
}

/// Namespace and name of `namespace/name`.
fn key(name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap();
    Key::new(namespace, name)
}

impl Stage {
    /// On a host, with a GatewayClass `c`.
    pub(crate) fn new() -> Self {
        Self::with(World::default(), PlanSettings::default())
    }

    /// In a cluster, where Gateways are reached through Services.
    pub(crate) fn in_cluster() -> Self {
        let settings = PlanSettings {
            default_entry: Entry::LoadBalancer,
            ..PlanSettings::default()
        };
        Self::with(World::in_cluster(), settings)
    }

    fn with(mut world: World, settings: PlanSettings) -> Self {
        world.set_local("one", &["10.244.0.1".parse().unwrap()], Some("node"));
        let planner = Planner::new(settings.clone());
        let mut stage = Self {
            world,
            planner,
            settings,
        };
        stage.apply(
            Kind::GatewayClass,
            "/c",
            json!({"controllerName": "gatewright.dev/gateway-controller"}),
        );
        stage
    }

    /// Declares an object of the first of January.
    pub(crate) fn apply(&mut self, kind: Kind, name: &str, spec: Value) {
        self.apply_at(1, kind, name, json!({ "spec": spec }));
    }

    /// Declares an object of a day of January, with all its fields but the metadata.
    pub(crate) fn apply_at(&mut self, day: u8, kind: Kind, name: &str, mut value: Value) {
        let Key { namespace, name } = key(name);
        let created = format!("2026-01-{day:02}T00:00:00Z");
        value["metadata"] = json!({"name": name, "generation": 1, "creationTimestamp": created});
        if kind.is_namespaced() {
            value["metadata"]["namespace"] = json!(namespace);
        }
        if kind == Kind::Namespace {
            value["metadata"]["labels"] = value["labels"].take();
        }
        self.world.apply(&Object::from_value(kind, value).unwrap());
        self.plan();
    }

    /// A Gateway of class `c`.
    pub(crate) fn gateway(&mut self, name: &str, listeners: Value, more: Value) {
        let mut spec = json!({"gatewayClassName": "c", "listeners": listeners});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.apply(Kind::Gateway, name, spec);
    }

    /// A ListenerSet of a day of January.
    pub(crate) fn set(&mut self, day: u8, name: &str, gateway: &str, listeners: Value) {
        let Key {
            namespace,
            name: parent,
        } = key(gateway);
        let spec = json!({"parentRef": {"namespace": namespace, "name": parent}, "listeners": listeners});
        self.apply_at(day, Kind::ListenerSet, name, json!({ "spec": spec }));
    }

    /// A Service with one address behind each of its ports.
    pub(crate) fn service(&mut self, name: &str, ports: Value) {
        let named: Vec<Value> = ports.as_array().unwrap().clone();
        self.apply(Kind::Service, name, json!({ "ports": ports }));
        let Key { namespace, name } = key(name);
        let ports = named.iter().map(|port| json!({"name": port["name"], "port": 8080}));
        let slice = json!({
            "metadata": {"namespace": namespace, "name": format!("{name}-1"), "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": ports.collect::<Value>(),
        });
        self.world
            .apply(&Object::from_value(Kind::EndpointSlice, slice).unwrap());
        self.plan();
    }

    /// A Secret with a certificate for a name, which ceases to be valid on a day of January if one is named.
    pub(crate) fn secret(&mut self, name: &str, host: &str, until: Option<u8>) {
        let mut made = rcgen::CertificateParams::new(vec![host.to_owned()]).unwrap();
        if let Some(day) = until {
            made.not_before = rcgen::date_time_ymd(2026, 1, 1);
            made.not_after = rcgen::date_time_ymd(2026, 1, day);
        }
        let key = rcgen::KeyPair::generate().unwrap();
        let data = json!({"tls.crt": made.self_signed(&key).unwrap().pem(), "tls.key": key.serialize_pem()});
        self.apply_at(1, Kind::Secret, name, json!({ "stringData": data }));
    }

    /// A ConfigMap with an authority.
    pub(crate) fn authority(&mut self, name: &str) {
        let made = rcgen::generate_simple_self_signed(vec!["authority".to_owned()]).unwrap();
        self.apply_at(1, Kind::ConfigMap, name, json!({"data": {"ca.crt": made.cert.pem()}}));
    }

    pub(crate) fn delete(&mut self, kind: Kind, name: &str) {
        let Key { namespace, name } = key(name);
        let (namespace, name) = (namespace.to_string(), name.to_string());
        self.world.delete(&ObjectName { kind, namespace, name });
        self.plan();
    }

    pub(crate) fn time(&mut self, seconds: i64) {
        self.world.set_time(seconds);
        self.plan();
    }

    /// Plays the data plane: everything it is given listens.
    pub(crate) fn listen(&mut self) {
        let gateways: Vec<_> = self.planner.gateways().values().cloned().collect();
        for gateway in gateways {
            for listener in &gateway.listeners {
                let bound = listener.addresses.iter();
                let bound = bound.map(|address| SocketAddr::new(*address, listener.bind)).collect();
                self.world.observe(Fact::Listener {
                    origin: listener.origin.clone(),
                    generation: gateway.generation,
                    state: ListenerState::Listening(bound),
                });
            }
        }
        self.plan();
    }

    pub(crate) fn plan(&mut self) {
        let changes = self.world.take_changes();
        self.planner.update(&self.world, &changes);
        let mut scratch = Planner::new(self.settings.clone());
        scratch.update(&self.world, &self.world.everything());
        assert_eq!(self.planner.gateways(), scratch.gateways());
        assert_eq!(self.planner.statuses(), scratch.statuses());
        assert!(self.planner.owned().eq(scratch.owned()));
    }

    pub(crate) fn status(&self, kind: Kind, name: &str) -> Option<Status> {
        self.planner.status(&StatusKey { kind, key: key(name) })
    }

    /// The conditions of an object, each as `type status reason`. The place is a listener, the position of a route's parent,
    /// or the Gateway of a policy; empty means the object itself.
    pub(crate) fn shown(&self, kind: Kind, name: &str, place: &str) -> Vec<String> {
        self.conditions(kind, name, place)
            .iter()
            .map(|one| format!("{} {} {}", one.kind.as_str(), one.state.as_str(), one.reason.as_str()))
            .collect()
    }

    /// The message of a condition.
    pub(crate) fn told(&self, kind: Kind, name: &str, place: &str, condition: &str) -> String {
        let conditions = self.conditions(kind, name, place);
        let found = conditions.iter().find(|one| one.kind.as_str() == condition);
        found.unwrap().message.to_string()
    }

    fn conditions(&self, kind: Kind, name: &str, place: &str) -> Vec<Condition> {
        match self.status(kind, name) {
            Some(Status::Gateway(status)) if place.is_empty() => status.conditions,
            Some(Status::ListenerSet(status)) if place.is_empty() => status.conditions,
            Some(Status::Gateway(_) | Status::ListenerSet(_)) => self.listener(kind, name, place).conditions,
            Some(Status::Route(status)) => status.parents[place.parse::<usize>().unwrap()].conditions.to_vec(),
            Some(Status::Policy(status)) if status.gateways.contains(&key(place)) => status.conditions.to_vec(),
            other => panic!("{kind} {name} shows {other:?}"),
        }
    }

    fn listener(&self, kind: Kind, name: &str, listener: &str) -> gatewright_world::desired::ListenerStatus {
        let listeners = match self.status(kind, name) {
            Some(Status::Gateway(status)) => status.listeners,
            Some(Status::ListenerSet(status)) => status.listeners,
            other => panic!("{kind} {name} shows {other:?}"),
        };
        listeners.into_iter().find(|one| &*one.name == listener).unwrap()
    }

    /// How many routes are attached to a listener.
    pub(crate) fn attached(&self, kind: Kind, name: &str, listener: &str) -> u32 {
        self.listener(kind, name, listener).attached
    }

    /// How many ListenerSets add to a Gateway.
    pub(crate) fn attached_sets(&self, gateway: &str) -> u32 {
        match self.status(Kind::Gateway, gateway) {
            Some(Status::Gateway(status)) => status.attached_sets,
            other => panic!("{gateway} shows {other:?}"),
        }
    }

    pub(crate) fn ir(&self, gateway: &str) -> &Gateway {
        let Key { namespace, name } = key(gateway);
        let wanted = format!("Gateway/{namespace}/{name}");
        let mut gateways = self.planner.gateways().values();
        gateways.find(|one| one.origin.as_str() == wanted).unwrap()
    }

    pub(crate) fn listener_ir(&self, gateway: &str, origin: &str) -> &Listener {
        let mut listeners = self.ir(gateway).listeners.iter();
        listeners.find(|one| one.origin.as_str() == origin).unwrap()
    }

    /// What a data plane serves for a Gateway, each listener as `origin port protocol`.
    pub(crate) fn served(&self, gateway: &str) -> Vec<String> {
        let listeners = self.ir(gateway).listeners.iter();
        listeners
            .map(|one| {
                let protocol = match &one.protocol {
                    Protocol::Http => "HTTP",
                    protocol if protocol.termination().is_some_and(|one| one.certificates.is_empty()) => "sealed",
                    Protocol::Https(_) => "HTTPS",
                    Protocol::Tls(_) => "TLS",
                    Protocol::Passthrough => "passthrough",
                    Protocol::Tcp => "TCP",
                    Protocol::Udp => "UDP",
                };
                format!("{} {} {protocol}", one.origin, one.bind)
            })
            .collect()
    }

    /// Where a listener sends to, in order of precedence: host, route, and each backend with its weight.
    pub(crate) fn entries(&self, gateway: &str, origin: &str) -> Vec<String> {
        let hosts = self.listener_ir(gateway, origin).hosts.iter();
        hosts
            .flat_map(|(pattern, host)| {
                host.entries.iter().map(move |entry| {
                    let backends = entry.rule.backends.iter().map(|backend| match &backend.target {
                        Target::Cluster(id) => format!(" {id}={}", backend.weight),
                        Target::Unresolved(why) => format!(" {why:?}={}", backend.weight),
                    });
                    format!("{pattern} {}{}", entry.rule.origin, backends.collect::<String>())
                })
            })
            .collect()
    }
}

/// A listener in one line.
pub(crate) fn listener(name: &str, protocol: &str, port: u16) -> Value {
    json!({"name": name, "protocol": protocol, "port": port})
}

/// With more fields.
pub(crate) fn with(mut value: Value, more: Value) -> Value {
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}
