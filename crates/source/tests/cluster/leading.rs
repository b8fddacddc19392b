//! Two replicas and one lease.

use std::time::Duration;

use gatewright_source::kube::{Cluster, Lease, LeaseSettings, lease};

use kube::{Api, Client, api::DynamicObject};

use crate::{plane::Plane, support};

fn take_part(cluster: &Cluster, name: &str, identity: &str, duration: u64) -> Lease {
    lease(
        cluster,
        LeaseSettings {
            duration: Duration::from_secs(duration),
            deadline: Duration::from_millis(duration * 700),
            period: Duration::from_millis(100),
            ..LeaseSettings::new("default", name, identity)
        },
    )
}

/// Waits until the holder has renewed some times: whoever else takes part has tried as often.
async fn some_rounds(client: &Client, name: &str) {
    let leases: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &support::lease_resource());
    let mut seen = std::collections::BTreeSet::new();
    support::eventually("some renewals", async || {
        let found = leases.get(name).await.unwrap();
        seen.insert(found.data["spec"]["renewTime"].to_string());
        seen.len() > 5
    })
    .await;
}

async fn leads(lease: &Lease) {
    let mut is_leader = lease.is_leader();
    let waited = tokio::time::timeout(support::SOON, is_leader.wait_for(|is_leader| *is_leader)).await;
    assert!(waited.is_ok_and(|waited| waited.is_ok()), "it never became the leader");
}

#[tokio::test]
async fn a_lease_that_is_released_goes_to_the_other_at_once() {
    let plane = Plane::shared().await;
    let cluster = plane.cluster().await;
    // So long that only a release can explain a change.
    let one = take_part(&cluster, "released", "one", 600);
    leads(&one).await;
    let two = take_part(&cluster, "released", "two", 600);
    some_rounds(&cluster.client(), "released").await;
    assert!(!*two.is_leader().borrow(), "never two at a time");
    assert!(*one.is_leader().borrow());
    let was = one.is_leader();
    one.release().await;
    assert!(!*was.borrow());
    leads(&two).await;
}

#[tokio::test]
async fn a_holder_that_dies_is_followed_when_its_time_is_over_and_not_before() {
    let plane = Plane::shared().await;
    let cluster = plane.cluster().await;
    let one = take_part(&cluster, "died", "one", 3);
    leads(&one).await;
    let two = take_part(&cluster, "died", "two", 3);
    some_rounds(&cluster.client(), "died").await;
    assert!(!*two.is_leader().borrow());
    // Without a word, as a crash does.
    drop(one);
    let started = std::time::Instant::now();
    leads(&two).await;
    assert!(started.elapsed() > Duration::from_secs(2), "{:?}", started.elapsed());
    // Who comes back is not the leader.
    let one = take_part(&cluster, "died", "one", 3);
    some_rounds(&cluster.client(), "died").await;
    assert!(!*one.is_leader().borrow() && *two.is_leader().borrow());
}
