//! Several replicas that plan alike without talking to each other, but for what they publish and what one of them writes.
//!
//! Each has a world of its own and hears of everything in the same order, but not at the same time; whichever is the writer
//! writes what it has planned so far. When all have heard of everything, they must agree on every port, and nobody must
//! have anything left to write.

use std::collections::{BTreeMap, BTreeSet};

use gatewright_api::{Kind, ObjectName, config::Entry};
use gatewright_ir::{Fact, ListenerState, Origin};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::{
    Replica, World,
    desired::{OwnedKind, OwnedName},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::universe::{Edit, base, cluster_base, edits};

const NAMES: [&str; 3] = ["one", "two", "three"];
/// So many times everyone may answer to everyone before it is called a quarrel.
const PATIENCE: usize = 12;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// Somebody changes an object.
    Edit(Edit),
    /// A replica hears of so many changes that it did not know of.
    Hear(usize, usize),
    /// A replica is the writer for a moment.
    Write(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let edits = edits(25).prop_map(|edits| {
        edits
            .into_iter()
            .filter(is_declared)
            .map(Step::Edit)
            .collect::<Vec<_>>()
    });
    let turns = prop_oneof![
        3 => (0..NAMES.len(), 1..20usize).prop_map(|(replica, count)| Step::Hear(replica, count)),
        1 => (0..NAMES.len()).prop_map(Step::Write),
    ];
    (edits, proptest::collection::vec(turns, 0..60)).prop_map(|(edits, turns)| {
        // Two or three turns after each edit.
        let mut turns = turns.into_iter();
        let mut steps = Vec::new();
        for edit in edits {
            steps.push(edit);
            steps.extend(turns.by_ref().take(3));
        }
        steps
    })
}

/// Whether an edit is one that a cluster would tell of. Services of somebody else are a matter of the writer's.
fn is_declared(edit: &Edit) -> bool {
    match edit {
        Edit::Apply(Kind::Service, value) => value
            .pointer("/metadata/ownerReferences/0/controller")
            .is_none_or(|is_controller| *is_controller == true),
        Edit::Apply(..) | Edit::Delete(_) | Edit::Invalid(..) => true,
        Edit::Observe(_) | Edit::Replica(..) | Edit::Local(_) | Edit::Leaving | Edit::Conflict(..) | Edit::Time(_) => {
            false
        }
    }
}

/// What the API server has, and in which order it came to be.
#[derive(Default)]
struct Server {
    log: Vec<Edit>,
    /// What is there of the kinds that we make, by name.
    owned: BTreeMap<OwnedName, Value>,
    given: BTreeMap<OwnedName, String>,
}

impl Server {
    fn take(&mut self, edit: Edit) {
        match &edit {
            Edit::Apply(kind, value) => {
                if let Some(name) = owned_name(*kind, &value["metadata"]) {
                    self.owned.insert(name, value.clone());
                }
            }
            Edit::Invalid(kind, value) => {
                if let Some(name) = owned_name(*kind, &value["metadata"]) {
                    self.owned.remove(&name);
                }
            }
            Edit::Delete(name) => {
                let metadata = json!({"namespace": name.namespace, "name": name.name});
                if let Some(name) = owned_name(name.kind, &metadata) {
                    self.owned.remove(&name);
                }
            }
            Edit::Observe(_)
            | Edit::Replica(..)
            | Edit::Local(_)
            | Edit::Leaving
            | Edit::Conflict(..)
            | Edit::Time(_) => {}
        }
        self.log.push(edit);
    }

    /// Makes everything so as a replica has planned it.
    fn write(&mut self, planner: &Planner) {
        let wanted: BTreeMap<OwnedName, Option<Value>> = planner
            .owned()
            .map(|(name, owned)| {
                let value = owned.to_value().map(|mut value| {
                    value["metadata"]["ownerReferences"] = json!([{"apiVersion": "gateway.networking.k8s.io/v1",
                        "kind": "Gateway", "name": owned.owner.name, "uid": "1", "controller": true}]);
                    value
                });
                (name.clone(), value)
            })
            .collect();
        let is_ours = |value: &Value| value["metadata"]["ownerReferences"][0]["kind"] == "Gateway";
        let unplanned: Vec<OwnedName> = self
            .owned
            .iter()
            .filter(|(name, value)| is_ours(value) && !wanted.contains_key(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in unplanned {
            let kind = kind(name.kind);
            let (namespace, name) = (name.namespace.to_string(), name.name.to_string());
            self.take(Edit::Delete(ObjectName { kind, namespace, name }));
        }
        for (name, value) in wanted {
            let Some(mut value) = value else { continue };
            if name.kind == OwnedKind::Service {
                let next = format!("192.0.2.{}", 100 + self.given.len());
                let given = self.given.entry(name.clone()).or_insert(next);
                value["spec"]["clusterIPs"] = json!(["10.96.0.1"]);
                value["status"] = json!({"loadBalancer": {"ingress": [{"ip": given}]}});
            }
            if self.owned.get(&name) != Some(&value) {
                self.take(Edit::Apply(kind(name.kind), value));
            }
        }
    }
}

fn kind(kind: OwnedKind) -> Kind {
    match kind {
        OwnedKind::Service => Kind::Service,
        OwnedKind::EndpointSlice => Kind::EndpointSlice,
    }
}

fn owned_name(kind: Kind, metadata: &Value) -> Option<OwnedName> {
    let kind = match kind {
        Kind::Service => OwnedKind::Service,
        Kind::EndpointSlice => OwnedKind::EndpointSlice,
        _ => return None,
    };
    Some(OwnedName {
        kind,
        namespace: metadata["namespace"].as_str()?.into(),
        name: metadata["name"].as_str()?.into(),
    })
}

struct Process {
    name: &'static str,
    world: World,
    planner: Planner,
    /// How much of the log it has heard of.
    heard: usize,
    open: BTreeSet<Origin>,
    published: Option<Replica>,
}

impl Process {
    fn new(index: usize) -> Self {
        let name = NAMES[index];
        let mut world = World::in_cluster();
        let address = format!("10.244.0.{}", index + 1).parse().unwrap();
        world.set_local(name, &[address], Some("node"));
        let planner = Planner::new(PlanSettings {
            default_entry: Entry::LoadBalancer,
            allow_local_backends: false,
            ..PlanSettings::default()
        });
        Self {
            name,
            world,
            planner,
            heard: 0,
            open: BTreeSet::new(),
            published: None,
        }
    }

    /// Hears of some changes, plans, opens what it has planned, and publishes that.
    fn hear(&mut self, server: &mut Server, count: usize) {
        let until = server.log.len().min(self.heard.saturating_add(count));
        for edit in &server.log[self.heard..until] {
            edit.make(&mut self.world);
        }
        self.heard = until;
        self.plan();
        self.open();
        self.plan();
        if self.published.as_ref() != Some(self.world.local()) {
            let own = self.world.local().clone();
            let read = Replica::decode(&own.encode().text).unwrap();
            assert_eq!(read, own);
            self.published = Some(own);
            server.take(Edit::Replica(self.name, Some(read)));
        }
    }

    fn plan(&mut self) {
        let changes = self.world.take_changes();
        self.planner.update(&self.world, &changes);
    }

    /// Plays the plane, on a host where everything can be opened.
    fn open(&mut self) {
        let mut open = BTreeSet::new();
        for gateway in self.planner.gateways().values() {
            for listener in &gateway.listeners {
                let bound = listener.addresses.iter();
                let bound = bound.map(|address| (*address, listener.bind).into()).collect();
                self.world.observe(Fact::Listener {
                    origin: listener.origin.clone(),
                    generation: gateway.generation,
                    state: ListenerState::Listening(bound),
                });
                open.insert(listener.origin.clone());
            }
        }
        for origin in self.open.difference(&open) {
            let origin = origin.clone();
            self.world.observe(Fact::Gone { origin });
        }
        self.open = open;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn replicas_that_have_heard_of_everything_agree_and_have_nothing_left_to_write(steps in steps(), writer in 0..NAMES.len()) {
        let mut server = Server::default();
        let mut processes: Vec<Process> = (0..NAMES.len()).map(Process::new).collect();
        for edit in base().into_iter().chain(cluster_base()).filter(is_declared) {
            server.take(edit);
        }
        for step in steps {
            match step {
                Step::Edit(edit) => server.take(edit),
                Step::Hear(replica, count) => processes[replica].hear(&mut server, count),
                Step::Write(replica) => server.write(&processes[replica].planner),
            }
        }
        let mut rounds = 0;
        loop {
            let before = server.log.len();
            for process in &mut processes {
                process.hear(&mut server, usize::MAX);
            }
            server.write(&processes[writer].planner);
            if server.log.len() == before {
                break;
            }
            rounds += 1;
            prop_assert!(rounds < PATIENCE, "they do not come to rest; the last was {:?}", &server.log[before..]);
        }
        let [first, others @ ..] = processes.as_slice() else { unreachable!() };
        for other in others {
            prop_assert_eq!(first.planner.gateways(), other.planner.gateways());
            prop_assert_eq!(first.planner.statuses(), other.planner.statuses());
            prop_assert!(first.planner.owned().eq(other.planner.owned()));
        }
    }
}
