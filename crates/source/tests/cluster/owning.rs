//! The life of objects that the plan wants to exist.

use gatewright_api::{Kind, ObjectName};
use gatewright_source::kube::{OwnedKind, OwnedName, OwnedObject, WriterSettings};
use serde_json::{Value, json};

use crate::{
    plane::Plane,
    support::{self, Wired, api, create, delete, get, merge, name, namespace, settings},
};

fn owning(controller: &str) -> WriterSettings {
    WriterSettings {
        owned: vec![OwnedKind::SERVICE, OwnedKind::CONFIG_MAP],
        ..settings(controller)
    }
}

fn service(namespace: &str, service: &str) -> OwnedName {
    OwnedName {
        kind: OwnedKind::SERVICE,
        namespace: namespace.to_owned(),
        name: service.to_owned(),
    }
}

fn wish(owner: &ObjectName, port: u16) -> OwnedObject {
    OwnedObject {
        owner: owner.clone(),
        value: Some(json!({
            "metadata": {"labels": {"tier": "edge"}},
            "spec": {"type": "ClusterIP", "ports": [{"name": "web", "port": port}]},
        })),
    }
}

async fn gateway(client: &kube::Client, namespace: &str, gateway: &str) -> ObjectName {
    let value = support::gateway(namespace, gateway, "c");
    create(client, Kind::Gateway, value).await;
    name(Kind::Gateway, namespace, gateway)
}

fn port(service: &Value) -> u64 {
    service["spec"]["ports"][0]["port"].as_u64().unwrap()
}

#[tokio::test]
async fn an_owned_object_is_made_mended_changed_and_deleted() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "owned").await;
    let edge = gateway(&client, "owned", "edge").await;
    let uid = get(&client, &edge).await["metadata"]["uid"].clone();
    let wired = Wired::start(&cluster, owning("example.com/owned")).await;
    wired.writer.set_leader(true);
    let (owned, object) = (service("owned", "entry"), name(Kind::Service, "owned", "entry"));
    wired.writer.own(owned.clone(), Some(wish(&edge, 80)));
    wired.writer.planned();
    let exists = async || {
        api(&client, Kind::Service, "owned")
            .get_opt("entry")
            .await
            .unwrap()
            .is_some()
    };
    support::eventually("it is made", exists).await;
    wired.settled().await;
    let found = get(&client, &object).await;
    assert_eq!(
        found["metadata"]["labels"],
        json!({"app.kubernetes.io/managed-by": "gatewright", "tier": "edge"})
    );
    let reference = &found["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&reference["kind"], &reference["uid"], &reference["controller"]),
        (&json!("Gateway"), &uid, &json!(true))
    );
    assert_eq!(wired.writer.report().total_writes(), 1);

    // Edited by hand: what we want is put right, what others add stays.
    let edit = json!({"metadata": {"annotations": {"note": "mine"}}, "spec": {"ports": [{"name": "web", "port": 81}]}});
    merge(&client, &object, &edit).await;
    support::eventually("the edit is undone", async || port(&get(&client, &object).await) == 80).await;
    assert_eq!(get(&client, &object).await["metadata"]["annotations"]["note"], "mine");
    merge(
        &client,
        &object,
        &json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}),
    )
    .await;
    support::eventually("the label is back", async || {
        get(&client, &object).await["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "gatewright"
    })
    .await;
    // An addition of somebody else's is no reason to write. What happens to another Service after it is told after it.
    let (later, later_object) = (service("owned", "later"), name(Kind::Service, "owned", "later"));
    wired.writer.own(later.clone(), Some(wish(&edge, 90)));
    support::eventually("the other is made", async || {
        let found = api(&client, Kind::Service, "owned").get_opt("later").await.unwrap();
        found.is_some()
    })
    .await;
    wired.settled().await;
    let writes = wired.writer.report().total_writes();
    merge(
        &client,
        &object,
        &json!({"metadata": {"annotations": {"note": "yours"}}}),
    )
    .await;
    merge(
        &client,
        &later_object,
        &json!({"spec": {"ports": [{"name": "web", "port": 91}]}}),
    )
    .await;
    support::eventually("the other is mended", async || {
        port(&get(&client, &later_object).await) == 90
    })
    .await;
    wired.settled().await;
    let report = wired.writer.report();
    assert_eq!(report.total_writes(), writes + 1, "{report:#?}");
    wired.writer.own(later, None);

    // Wanted otherwise, with a label less.
    let mut other = wish(&edge, 82);
    other.value.as_mut().unwrap()["metadata"] = json!({});
    wired.writer.own(owned.clone(), Some(other));
    support::eventually("it is changed", async || port(&get(&client, &object).await) == 82).await;
    support::eventually("the label that is no longer wanted is gone", async || {
        get(&client, &object).await["metadata"]["labels"]["tier"] == Value::Null
    })
    .await;
    delete(&client, &object).await;
    support::eventually("what was deleted by hand is made again", exists).await;
    wired.settled().await;
    // Neither changed nor deleted.
    let kept = OwnedObject {
        owner: edge.clone(),
        value: None,
    };
    wired.writer.own(owned.clone(), Some(kept));
    wired.settled().await;
    assert!(exists().await);
    wired.writer.own(owned, None);
    support::eventually("it is deleted", async || !exists().await).await;
    assert_eq!(wired.writer.report().failing_count, 0);
}

#[tokio::test]
async fn a_restart_writes_nothing_and_deletes_what_is_no_longer_planned() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "again").await;
    let edge = gateway(&client, "again", "edge").await;
    let names = ["kept", "dropped"];
    let wired = Wired::start(&cluster, owning("example.com/again")).await;
    wired.writer.set_leader(true);
    for service_name in names {
        wired.writer.own(service("again", service_name), Some(wish(&edge, 80)));
    }
    wired.writer.planned();
    support::eventually("both are made", async || wired.writer.report().total_writes() == 2).await;
    drop(wired);

    // Another installation in the same cluster leaves them alone.
    let other = Wired::start(&cluster, owning("example.com/other-installation")).await;
    other.writer.set_leader(true);
    other.writer.own(service("again", "others"), Some(wish(&edge, 80)));
    other.writer.planned();
    // It makes nothing before it has seen everything.
    support::eventually("its own is made", async || other.writer.report().total_writes() > 0).await;
    other.settled().await;
    let report = other.writer.report();
    assert_eq!(report.total_writes(), 1, "{report:#?}");
    drop(other);

    let version = get(&client, &name(Kind::Service, "again", "kept")).await["metadata"]["resourceVersion"].clone();
    let wired = Wired::start(&cluster, owning("example.com/again")).await;
    wired.writer.set_leader(true);
    wired.writer.own(service("again", "kept"), Some(wish(&edge, 80)));
    wired.writer.planned();
    let services = api(&client, Kind::Service, "again");
    support::eventually("the other is deleted", async || {
        services.get_opt("dropped").await.unwrap().is_none()
    })
    .await;
    wired.settled().await;
    let report = wired.writer.report();
    assert_eq!(report.writes.get(&("Service", "delete")), Some(&1), "{report:#?}");
    assert_eq!(report.total_writes(), 1);
    assert_eq!(
        get(&client, &name(Kind::Service, "again", "kept")).await["metadata"]["resourceVersion"],
        version
    );
}

#[tokio::test]
async fn an_object_of_somebody_else_is_never_touched_and_one_of_our_parent_is_adopted() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "foreign").await;
    let edge = gateway(&client, "foreign", "edge").await;
    let uid = get(&client, &edge).await["metadata"]["uid"].clone();
    let plain = json!({"metadata": {"name": "entry", "namespace": "foreign"}, "spec": {"ports": [{"port": 99}]}});
    create(&client, Kind::Service, plain.clone()).await;
    let mut child = plain;
    child["metadata"]["name"] = json!("child");
    child["metadata"]["ownerReferences"] = json!([{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "name": "edge", "uid": uid, "controller": true}]);
    create(&client, Kind::Service, child).await;
    let foreign = name(Kind::Service, "foreign", "entry");
    let before = get(&client, &foreign).await;

    let wired = Wired::start(&cluster, owning("example.com/foreign")).await;
    wired.writer.set_leader(true);
    for owned in ["entry", "child"] {
        wired.writer.own(service("foreign", owned), Some(wish(&edge, 80)));
    }
    wired.writer.planned();
    let mut conflicts = wired.writer.conflicts();
    let found = tokio::time::timeout(support::SOON, conflicts.wait_for(|conflicts| !conflicts.is_empty())).await;
    let found = found.unwrap().unwrap().clone();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].name, &found[0].owner), (&service("foreign", "entry"), &edge));
    assert!(
        found[0].message.contains("exists and is not ours"),
        "{}",
        found[0].message
    );
    assert_eq!(get(&client, &foreign).await, before, "not a byte of it has changed");
    support::eventually("the child is adopted", async || {
        port(&get(&client, &name(Kind::Service, "foreign", "child")).await) == 80
    })
    .await;

    // When the name is free, ours is made and the conflict is over.
    delete(&client, &foreign).await;
    support::eventually("ours is made", async || {
        let found = api(&client, Kind::Service, "foreign").get_opt("entry").await.unwrap();
        found.is_some_and(|found| found.data["spec"]["ports"][0]["port"] == 80)
    })
    .await;
    let over = tokio::time::timeout(support::SOON, conflicts.wait_for(|conflicts| conflicts.is_empty())).await;
    assert!(over.is_ok_and(|over| over.is_ok()));
}
