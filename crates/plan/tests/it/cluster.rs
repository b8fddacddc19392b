//! A cluster, played: what is planned is written, comes back, and Services are given addresses.
//!
//! Addresses come from 192.0.2.0/24: the one that is asked for if it lies there, else the next. A Service whose
//! `loadBalancerClass` is `example.com/named` is given a name instead, one of `example.com/none` nothing. A Service that the
//! case itself declares without our label is in the way of ours.

use std::collections::BTreeMap;

use gatewright_api::{Kind, Object, config::Entry};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::{
    ListenerFact, Replica, World,
    desired::{Owned, OwnedKind, OwnedName},
};
use serde_json::{Value, json};

pub(crate) struct Cluster {
    /// The case has a second replica, which has opened the first listener of every Gateway only.
    has_second: bool,
    /// Names of Services that belong to somebody else.
    foreign: Vec<String>,
    given: BTreeMap<OwnedName, String>,
}

impl Cluster {
    pub(crate) fn new(input: &str) -> Self {
        let is_foreign = |document: &&str| document.contains("kind: Service\n") && document.contains("foreign: ");
        let documents = input.split("---\n").filter(is_foreign);
        let names = documents.filter_map(|document| {
            let place = document.find("name: ").map_or("", |start| &document[start + 6..]);
            place.split([',', '}', '\n']).next().map(str::to_owned)
        });
        Self {
            has_second: input.lines().nth(1).is_some_and(|line| line.contains("second replica")),
            foreign: names.collect(),
            given: BTreeMap::new(),
        }
    }

    pub(crate) fn world() -> World {
        let mut world = World::in_cluster();
        world.set_local("one", &["10.244.0.10".parse().unwrap()], Some("node-a"));
        world
    }

    pub(crate) fn settings() -> PlanSettings {
        PlanSettings {
            default_entry: Entry::LoadBalancer,
            allow_local_backends: false,
            ..PlanSettings::default()
        }
    }

    /// Writes what is planned, and lets the world see it.
    pub(crate) fn write(&mut self, planner: &Planner, world: &mut World) {
        for (name, owned) in planner.owned() {
            if name.kind == OwnedKind::Service && self.foreign.iter().any(|foreign| **foreign == *name.name) {
                world.set_conflict(
                    name,
                    Some("a Service of that name is there and is not ours; rename or delete it"),
                );
                continue;
            }
            if let Some(value) = owned.to_value() {
                let kind = match name.kind {
                    OwnedKind::Service => Kind::Service,
                    OwnedKind::EndpointSlice => Kind::EndpointSlice,
                };
                world.apply(&Object::from_value(kind, self.stored(owned, value)).unwrap());
            }
        }
        if self.has_second {
            publish_second(planner, world);
        }
    }

    /// The object as the API server has it.
    fn stored(&mut self, owned: &Owned, mut value: Value) -> Value {
        value["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": owned.owner.kind.as_str(), "name": owned.owner.name,
            "uid": "1", "controller": true,
        }]);
        if owned.name.kind == OwnedKind::Service {
            value["spec"]["clusterIPs"] = json!(["10.96.0.1"]);
            let ingress = match value["spec"]["loadBalancerClass"].as_str() {
                Some("example.com/none") => json!([]),
                Some("example.com/named") => json!([{"hostname": "lb.example.com"}]),
                _ => match value["spec"]["loadBalancerIP"].as_str() {
                    Some(asked) if asked.starts_with("192.0.2.") => json!([{"ip": asked}]),
                    Some(_) => json!([]),
                    None => {
                        let next = format!("192.0.2.{}", 100 + self.given.len());
                        let given = self.given.entry(owned.name.clone()).or_insert(next);
                        json!([{"ip": given}])
                    }
                },
            };
            value["status"] = json!({"loadBalancer": {"ingress": ingress}});
        }
        value
    }
}

fn publish_second(planner: &Planner, world: &mut World) {
    let gateways = planner.gateways().values();
    let first = gateways.filter_map(|gateway| {
        let listener = gateway.listeners.first()?;
        let fact: ListenerFact = world.local_fact(&listener.origin)?.clone();
        Some((listener.origin.clone(), fact))
    });
    let replica = Replica {
        addresses: vec!["10.244.1.10".parse().unwrap()],
        node: Some("node-b".into()),
        is_leaving: false,
        facts: first.collect(),
    };
    world.set_replica("two", Some(replica));
}
