use std::sync::Arc;

use ::kube::{Client, Config};
use ahash::AHashSet;
use gatewright_api::{Kind, ObjectName};
use serde_json::{Value, json};

use super::*;
use crate::kube::{
    observed::Seen,
    writer::owned::{OwnedObject, object::Owner, object::full},
};

const CONTROLLER: &str = "example.com/compare";

fn owner() -> ObjectName {
    ObjectName {
        kind: Kind::Gateway,
        namespace: "a".to_owned(),
        name: "edge".to_owned(),
    }
}

fn name() -> OwnedName {
    OwnedName {
        kind: OwnedKind::SERVICE,
        namespace: "a".to_owned(),
        name: "entry".to_owned(),
    }
}

fn wanted(port: u16) -> Value {
    json!({"spec": {"ports": [{"name": "web", "port": port}]}})
}

fn cluster() -> Cluster {
    let config = Config::new("http://127.0.0.1:1".parse().unwrap());
    Cluster::new(Client::try_from(config).unwrap(), "nowhere")
}

/// The Service as the server has it.
fn found(port: u16, version: &str) -> Raw {
    let resource = cluster().served(Kind::Gateway);
    let owner_name = owner();
    let owner = Owner {
        name: &owner_name,
        resource: &resource,
        uid: "edge-uid",
    };
    let mut value = full(&name(), &wanted(port), owner, CONTROLLER).value;
    value["metadata"]["uid"] = json!("entry-uid");
    value["metadata"]["resourceVersion"] = json!(version);
    Raw::of(value).unwrap()
}

/// A leader that wants the Service with port 80 and has told everyone.
fn state() -> State {
    let mut state = State::default();
    let gateway = json!({"metadata": {"name": "edge", "namespace": "a", "uid": "edge-uid", "resourceVersion": "3"}});
    let seen = Seen::of(Kind::Gateway, &Raw::of(gateway).unwrap(), CONTROLLER);
    state.observe(&owner(), Some(seen));
    state.own(
        name(),
        Some(Arc::new(OwnedObject {
            owner: owner(),
            value: Some(wanted(80)),
        })),
    );
    state.planned();
    state.set_leader(true);
    state
}

/// As if everything in the queue had been done.
fn idle(state: &mut State) {
    state.queue.clear();
}

#[tokio::test]
async fn what_is_as_wanted_and_as_told_is_no_difference() {
    let mut state = state();
    state.owned_seen(name(), found(80, "7"));
    state.owned_listed(OwnedKind::SERVICE, None, &AHashSet::from([name()]));
    idle(&mut state);
    assert!(!state.owned_is_behind(&name(), Some(&found(80, "7"))));
    // The list may be older than the watch.
    assert!(!state.owned_is_behind(&name(), Some(&found(80, "6"))));
    assert!(!state.owned_is_amiss(&name(), &cluster(), CONTROLLER));
}

#[tokio::test]
async fn who_cannot_see_the_owners_deletes_nothing_until_it_can() {
    let mut state = state();
    state.owned_seen(name(), found(80, "7"));
    state.owned_listed(OwnedKind::SERVICE, None, &AHashSet::from([name()]));
    state.set_keeping(true);
    state.own(name(), None);
    idle(&mut state);
    let step = state.owned_step(&name(), &cluster(), CONTROLLER, true);
    assert!(matches!(step, Step::Nothing), "{step:?}");
    state.set_keeping(false);
    assert!(state.queue.has(&Job::Owned(name())), "it is looked at again");
    let step = state.owned_step(&name(), &cluster(), CONTROLLER, true);
    assert!(matches!(step, Step::Delete { .. }), "{step:?}");
}

#[tokio::test]
async fn a_version_that_the_watch_never_told_is_a_difference_and_is_caught_up_with() {
    let mut state = state();
    state.owned_seen(name(), found(80, "7"));
    state.owned_listed(OwnedKind::SERVICE, Some("a"), &AHashSet::from([name()]));
    idle(&mut state);
    let edited = found(81, "10");
    assert!(state.owned_is_behind(&name(), Some(&edited)));
    state.owned_catch_up(&name(), Some(edited.clone()));
    assert!(!state.owned_is_behind(&name(), Some(&edited)));
    assert!(state.queue.has(&Job::Owned(name())), "it is going to be put right");

    idle(&mut state);
    assert!(state.owned_is_behind(&name(), None), "deleted, and nobody told");
    state.owned_catch_up(&name(), None);
    assert!(state.queue.has(&Job::Owned(name())), "it is going to be made again");
}

#[tokio::test]
async fn what_nobody_is_about_to_do_is_a_difference() {
    let mut state = state();
    state.owned_listed(OwnedKind::SERVICE, Some("a"), &AHashSet::new());
    assert!(
        !state.owned_is_amiss(&name(), &cluster(), CONTROLLER),
        "it is in the queue"
    );
    idle(&mut state);
    assert!(state.owned_is_amiss(&name(), &cluster(), CONTROLLER), "it is not there");
    state.owned_seen(name(), found(81, "7"));
    idle(&mut state);
    assert!(state.owned_is_amiss(&name(), &cluster(), CONTROLLER), "it is otherwise");
    state.own(name(), None);
    idle(&mut state);
    assert!(
        state.owned_is_amiss(&name(), &cluster(), CONTROLLER),
        "it is still there"
    );
}

#[tokio::test]
async fn nothing_is_said_of_places_that_were_not_listed() {
    let mut state = state();
    state.owned_listed(OwnedKind::SERVICE, Some("b"), &AHashSet::new());
    idle(&mut state);
    assert!(!state.owned_is_amiss(&name(), &cluster(), CONTROLLER));
    // Nor is what is in one namespace gone because it is not in another.
    state.owned_seen(name(), found(80, "7"));
    state.owned_listed(OwnedKind::SERVICE, Some("b"), &AHashSet::new());
    assert!(!state.owned_is_behind(&name(), Some(&found(80, "7"))));
}
