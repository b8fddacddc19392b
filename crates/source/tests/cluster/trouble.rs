//! Writes that are refused, and differences that no event told.

use std::time::Duration;

use gatewright_api::{Kind, ObjectName};
use gatewright_source::kube::WriterSettings;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::{
    plane::Plane,
    support::{self, SOON, Wired, api, create_routes, entries, get, name, namespace, route_status, settings},
};

#[tokio::test]
async fn a_write_that_is_refused_is_reported_and_tried_again() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    namespace(&client, "refused").await;
    create_routes(&client, "refused", 2).await;
    let reading = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
    support::allow(&client, "scribe", None, reading).await;
    let wired = Wired::start(&plane.cluster_as("scribe").await, settings("example.com/refused")).await;
    wired.writer.set_leader(true);
    let route = name(Kind::HttpRoute, "refused", "r0000");
    wired.want([(route.clone(), Some(route_status(1, "edge", true)))]);
    support::eventually("the failure is reported", async || {
        wired.writer.report().failing_count == 1
    })
    .await;
    let report = wired.writer.report();
    let failing = &report.failing[0];
    assert_eq!(
        (failing.object.as_str(), failing.action, failing.reason.as_str()),
        ("HTTPRoute refused/r0000", "status", "Forbidden")
    );
    assert!(failing.message.contains("cannot patch"), "{}", failing.message);
    assert!(report.failures[&("HTTPRoute", "Forbidden".to_owned())] >= 1);
    assert_eq!(report.total_writes(), 0);

    let writing = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "patch"]}]);
    support::allow(&client, "scribe", None, writing).await;
    support::eventually("it is written", async || wired.writer.report().total_writes() == 1).await;
    assert_eq!(wired.writer.report().failing_count, 0);
    assert_eq!(entries(&get(&client, &route).await).len(), 1);
}

#[tokio::test]
async fn the_regular_comparison_finds_what_no_event_told() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "sweep").await;
    create_routes(&client, "sweep", 3).await;
    let often = WriterSettings {
        sweep: Duration::from_millis(300),
        sweep_moment: Duration::from_millis(300),
        ..settings("example.com/sweep")
    };
    let wired = Wired::start(&cluster, often).await;
    wired.writer.set_leader(true);
    let routes: Vec<ObjectName> = (0..3)
        .map(|number| name(Kind::HttpRoute, "sweep", &format!("r{number:04}")))
        .collect();
    wired.want(
        routes
            .iter()
            .map(|route| (route.clone(), Some(route_status(1, "edge", true)))),
    );
    wired.settled().await;
    // The watch is not read from here on, as if its events were lost. Routes of other tests are behind too.
    let writes = wired.writer.report().total_writes();
    let status = json!({"status": {"parents": []}});
    let api = api(&client, Kind::HttpRoute, "sweep");
    api.patch_status("r0001", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    support::eventually_within(SOON, "the difference is found and mended", async || {
        wired.writer.report().total_writes() > writes && !entries(&get(&client, &routes[1]).await).is_empty()
    })
    .await;
    assert!(wired.writer.report().drift >= 1);
}
