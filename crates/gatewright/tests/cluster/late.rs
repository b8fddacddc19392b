//! A cluster whose parts come late or go away: the kinds of Gateway API, and the API server.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gatewright_testbed::cluster::{Channel, gateway_api_manifests};
use serde_json::Value;

use crate::{
    bed::{Bed, eventually, holds, root, within},
    install::{Installation, kill, metric, name, probes},
    namespace::{CLASS, Namespace, path, until_status},
    steady::{Steady, Style},
    web,
};

/// Longer than every Lease.
const OUTAGE: Duration = Duration::from_secs(20);

/// A cluster that began without the kinds of Gateway API.
struct Late {
    bed: Bed,
    /// The replicas as they were before these kinds came.
    replicas: Vec<Value>,
}

/// The cluster, for one test at a time.
fn late() -> (&'static Late, MutexGuard<'static, ()>) {
    static TURN: Mutex<()> = Mutex::new(());
    static LATE: LazyLock<Late> = LazyLock::new(begin);
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (&LATE, turn)
}

fn begin() -> Late {
    let bed = Bed::start("gatewright-late", None);
    let manifests = root().join("deploy/manifests/install.yaml");
    let install = ["apply", "--server-side", "--filename", manifests.to_str().unwrap()];
    let refusal = bed.kubectl(&install).unwrap_err();
    assert!(refusal.contains("GatewayClass"), "only the class is refused: {refusal}");
    let replicas = Installation::shared(&bed).until_ready(2);
    for manifest in gateway_api_manifests(Channel::Standard).unwrap() {
        bed.kubectl(&["apply", "--server-side", "--filename", manifest.to_str().unwrap()])
            .unwrap();
    }
    bed.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"])
        .unwrap();
    bed.kubectl(&install).unwrap();
    Late { bed, replicas }
}

fn restarts(pods: &[Value]) -> BTreeMap<String, Value> {
    let count = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].clone();
    pods.iter().map(|pod| (name(pod), count(pod))).collect()
}

#[test]
fn kinds_that_are_installed_later_are_picked_up_without_a_restart() {
    let (late, _turn) = late();
    let namespace = Namespace::make(&late.bed, "late");
    let began = Instant::now();
    let address = namespace.served("door", CLASS);
    println!("served {:.1} s after the kinds came", began.elapsed().as_secs_f64());
    until_status(address, "/", 200);
    let now = Installation::shared(&late.bed).pods();
    assert_eq!(restarts(&now), restarts(&late.replicas));
}

/// The version of everything that Gatewright writes in a namespace, and of its class.
fn versions(namespace: &Namespace<'_>) -> BTreeMap<String, Value> {
    let mut versions = BTreeMap::new();
    let mut note = |kind: &str, object: &Value| {
        versions.insert(
            format!("{kind} {}", name(object)),
            object["metadata"]["resourceVersion"].clone(),
        );
    };
    for kind in ["gateway", "httproute", "service", "endpointslice"] {
        for object in namespace.list(kind) {
            note(kind, &object);
        }
    }
    note(
        "gatewayclass",
        &namespace.bed.get(&path("gatewayclass", "", CLASS)).unwrap(),
    );
    versions
}

/// Waits until every replica watches everything again and one of them writes.
fn until_at_work(installation: &Installation<'_>) {
    eventually("replicas at work", || {
        let mut writers = 0;
        for pod in installation.pods() {
            let watches = metric(&pod, "gatewright_watches");
            let is_followed = |labels: &str| labels.contains("\"watching\"") || labels.contains("\"absent\"");
            let astray: Vec<_> = watches.iter().filter(|(labels, _)| !is_followed(labels)).collect();
            holds(astray.is_empty() && !watches.is_empty(), format!("{astray:?}"))?;
            let value = |name: &str| metric(&pod, name).first().map_or(u64::MAX, |(_, value)| *value);
            writers += usize::from(value("gatewright_leader") == 1);
            holds(value("gatewright_writes_queued") == 0, "something is to be written")?;
            holds(value("gatewright_replicas") > 1, "a replica is not known")?;
        }
        holds(writers == 1, format!("{writers} writers"))
    });
}

/// Takes the API server away for long, under load, and brings it back: traffic goes on, and nothing is written again.
/// Returns where the Gateway answers, and what was there.
fn outlive(
    namespace: &Namespace<'_>,
    installation: &Installation<'_>,
    take: impl FnOnce(),
    bring: impl FnOnce(),
) -> (SocketAddr, BTreeMap<String, Value>) {
    let address = namespace.served("door", CLASS);
    until_at_work(installation);
    let before = versions(namespace);
    let clients = [Style::Fresh, Style::Kept].map(|style| Steady::start(address, style));
    take();
    let began = Instant::now();
    within(OUTAGE * 2, "the end of a long outage", || {
        holds(began.elapsed() > OUTAGE, format!("{:?}", began.elapsed()))
    });
    bring();
    let back = Instant::now();
    until_at_work(installation);
    println!(
        "at work again {:.1} s after the API server came back",
        back.elapsed().as_secs_f64()
    );
    assert_eq!(versions(namespace), before, "what was right was written again");
    for client in clients {
        client.stop().assert_sound("traffic without the API server");
    }
    (address, before)
}

#[test]
fn while_the_api_server_neither_answers_nor_refuses_traffic_goes_on_and_nothing_is_rewritten() {
    let (late, _turn) = late();
    let installation = Installation::shared(&late.bed);
    let namespace = Namespace::make(&late.bed, "frozen");
    let freeze = |is_frozen| late.bed.cluster.freeze_api_server(is_frozen).unwrap();
    outlive(&namespace, &installation, || freeze(true), || freeze(false));
}

#[test]
fn without_the_api_server_traffic_goes_on_and_a_replica_that_starts_waits_for_it() {
    let (late, _turn) = late();
    let bed = &late.bed;
    let installation = Installation::shared(bed);
    let namespace = Namespace::make(bed, "outage");
    let stop = || bed.cluster.stop_api_server().unwrap();
    let start = || bed.cluster.start_api_server().unwrap();
    let (address, before) = outlive(&namespace, &installation, stop, start);

    let pod = installation.pods().remove(0);
    let ready = || web::get(probes(&pod), "/readyz").map(|response| (response.status, response.body().to_owned()));
    assert_eq!(ready().unwrap().0, 200);
    stop();
    kill(&name(&pod));
    let (_, reason) = eventually("a replica that starts and is not ready", || {
        let answer = ready()?;
        holds(answer.0 == 503, format!("{answer:?}")).map(|()| answer)
    });
    println!("not ready without an API server: {}", reason.trim());
    let alive = web::get(probes(&pod), "/healthz").unwrap();
    assert_eq!(alive.status, 200, "but alive");
    until_status(address, "/", 200);
    start();
    eventually("readiness", || {
        let answer = ready()?;
        holds(answer.0 == 200, format!("{answer:?}"))
    });
    until_at_work(&installation);
    // It was away longer than its Lease lasts, so that Services may have been without it for a moment.
    let but_slices = |versions: BTreeMap<String, Value>| {
        let kept = versions
            .into_iter()
            .filter(|(name, _)| !name.starts_with("endpointslice"));
        kept.collect::<Vec<_>>()
    };
    assert_eq!(but_slices(versions(&namespace)), but_slices(before));
}
