//! A thousand routes: written at once, beside a broken one, and there already when a replica starts.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    bed::{eventually, holds, shared, within},
    install::{Installation, is_ready, kill, metric, name},
    namespace::{Namespace, of_parent, path, plain_route},
    steady::{Steady, Style},
    web::ask,
};

const COUNT: usize = 1000;
/// The aim is a tenth of it; machines that run tests are busy.
const LONGEST: Duration = Duration::from_secs(100);

fn route(index: usize) -> Value {
    let mut route = plain_route(&format!("r{index}"), "big", "echo");
    route["spec"]["hostnames"] = json!([format!("r{index}.example.com")]);
    route
}

/// The version of every object in the namespace that Gatewright writes, and of its class; of Services' EndpointSlices too
/// if asked for.
fn versions(namespace: &Namespace<'_>, class: &str, has_slices: bool) -> BTreeMap<String, Value> {
    let mut versions = BTreeMap::new();
    let mut note = |kind: &str, object: &Value| {
        versions.insert(
            format!("{kind} {}", name(object)),
            object["metadata"]["resourceVersion"].clone(),
        );
    };
    let kinds = ["gateway", "httproute", "service", "endpointslice"];
    for kind in kinds.into_iter().filter(|kind| has_slices || *kind != "endpointslice") {
        for object in namespace.list(kind) {
            note(kind, &object);
        }
    }
    note(
        "gatewayclass",
        &namespace.bed.get(&path("gatewayclass", "", class)).unwrap(),
    );
    assert!(versions.len() > COUNT, "{}", versions.len());
    versions
}

/// Waits until a replica writes, has planned everything and has nothing left to write; says what it has written.
fn written(pod: &Value) -> Vec<(String, u64)> {
    eventually("an idle writer", || {
        let value = |name: &str| metric(pod, name).first().map_or(u64::MAX, |(_, value)| *value);
        let (leads, is_ready) = (value("gatewright_leader"), value("gatewright_ready"));
        let queued = value("gatewright_writes_queued");
        let seen = format!("leader {leads}, ready {is_ready}, queued {queued}");
        holds((leads, is_ready, queued) == (1, 1, 0), seen)
    });
    metric(pod, "gatewright_writes_total")
}

#[test]
fn a_thousand_routes_beside_a_broken_one_are_accepted_and_a_restart_writes_nothing() {
    let bed = shared();
    let installation = Installation::make(bed, "thousand", 1, &[]);
    let namespace = Namespace::make(bed, "thousand");
    let others = Steady::start(namespace.served("others", "thousand"), Style::Fresh);
    namespace.gateway("big", "thousand");
    namespace.backend("echo");
    let address = SocketAddr::new(namespace.programmed("big"), 80);

    let mut broken = route(COUNT);
    broken["metadata"]["name"] = json!("broken");
    broken["spec"]["rules"][0]["backendRefs"][0]["name"] = json!("nowhere");
    namespace.create("httproute", &broken);
    let began = Instant::now();
    bed.create_all(&namespace.path("httproute", ""), (0..COUNT).map(route));
    println!("{COUNT} routes written in {:.1} s", began.elapsed().as_secs_f64());
    let last = Instant::now();
    within(LONGEST, "Accepted of all routes", || {
        let routes = namespace.list("httproute");
        let accepted = |route: &&Value| of_parent(route, "Accepted").0 == "True";
        let count = routes.iter().filter(accepted).count();
        holds(count == COUNT + 2, format!("{count} are"))
    });
    println!(
        "all Accepted {:.1} s after the last was written",
        last.elapsed().as_secs_f64()
    );
    let found = of_parent(&namespace.get("httproute", "broken").unwrap(), "ResolvedRefs");
    assert_eq!(found, ("False".to_owned(), "BackendNotFound".to_owned()));
    namespace.until("gateway", "big", "all routes attached", |gateway| {
        gateway["status"]["listeners"][0]["attachedRoutes"] == COUNT + 1
    });
    let status =
        |index: usize| ask(address, "/", &format!("r{index}.example.com"), &[]).map(|response| response.status);
    for index in [0, COUNT / 2, COUNT - 1] {
        assert_eq!(status(index), Ok(200), "route {index}");
    }
    assert_eq!(status(COUNT), Ok(500), "the broken route");
    others
        .stop()
        .assert_sound("traffic beside a thousand routes and a broken one");

    let pod = &installation.pods()[0];
    let routes = written(pod)
        .into_iter()
        .find(|(labels, _)| labels.contains("HTTPRoute"));
    assert!(routes.is_some_and(|(_, count)| count > 999), "what is counted");
    for name in ["gatewright_write_failures_total", "gatewright_drift_total"] {
        assert_eq!(
            metric(pod, name).iter().map(|(_, value)| *value).sum::<u64>(),
            0,
            "{name}"
        );
    }
    let before = versions(&namespace, "thousand", true);
    killed_and_back(&installation);
    assert_eq!(
        versions(&namespace, "thousand", true),
        before,
        "after a restart in the same pod"
    );
    assert_eq!(status(7), Ok(200));

    let before = versions(&namespace, "thousand", false);
    let others = Steady::start(SocketAddr::new(namespace.programmed("others"), 80), Style::Fresh);
    replaced(&installation);
    assert_eq!(
        versions(&namespace, "thousand", false),
        before,
        "after another pod took its place"
    );
    assert_eq!(status(7), Ok(200));
    others.stop().assert_sound("traffic while the only replica is replaced");
    // Whatever else runs in the cluster need not carry these.
    namespace.bed.delete(&path("namespace", "", "thousand")).unwrap();
}

/// The process is killed, and started again in the same pod: everything is as it was.
fn killed_and_back(installation: &Installation<'_>) {
    let pod = name(&installation.pods()[0]);
    let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap();
    let before = restarts(&installation.pod(&pod));
    kill(&pod);
    let began = Instant::now();
    let after = eventually("the replica's return", || {
        let pod = installation.pod(&pod);
        holds(
            is_ready(&pod) && restarts(&pod) == before + 1,
            pod["status"].to_string(),
        )
        .map(|()| pod)
    });
    println!("ready again {:.1} s after a kill", began.elapsed().as_secs_f64());
    assert_eq!(written(&after), [], "writes after a restart in the same pod");
}

/// Another pod takes its place: only that is to be written.
fn replaced(installation: &Installation<'_>) {
    let old = name(&installation.pods()[0]);
    let deployment = path("deployment", &installation.namespace, "gatewright");
    let began = json!({ "spec": { "template": { "metadata": { "annotations": { "restarted": "once" } } } } });
    installation.bed.patch(&deployment, &began).unwrap();
    let new = eventually("another pod in its place", || {
        let pods = installation.pods();
        let is_new = pods.len() == 1 && name(&pods[0]) != old && is_ready(&pods[0]);
        holds(is_new, format!("{} pods", pods.len())).map(|()| pods.into_iter().next().unwrap())
    });
    let written = written(&new);
    let others: Vec<_> = written
        .iter()
        .filter(|(labels, _)| !labels.contains("EndpointSlice"))
        .collect();
    assert!(others.is_empty(), "writes after another pod took its place: {others:?}");
}
