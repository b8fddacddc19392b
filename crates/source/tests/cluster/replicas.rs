//! Replicas that tell each other of themselves.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use gatewright_source::kube::{Cluster, OwnerPod, ReplicaSettings, Replicas, replicas};
use gatewright_world::Replica;
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    plane::Plane,
    support::{self, SOON, allow, namespace},
};

fn join(cluster: &Cluster, namespace: &str, identity: &str, seconds: u64) -> Replicas {
    replicas(
        cluster,
        ReplicaSettings {
            lease_duration: Duration::from_secs(seconds),
            ..ReplicaSettings::new(namespace, identity)
        },
    )
}

fn at(address: &str) -> Replica {
    Replica {
        addresses: vec![address.parse().unwrap()],
        ..Replica::default()
    }
}

fn leaving(address: &str) -> Replica {
    Replica {
        is_leaving: true,
        ..at(address)
    }
}

/// What is told next, put into what was told before.
async fn hear(replicas: &mut Replicas, known: &mut BTreeMap<String, Replica>) {
    let news = tokio::time::timeout(SOON, replicas.next()).await;
    let news = news
        .unwrap_or_else(|_| panic!("nothing was told beside {known:#?}"))
        .unwrap();
    assert!(!news.is_empty());
    for (identity, replica) in news {
        match replica {
            Some(replica) => drop(known.insert(identity, replica)),
            None => assert!(known.remove(&identity).is_some(), "{identity} was never there"),
        }
    }
}

async fn until(replicas: &mut Replicas, known: &mut BTreeMap<String, Replica>, expected: &[(&str, Replica)]) {
    let expected: BTreeMap<String, Replica> = expected
        .iter()
        .map(|(identity, replica)| ((*identity).to_owned(), replica.clone()))
        .collect();
    while *known != expected {
        hear(replicas, known).await;
    }
}

fn leases(client: &Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &support::lease_resource())
}

async fn leases_of(client: &Client, namespace: &str) -> Vec<DynamicObject> {
    let selection = ListParams::default().labels("gatewright.dev/replica=gatewright");
    leases(client, namespace).list(&selection).await.unwrap().items
}

#[tokio::test]
async fn what_one_publishes_the_other_knows_soon_and_who_leaves_is_gone_at_once() {
    let plane = Plane::shared().await;
    let cluster = plane.cluster().await;
    namespace(&plane.client().await, "replicas-known").await;
    // So long that nothing here is explained by its end.
    let (mut one, mut two) = (
        join(&cluster, "replicas-known", "one", 300),
        join(&cluster, "replicas-known", "Two_2", 300),
    );
    let (mut of_one, mut of_two) = (BTreeMap::new(), BTreeMap::new());
    one.publish(at("10.0.0.1"));
    two.publish(at("10.0.0.2"));
    until(&mut one, &mut of_one, &[("Two_2", at("10.0.0.2"))]).await;
    until(&mut two, &mut of_two, &[("one", at("10.0.0.1"))]).await;

    let started = Instant::now();
    for last in 3..=9 {
        one.publish(at(&format!("10.0.0.{last}")));
    }
    until(&mut two, &mut of_two, &[("one", at("10.0.0.9"))]).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    println!("seven changes, the last known after {:?}", started.elapsed());

    one.publish(leaving("10.0.0.9"));
    until(&mut two, &mut of_two, &[("one", leaving("10.0.0.9"))]).await;
    let started = Instant::now();
    one.leave().await;
    until(&mut two, &mut of_two, &[]).await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let left = leases_of(&plane.client().await, "replicas-known").await;
    let names: Vec<_> = left.iter().filter_map(|lease| lease.metadata.name.as_deref()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(names[0].starts_with("gatewright-replica-two-2-"), "{names:?}");
}

#[tokio::test]
async fn who_leaves_without_having_said_so_is_gone_too_and_others_never_knew_who_said_nothing() {
    let plane = Plane::shared().await;
    let cluster = plane.cluster().await;
    namespace(&plane.client().await, "replicas-quiet").await;
    let (one, mut two) = (
        join(&cluster, "replicas-quiet", "one", 300),
        join(&cluster, "replicas-quiet", "two", 300),
    );
    let silent = join(&cluster, "replicas-quiet", "silent", 300);
    silent.leave().await;
    let mut of_two = BTreeMap::new();
    one.publish(at("10.0.0.1"));
    until(&mut two, &mut of_two, &[("one", at("10.0.0.1"))]).await;
    one.leave().await;
    until(&mut two, &mut of_two, &[]).await;
    assert_eq!(leases_of(&plane.client().await, "replicas-quiet").await.len(), 0);
}

#[tokio::test]
async fn who_dies_is_gone_when_its_time_is_over_and_its_lease_is_removed_later() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "replicas-dead").await;
    let (one, mut two) = (
        join(&cluster, "replicas-dead", "one", 2),
        join(&cluster, "replicas-dead", "two", 2),
    );
    one.publish(at("10.0.0.1"));
    let mut of_two = BTreeMap::new();
    until(&mut two, &mut of_two, &[("one", at("10.0.0.1"))]).await;
    // Renewed, although nothing changes.
    let alive = tokio::time::timeout(Duration::from_secs(5), hear(&mut two, &mut of_two)).await;
    assert!(alive.is_err(), "{of_two:?}");

    drop(one);
    let started = Instant::now();
    until(&mut two, &mut of_two, &[]).await;
    let took = started.elapsed();
    assert!(took > Duration::from_secs(1), "its time was not over after {took:?}");
    println!("a dead replica is gone after {took:?}");
    assert_eq!(leases_of(&client, "replicas-dead").await.len(), 1, "it may come back");

    // Started again, with nothing new to say.
    let one = join(&cluster, "replicas-dead", "one", 2);
    one.publish(at("10.0.0.1"));
    until(&mut two, &mut of_two, &[("one", at("10.0.0.1"))]).await;
    drop(one);
    until(&mut two, &mut of_two, &[]).await;
    support::eventually("the lease of the dead one is removed", async || {
        leases_of(&client, "replicas-dead").await.is_empty()
    })
    .await;
}

#[tokio::test]
async fn installations_do_not_mix_and_a_lease_says_whose_it_is() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "replicas-mine").await;
    let owned = ReplicaSettings {
        owner: Some(OwnerPod {
            name: "pod-1".to_owned(),
            uid: "0d5b0e6a-1111-4222-8333-444455556666".to_owned(),
        }),
        lease_duration: Duration::from_secs(2),
        ..ReplicaSettings::new("replicas-mine", "pod-1")
    };
    let one = replicas(&cluster, owned);
    let mut two = join(&cluster, "replicas-mine", "pod-2", 300);
    let strange = ReplicaSettings {
        installation: "theirs".to_owned(),
        ..ReplicaSettings::new("replicas-mine", "pod-3")
    };
    let stranger = replicas(&cluster, strange);
    stranger.publish(at("10.0.0.3"));
    let leases = leases(&client, "replicas-mine");
    support::eventually("the stranger is there", async || {
        leases.get_opt("gatewright-replica-pod-3").await.unwrap().is_some()
    })
    .await;
    one.publish(at("10.0.0.1"));
    let mut of_two = BTreeMap::new();
    hear(&mut two, &mut of_two).await;
    assert_eq!(of_two, BTreeMap::from([("pod-1".to_owned(), at("10.0.0.1"))]));

    let found = leases_of(&client, "replicas-mine").await;
    let found = serde_json::to_value(found.first().unwrap()).unwrap();
    assert_eq!(found["metadata"]["name"], "gatewright-replica-pod-1");
    assert_eq!(
        found["metadata"]["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "Pod", "name": "pod-1", "uid": "0d5b0e6a-1111-4222-8333-444455556666"}])
    );
    assert_eq!(
        (&found["spec"]["holderIdentity"], &found["spec"]["leaseDurationSeconds"]),
        (&json!("pod-1"), &json!(2))
    );

    // What cannot be read is nothing, until the replica puts it right.
    let broken = json!({"metadata": {"annotations": {"gatewright.dev/replica": "{"}}});
    leases
        .patch(
            "gatewright-replica-pod-1",
            &PatchParams::default(),
            &Patch::Merge(&broken),
        )
        .await
        .unwrap();
    until(&mut two, &mut of_two, &[]).await;
    until(&mut two, &mut of_two, &[("pod-1", at("10.0.0.1"))]).await;
}

#[tokio::test]
async fn the_rights_that_the_module_names_are_enough() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let rule = json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]);
    namespace(&client, "replicas-rights").await;
    allow(&client, "replica", Some("replicas-rights"), rule).await;
    let cluster = plane.cluster_as("replica").await;
    let (one, mut two) = (
        join(&cluster, "replicas-rights", "one", 2),
        join(&cluster, "replicas-rights", "two", 2),
    );
    let mut of_two = BTreeMap::new();
    one.publish(at("10.0.0.1"));
    until(&mut two, &mut of_two, &[("one", at("10.0.0.1"))]).await;
    drop(one);
    until(&mut two, &mut of_two, &[]).await;
    let one = join(&cluster, "replicas-rights", "one", 2);
    one.publish(at("10.0.0.1"));
    until(&mut two, &mut of_two, &[("one", at("10.0.0.1"))]).await;
    one.leave().await;
    until(&mut two, &mut of_two, &[]).await;
}
