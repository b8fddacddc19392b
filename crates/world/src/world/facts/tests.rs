use gatewright_ir::ListenFailure;

use super::*;

fn origin() -> Origin {
    Origin::new("Gateway/a/front/http")
}

fn listening(generation: i64, address: &str) -> ListenerFact {
    ListenerFact {
        generation,
        state: ListenerState::Listening(vec![address.parse().unwrap()]),
    }
}

fn failed(generation: i64) -> ListenerFact {
    let address = "0.0.0.0:80".parse().unwrap();
    let failure = ListenFailure::InUse;
    ListenerFact {
        generation,
        state: ListenerState::Failed { address, failure },
    }
}

fn replica(address: &str, fact: ListenerFact) -> Replica {
    Replica {
        addresses: vec![address.parse().unwrap()],
        facts: [(origin(), fact)].into(),
        ..Replica::default()
    }
}

fn observe(world: &mut World, fact: ListenerFact) {
    world.observe(Fact::Listener {
        origin: origin(),
        generation: fact.generation,
        state: fact.state,
    });
}

#[test]
fn the_best_fact_over_all_replicas_is_the_newest_and_rather_one_that_listens() {
    let mut world = World::default();
    world.set_local("one", &[], None);
    observe(&mut world, failed(1));
    assert_eq!(world.fact(&origin()), Some(&failed(1)));
    world.set_replica("two", Some(replica("10.0.0.2", listening(1, "0.0.0.0:80"))));
    assert_eq!(world.fact(&origin()), Some(&listening(1, "0.0.0.0:80")));
    observe(&mut world, failed(2));
    assert_eq!(world.fact(&origin()), Some(&failed(2)));
    assert_eq!(world.local_fact(&origin()), Some(&failed(2)));
    assert_eq!(world.instances(&origin()).count(), 2);
}

#[test]
fn a_replica_that_is_gone_takes_its_facts_with_it() {
    let mut world = World::default();
    world.set_replica("two", Some(replica("10.0.0.2", listening(1, "0.0.0.0:80"))));
    world.take_changes();
    world.set_replica("two", None);
    let changes = world.take_changes();
    assert_eq!(
        (changes.facts, changes.replicas),
        ([origin()].into(), [Text::from("two")].into())
    );
    assert_eq!(world.fact(&origin()), None);
}

#[test]
fn only_what_differs_is_a_change() {
    let mut world = World::default();
    world.set_local("one", &["10.0.0.1".parse().unwrap()], None);
    world.set_replica("two", Some(replica("10.0.0.2", listening(1, "0.0.0.0:80"))));
    world.take_changes();
    world.set_local("one", &["10.0.0.1".parse().unwrap()], None);
    world.set_replica("two", Some(replica("10.0.0.2", listening(1, "0.0.0.0:80"))));
    assert!(world.take_changes().is_empty());
    world.set_replica("two", Some(replica("10.0.0.3", listening(1, "0.0.0.0:80"))));
    let changes = world.take_changes();
    assert!(changes.facts.is_empty() && changes.replicas == [Text::from("two")].into());
    world.set_leaving();
    assert_eq!(world.take_changes().replicas, [Text::from("one")].into());
}

#[test]
fn what_this_replica_published_itself_is_passed_over() {
    let mut world = World::default();
    observe(&mut world, listening(1, "0.0.0.0:80"));
    world.set_replica("one", Some(replica("10.0.0.9", failed(1))));
    world.set_local("one", &["10.0.0.1".parse().unwrap()], Some("node"));
    world.set_replica("one", Some(replica("10.0.0.9", failed(1))));
    world.set_replica("one", None);
    assert_eq!(world.fact(&origin()), Some(&listening(1, "0.0.0.0:80")));
    assert_eq!(world.local().addresses, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
    assert_eq!(world.replicas().count(), 1);
}
