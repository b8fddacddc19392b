//! What the writer does to the status of routes, alone and beside others.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use gatewright_api::{Kind, ObjectName};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    plane::Plane,
    support::{
        self, SOON, Wired, api, create, create_routes, entries, get, merge, name, namespace, route_status, settings,
    },
};

#[tokio::test]
async fn a_thousand_routes_are_written_once_and_a_restart_writes_nothing() {
    const COUNT: usize = 1000;
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "thousand").await;
    create_routes(&client, "thousand", COUNT).await;
    let wishes = |is_accepted: bool| {
        (0..COUNT).map(move |number| {
            let route = name(Kind::HttpRoute, "thousand", &format!("r{number:04}"));
            (route, Some(route_status(1, "edge", is_accepted)))
        })
    };
    let wired = Wired::start(&cluster, settings("example.com/thousand")).await;
    wired.writer.set_leader(true);
    let started = Instant::now();
    wired.want(wishes(true));
    wired.settled().await;
    let took = started.elapsed();
    let report = wired.writer.report();
    assert_eq!(report.total_writes(), COUNT as u64, "{report:#?}");
    // Ten times looser than what is aimed for.
    assert!(took < Duration::from_secs(100), "{took:?}");
    println!("1,000 statuses written in {took:?}");
    let listed = api(&client, Kind::HttpRoute, "thousand")
        .list(&ListParams::default())
        .await
        .unwrap();
    let versions = |list: &kube::api::ObjectList<DynamicObject>| -> Vec<Option<String>> {
        list.items
            .iter()
            .map(|object| object.metadata.resource_version.clone())
            .collect()
    };
    let before = versions(&listed);
    assert!(
        listed
            .items
            .iter()
            .all(|object| object.data["status"]["parents"][0]["conditions"][0]["status"] == "True")
    );
    drop(wired);

    let wired = Wired::start(&cluster, settings("example.com/thousand")).await;
    wired.writer.set_leader(true);
    wired.want(wishes(true));
    wired.settled().await;
    let report = wired.writer.report();
    assert_eq!((report.total_writes(), report.queued), (0, 0), "{report:#?}");
    let listed = api(&client, Kind::HttpRoute, "thousand")
        .list(&ListParams::default())
        .await
        .unwrap();
    assert_eq!(versions(&listed), before);
}

#[tokio::test]
async fn entries_of_two_controllers_that_write_at_once_all_survive() {
    const COUNT: usize = 30;
    const ROUNDS: i64 = 5;
    /// Two that never write the same object at once prove nothing, so they go on until they did.
    const MOST_ROUNDS: i64 = 201;
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "two").await;
    create_routes(&client, "two", COUNT).await;
    let routes = || (0..COUNT).map(|number| name(Kind::HttpRoute, "two", &format!("r{number:04}")));
    let controllers = ["example.com/one", "example.com/two"];
    let have_met = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for controller in controllers {
        let mut wired = Wired::start(&cluster, settings(controller)).await;
        wired.writer.set_leader(true);
        let have_met = Arc::clone(&have_met);
        writers.push(tokio::spawn(async move {
            // The last round is an even one, whose last wish is the one that is expected below.
            let is_last = |round: i64| round >= ROUNDS && round % 2 == 1 && have_met.load(Ordering::SeqCst);
            for round in (0..MOST_ROUNDS).take_while(|round| !is_last(*round)) {
                // Wishes that are overtaken, as a busy planner makes them.
                for odd in [round % 2 == 0, round % 2 == 1] {
                    let wishes = routes().map(|route| (route, Some(route_status(round, "edge", odd))));
                    wired.want(wishes);
                }
                wired.linger(Duration::from_millis(50)).await;
                have_met.fetch_or(wired.writer.report().conflicts > 0, Ordering::SeqCst);
            }
            wired.settled().await;
            wired
        }));
    }
    let mut wired = Vec::new();
    for writer in writers {
        wired.push(writer.await.unwrap());
    }
    let mut conflicts = 0;
    for mut wired in wired {
        wired.caught_up(&client, Kind::HttpRoute, "two").await;
        let report = wired.writer.report();
        assert_eq!(report.failing_count, 0, "{report:#?}");
        conflicts += report.conflicts;
    }
    assert!(conflicts > 0, "the two never met");
    for route in routes() {
        let mut found = entries(&get(&client, &route).await);
        found.sort();
        let expected = controllers.map(|controller| (controller.to_owned(), "False".to_owned()));
        assert_eq!(found, expected, "{route}");
    }
}

#[tokio::test]
async fn a_condition_keeps_its_time_until_its_state_changes() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "times").await;
    create(&client, Kind::HttpRoute, support::route("times", "r")).await;
    let route = name(Kind::HttpRoute, "times", "r");
    // What another process wrote an hour ago.
    let old = "2026-01-01T00:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": old});
    let status = json!({"status": {"parents": [{"controllerName": "example.com/times", "parentRef": {"name": "edge"},
        "conditions": [condition("Accepted"), condition("ResolvedRefs")]}]}});
    let routes = api(&client, Kind::HttpRoute, "times");
    routes
        .patch_status("r", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();

    let mut wired = Wired::start(&cluster, settings("example.com/times")).await;
    wired.writer.set_leader(true);
    wired.want([(route.clone(), Some(route_status(1, "edge", true)))]);
    wired.settled().await;
    let times = async || -> Vec<String> {
        let found = get(&client, &route).await;
        let conditions = found["status"]["parents"][0]["conditions"].as_array().unwrap().clone();
        assert_eq!(found["status"]["parents"].as_array().unwrap().len(), 1);
        conditions
            .iter()
            .map(|condition| condition["lastTransitionTime"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(times().await, [old, old], "only message and generation changed");
    assert_eq!(wired.writer.report().total_writes(), 1);

    wired.want([(route.clone(), Some(route_status(1, "edge", false)))]);
    wired.settled().await;
    let now = times().await;
    assert!(now[0].as_str() > old && now[1] == old, "{now:?}");
    wired.want([(route.clone(), None)]);
    wired.settled().await;
    assert_eq!(get(&client, &route).await["status"]["parents"], json!([]));
    wired.caught_up(&client, Kind::HttpRoute, "times").await;
    assert_eq!(wired.writer.report().total_writes(), 3);
}

#[tokio::test]
async fn what_somebody_else_breaks_is_mended_and_what_is_not_ours_is_cleaned_up() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "mend").await;
    for route in ["ours", "stale"] {
        create(&client, Kind::HttpRoute, support::route("mend", route)).await;
    }
    let entry = |controller: &str| {
        json!({"controllerName": controller, "parentRef": {"name": "edge"}, "conditions": [{"type": "Accepted",
            "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    let write = async |route: &str, status: Value| {
        let routes = api(&client, Kind::HttpRoute, "mend");
        routes
            .patch_status(route, &PatchParams::default(), &Patch::Merge(&status))
            .await
            .unwrap();
    };
    // An entry of ours from before the restart, on a route that is no longer ours.
    write(
        "stale",
        json!({"status": {"parents": [entry("example.com/other"), entry("example.com/mend")]}}),
    )
    .await;
    let mut wired = Wired::start(&cluster, settings("example.com/mend")).await;
    let (ours, stale) = (
        name(Kind::HttpRoute, "mend", "ours"),
        name(Kind::HttpRoute, "mend", "stale"),
    );
    wired.want([(ours.clone(), Some(route_status(1, "edge", true)))]);
    wired.caught_up(&client, Kind::HttpRoute, "mend").await;
    assert_eq!(wired.writer.report().total_writes(), 0, "not the leader");
    wired.writer.set_leader(true);
    wired.settled().await;
    assert_eq!(
        entries(&get(&client, &ours).await),
        [("example.com/mend".to_owned(), "True".to_owned())]
    );
    assert_eq!(
        entries(&get(&client, &stale).await),
        [("example.com/other".to_owned(), "True".to_owned())]
    );

    write("ours", json!({"status": {"parents": []}})).await;
    support::eventually("the entry is back", async || {
        wired.linger(Duration::from_millis(50)).await;
        !entries(&get(&client, &ours).await).is_empty()
    })
    .await;
    wired.writer.set_leader(false);
    write("ours", json!({"status": {"parents": []}})).await;
    wired.caught_up(&client, Kind::HttpRoute, "mend").await;
    assert!(
        entries(&get(&client, &ours).await).is_empty(),
        "who is not the leader writes nothing"
    );
}

#[tokio::test]
async fn a_hundred_edits_end_with_the_newest_status() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "newest").await;
    create_routes(&client, "newest", 10).await;
    let mut wired = Wired::start(&cluster, settings("example.com/newest")).await;
    wired.writer.set_leader(true);
    let routes: Vec<ObjectName> = (0..10)
        .map(|number| name(Kind::HttpRoute, "newest", &format!("r{number:04}")))
        .collect();
    let edits = tokio::spawn({
        let (client, routes) = (client.clone(), routes.clone());
        async move {
            for edit in 0..10 {
                let change = json!({"spec": {"hostnames": [format!("h{edit}.example")]}});
                stream::iter(&routes)
                    .for_each_concurrent(4, async |route| drop(merge(&client, route, &change).await))
                    .await;
            }
        }
    });
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        let batch = tokio::time::timeout(Duration::from_millis(100), wired.followed.watch.next()).await;
        if let Ok(Some(batch)) = batch {
            wired.take(batch);
        }
        let generation = |route: &ObjectName| wired.followed.objects[route].metadata().generation.unwrap();
        let wishes: Vec<_> = routes
            .iter()
            .map(|route| (route.clone(), Some(route_status(generation(route), "edge", true))))
            .collect();
        wired.want(wishes);
        if edits.is_finished() && routes.iter().all(|route| generation(route) == 11) {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "the edits never ended");
    }
    edits.await.unwrap();
    wired.settled().await;
    for route in &routes {
        let found = get(&client, route).await;
        let condition = &found["status"]["parents"][0]["conditions"][0];
        assert_eq!(
            (&condition["observedGeneration"], &found["metadata"]["generation"]),
            (&json!(11), &json!(11))
        );
    }
}
