//! The API server goes away and comes back.

use std::time::Duration;

use gatewright_api::Kind;
use gatewright_source::kube::{Cluster, LeaseSettings, ReplicaSettings, Replicas, Standing, lease, replicas};
use gatewright_world::Replica;
use serde_json::json;

use crate::{
    plane::Plane,
    support::{self, Wired, create, create_routes, delete, merge, name, namespace, route_status, settings},
};

const COUNT: usize = 40;

#[tokio::test]
async fn after_an_outage_only_differences_are_told_and_nothing_right_is_written_again() {
    let plane = Plane::start().await;
    let client = plane.client().await;
    support::install_all(&client).await;
    let cluster = plane.cluster().await;
    namespace(&client, "outage").await;
    create_routes(&client, "outage", COUNT).await;
    let mut wired = Wired::start(&cluster, settings("example.com/outage")).await;
    let lease = lease(
        &cluster,
        LeaseSettings {
            duration: Duration::from_secs(3),
            deadline: Duration::from_secs(2),
            period: Duration::from_millis(200),
            ..LeaseSettings::new("default", "outage", "one")
        },
    );
    let (mut here, there) = (join(&cluster, "here"), join(&cluster, "there"));
    there.publish(Replica::default());
    let known = next(&mut here).await;
    assert_eq!(known, [("there".to_owned(), Some(Replica::default()))]);
    let mut is_leader = lease.is_leader();
    is_leader.wait_for(|is_leader| *is_leader).await.unwrap();
    wired.writer.set_leader(true);
    let routes =
        |range: std::ops::Range<usize>| range.map(|number| name(Kind::HttpRoute, "outage", &format!("r{number:04}")));
    wired.want(routes(0..COUNT).map(|route| (route, Some(route_status(1, "edge", true)))));
    wired.caught_up(&client, Kind::HttpRoute, "outage").await;
    let writes = wired.writer.report().total_writes();
    assert_eq!(writes, COUNT as u64);
    wired.followed.changes = 0;

    plane.kill_apiserver();
    is_leader.wait_for(|is_leader| !*is_leader).await.unwrap();
    until_all_are(&mut wired, Standing::Unreachable).await;
    assert_eq!(wired.followed.changes, 0, "nothing is said while it is away");
    // Wishes of this time are written afterwards.
    let wished = name(Kind::HttpRoute, "outage", "r0007");
    wired.want([(wished.clone(), Some(route_status(1, "edge", false)))]);

    // Meanwhile the world goes on, through another API server.
    let (second, elsewhere) = plane.second_apiserver().await;
    let (gone, edited) = (
        name(Kind::HttpRoute, "outage", "r0001"),
        name(Kind::HttpRoute, "outage", "r0002"),
    );
    delete(&elsewhere, &gone).await;
    merge(&elsewhere, &edited, &json!({"spec": {"hostnames": ["c.example"]}})).await;
    create(&elsewhere, Kind::HttpRoute, support::route("outage", "new")).await;
    drop(second);

    plane.start_apiserver().await;
    let new = name(Kind::HttpRoute, "outage", "new");
    wired
        .until("what happened meanwhile", |followed| {
            !followed.has(&gone) && followed.has(&new)
        })
        .await;
    is_leader.wait_for(|is_leader| *is_leader).await.unwrap();
    wired.settled().await;
    until_all_are(&mut wired, Standing::Watching).await;
    let changed: usize = wired.followed.changes;
    assert!(changed <= 3 + 2, "only differences are told: {changed}");
    support::eventually("the wish is written", async || {
        wired.writer.report().total_writes() == writes + 1
    })
    .await;
    let report = wired.writer.report();
    assert_eq!(
        (report.total_writes(), report.failing_count),
        (writes + 1, 0),
        "{report:#?}"
    );

    // Longer away than a replica may be silent, and nobody was given up: what is told next is what it says next.
    let leaving = Replica {
        is_leaving: true,
        ..Replica::default()
    };
    there.publish(leaving.clone());
    assert_eq!(next(&mut here).await, [("there".to_owned(), Some(leaving))]);

    a_frozen_server_is_survived(&plane, &client, &mut wired).await;
    lease.release().await;
}

fn join(cluster: &Cluster, identity: &str) -> Replicas {
    let settings = ReplicaSettings {
        lease_duration: Duration::from_secs(2),
        ..ReplicaSettings::new("default", identity)
    };
    replicas(cluster, settings)
}

async fn next(replicas: &mut Replicas) -> Vec<(String, Option<Replica>)> {
    let news = tokio::time::timeout(support::SOON, replicas.next()).await;
    news.unwrap().unwrap()
}

/// Takes in what comes until all watches stand alike.
async fn until_all_are(wired: &mut Wired, standing: Standing) {
    support::eventually(&format!("all watches are {standing:?}"), async || {
        wired.linger(Duration::from_millis(50)).await;
        let states = wired.followed.watch.states().get();
        states.iter().all(|state| state.standing == standing)
    })
    .await;
}

/// A server that takes requests and answers none.
async fn a_frozen_server_is_survived(plane: &Plane, client: &kube::Client, wired: &mut Wired) {
    plane.freeze_apiserver(true);
    let routes = (10..20).map(|number| name(Kind::HttpRoute, "outage", &format!("r{number:04}")));
    wired.want(routes.map(|route| (route, Some(route_status(1, "edge", false)))));
    support::eventually("requests are under way", async || wired.writer.report().in_flight > 0).await;
    plane.freeze_apiserver(false);
    wired.settled().await;
    create(client, Kind::HttpRoute, support::route("outage", "thawed")).await;
    let thawed = name(Kind::HttpRoute, "outage", "thawed");
    wired.until("the watch goes on", |followed| followed.has(&thawed)).await;
    assert_eq!(wired.writer.report().failing_count, 0);
}
