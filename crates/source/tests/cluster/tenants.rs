//! With rights in some namespaces only, everything works in them, and nothing else is asked for.

use std::time::Duration;

use gatewright_api::Kind;
use gatewright_source::kube::{OwnedKind, OwnedName, OwnedObject, WriterSettings};
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::{
    plane::{Plane, TENANT},
    support::{
        self, Wired, allow, api, create, create_routes, entries, gateway, get, merge, name, namespace, route_status,
        settings,
    },
};

/// What the shipped manifests grant when rights are granted by namespace: in each namespace, or on what belongs to none.
fn rules(kind: &str) -> Value {
    let manifests = include_str!("../../../../deploy/manifests/install-namespaced.yaml");
    let mut objects = manifests
        .split("\n---\n")
        .map(|document| serde_saphyr::from_str::<Value>(document).unwrap());
    let is_role = |object: &Value| object["kind"] == kind && object["metadata"]["name"] == "gatewright";
    objects.find(is_role).unwrap()["rules"].clone()
}

#[tokio::test]
async fn rights_in_some_namespaces_are_enough_and_nothing_is_refused() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    let places = ["tenant-a", "tenant-b"];
    for place in places {
        namespace(&client, place).await;
        allow(&client, TENANT, Some(place), rules("Role")).await;
    }
    allow(&client, TENANT, None, rules("ClusterRole")).await;
    create(&client, Kind::Gateway, gateway("tenant-a", "edge", "c")).await;
    create_routes(&client, "tenant-b", 3).await;
    let (edge, route) = (
        name(Kind::Gateway, "tenant-a", "edge"),
        name(Kind::HttpRoute, "tenant-b", "r0001"),
    );
    let often = WriterSettings {
        namespaces: places.map(str::to_owned).into(),
        owned: vec![OwnedKind::SERVICE, OwnedKind::ENDPOINT_SLICE],
        sweep: Duration::from_millis(300),
        sweep_moment: Duration::from_secs(2),
        ..settings("example.com/tenant")
    };
    let mut wired = Wired::start(&plane.cluster_as(TENANT).await, often).await;
    assert!(wired.followed.has(&edge) && wired.followed.has(&route));
    wired.writer.set_leader(true);
    let owned = OwnedName {
        kind: OwnedKind::SERVICE,
        namespace: "tenant-a".to_owned(),
        name: "entry".to_owned(),
    };
    let wish = OwnedObject {
        owner: edge,
        value: Some(json!({"spec": {"ports": [{"name": "web", "port": 80}]}})),
    };
    wired.writer.own(owned, Some(wish));
    wired.want([(route.clone(), Some(route_status(1, "edge", true)))]);
    support::eventually("the Service is made", async || {
        wired.linger(Duration::from_millis(20)).await;
        api(&client, Kind::Service, "tenant-a")
            .get_opt("entry")
            .await
            .unwrap()
            .is_some()
    })
    .await;
    wired.settled().await;
    assert_eq!(entries(&get(&client, &route).await).len(), 1);

    let service = name(Kind::Service, "tenant-a", "entry");
    merge(
        &client,
        &service,
        &json!({"spec": {"ports": [{"name": "web", "port": 81}]}}),
    )
    .await;
    support::eventually("the edit is undone", async || {
        wired.linger(Duration::from_millis(20)).await;
        get(&client, &service).await["spec"]["ports"][0]["port"] == 80
    })
    .await;
    let before = wired.writer.report().sweeps;
    support::eventually("everything was compared", async || {
        wired.linger(Duration::from_millis(20)).await;
        wired.writer.report().sweeps > before + 1
    })
    .await;
    let report = wired.writer.report();
    assert_eq!((report.drift, report.failing_count), (0, 0), "{report:#?}");
    assert!(report.failures.is_empty(), "{report:#?}");

    let asked = plane.asked();
    assert!(
        asked.iter().any(|(request, _)| request == "list services tenant-a"),
        "{asked:#?}"
    );
    let refused: Vec<_> = asked.iter().filter(|(_, code)| *code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");

    // What is refused would have been in the log.
    let tenant = plane.cluster_as(TENANT).await.client();
    let refusal = api(&tenant, Kind::Service, "").list(&ListParams::default()).await;
    assert!(refusal.is_err());
    support::eventually("the refusal is in the log", async || {
        plane.asked().contains(&("list services ".to_owned(), 403))
    })
    .await;
}
