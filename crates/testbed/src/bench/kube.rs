//! How soon a cluster shows what became of a thousand routes written at once, and what a restart writes.
//!
//! A cluster of the testbed with Gatewright installed from its own manifests, two replicas, as a user has it. Everything
//! runs on this machine: API server, etcd, both replicas and the client share its processors.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams},
    runtime::watcher,
};
use serde_json::{Value, json};

use super::Effort;
use crate::{
    cluster::{Cluster, Options},
    figures::Figures,
    programs::{self, Programs},
    say,
};

/// Routes written at once.
const ROUTES: usize = 1_000;
/// Writes under way at the same time: no more would make the API server faster.
const WRITERS: usize = 32;
/// Whatever takes longer is broken, not slow.
const PATIENCE: Duration = Duration::from_mins(2);

/// What the routes attach to.
const FRONT: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: front, namespace: default }
spec:
  gatewayClassName: gatewright
  listeners:
  - { name: http, protocol: HTTP, port: 80 }
---
apiVersion: v1
kind: Service
metadata: { name: backend, namespace: default }
spec:
  ports:
  - port: 80
";

/// Measures.
pub fn run(programs: &Programs, effort: Effort) -> anyhow::Result<Figures> {
    say("cluster: starting one, with Gatewright installed");
    let cluster = Cluster::start(Options::new("bench", &programs.gatewright))?;
    let result = measure_on(&cluster, effort);
    let stopped = cluster.stop();
    let figures = result?;
    stopped?;
    Ok(figures)
}

fn measure_on(cluster: &Cluster, effort: Effort) -> anyhow::Result<Figures> {
    let manifests = programs::workspace().join("deploy/manifests/install.yaml");
    let manifests = std::fs::read_to_string(&manifests).with_context(|| format!("{}", manifests.display()))?;
    cluster.apply(&manifests)?;
    cluster.apply(FRONT)?;
    cluster.run_kubectl(["wait", "--timeout=60s", "--for=condition=Programmed", "gateway/front"])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut figures = Figures::default();
    let (mut accepted, mut written) = (Vec::new(), Vec::new());
    for round in 1..=effort.rounds {
        let (write, accept) = runtime.block_on(async {
            let routes = routes(cluster.client().await?);
            let times = tokio::time::timeout(PATIENCE, one_round(&routes)).await;
            let times = times.context("the routes were not all accepted in time")?;
            clear(&routes).await?;
            times
        })?;
        say(format_args!(
            "cluster, round {round}: {ROUTES} routes written in {:.2} s, all accepted {:.2} s after the last",
            write.as_secs_f64(),
            accept.as_secs_f64()
        ));
        written.push(write.as_secs_f64());
        accepted.push(accept.as_secs_f64());
    }
    figures.add("kube.write_1k_s", "s", written);
    figures.add("kube.accept_1k_s", "s", accepted);
    Ok(figures)
}

fn routes(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute");
    Api::namespaced_with(client, "default", &ApiResource::from_gvk(&kind))
}

/// How long writing took, and how much longer it took until the last one was accepted.
async fn one_round(routes: &Api<DynamicObject>) -> anyhow::Result<(Duration, Duration)> {
    let mut events = Box::pin(watcher(routes.clone(), watcher::Config::default()));
    // Nothing is written before the watch stands.
    while !matches!(
        events.next().await.context("the watch ended")??,
        watcher::Event::InitDone
    ) {}
    let started = Instant::now();
    let write = async {
        let writes = stream::iter(0..ROUTES).map(|index| async move {
            let route: DynamicObject = serde_json::from_value(route(index))?;
            routes.create(&PostParams::default(), &route).await?;
            anyhow::Ok(())
        });
        writes.buffer_unordered(WRITERS).try_collect::<Vec<()>>().await?;
        anyhow::Ok(Instant::now())
    };
    let accept = async {
        let mut accepted = HashSet::new();
        while accepted.len() < ROUTES {
            match events.next().await.context("the watch ended")?? {
                watcher::Event::Apply(route) if is_accepted(&route.data) => {
                    accepted.insert(route.metadata.name);
                }
                _ => {}
            }
        }
        anyhow::Ok(Instant::now())
    };
    let (last_write, last_accepted) = tokio::try_join!(write, accept)?;
    Ok((
        last_write - started,
        last_accepted.saturating_duration_since(last_write),
    ))
}

fn route(index: usize) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": { "name": format!("route-{index}"), "namespace": "default" },
        "spec": {
            "parentRefs": [{ "name": "front" }],
            "hostnames": [format!("host-{index}.example.com")],
            "rules": [{
                "matches": [{ "path": { "type": "PathPrefix", "value": format!("/{index}") } }],
                "backendRefs": [{ "name": "backend", "port": 80 }],
            }],
        },
    })
}

fn is_accepted(route: &Value) -> bool {
    let parents = route.pointer("/status/parents").and_then(Value::as_array);
    let mut conditions = parents
        .into_iter()
        .flatten()
        .filter_map(|parent| parent.get("conditions")?.as_array())
        .flatten();
    conditions.any(|condition| condition["type"] == "Accepted" && condition["status"] == "True")
}

/// Removes the routes, so that every round begins alike.
async fn clear(routes: &Api<DynamicObject>) -> anyhow::Result<()> {
    routes
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    let end = Instant::now() + PATIENCE;
    while !routes
        .list_metadata(&ListParams::default().limit(1))
        .await?
        .items
        .is_empty()
    {
        if Instant::now() > end {
            bail!("the routes of a round cannot be removed");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
