//! What the writer does to Gateways, their classes, ListenerSets and policies, and the Events that it tells.

use std::time::Duration;

use gatewright_api::Kind;
use gatewright_source::kube::WriterSettings;
use gatewright_world::{
    Key,
    desired::{
        ClassStatus, Condition, ConditionKind, GatewayStatus, ListenerStatus, PolicyStatus, Reason, SetStatus, Status,
    },
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    plane::Plane,
    support::{self, Wired, api, create, delete, gateway, get, name, namespace, settings},
};

fn gateway_status(generation: i64, reason: Reason) -> Status {
    let programmed = match reason {
        Reason::Programmed => Condition::holds(ConditionKind::Programmed, reason, "serving"),
        _ => Condition::fails(ConditionKind::Programmed, reason, "it cannot be served"),
    };
    Status::Gateway(GatewayStatus {
        generation,
        addresses: Vec::new(),
        attached_sets: 0,
        conditions: vec![
            Condition::holds(ConditionKind::Accepted, Reason::Accepted, "valid"),
            programmed,
        ],
        listeners: Vec::new(),
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

#[tokio::test]
async fn gateways_and_classes_show_their_status_and_a_used_class_is_kept() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "whole").await;
    let (class, edge) = (
        name(Kind::GatewayClass, "", "whole"),
        name(Kind::Gateway, "whole", "edge"),
    );
    create(
        &client,
        Kind::GatewayClass,
        json!({"metadata": {"name": "whole"}, "spec": {"controllerName": "example.com/whole"}}),
    )
    .await;
    create(&client, Kind::Gateway, gateway("whole", "edge", "whole")).await;
    let mut wired = Wired::start(&cluster, settings("example.com/whole")).await;
    wired.writer.set_leader(true);
    let accepted = Status::GatewayClass(ClassStatus {
        features: &[],
        generation: 1,
        conditions: vec![Condition::holds(ConditionKind::Accepted, Reason::Accepted, "ours")],
    });
    wired.writer.keep_class("whole", true);
    wired.want([
        (class.clone(), Some(accepted)),
        (edge.clone(), Some(gateway_status(1, Reason::Programmed))),
    ]);
    wired.settled().await;
    let found = get(&client, &class).await;
    assert_eq!(condition(&found, "Accepted")["status"], "True");
    assert_eq!(
        found["metadata"]["finalizers"],
        json!(["gateway-exists-finalizer.gateway.networking.k8s.io"])
    );
    let found = get(&client, &edge).await;
    assert_eq!(condition(&found, "Programmed")["status"], "True");
    assert_ne!(
        condition(&found, "Programmed")["lastTransitionTime"],
        "1970-01-01T00:00:00Z"
    );

    // Somebody's own condition stays beside ours.
    let mut conditions = found["status"]["conditions"].as_array().unwrap().clone();
    conditions.push(
        json!({"type": "example.com/Painted", "status": "True", "reason": "Blue", "message": "",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"}),
    );
    let gateways = api(&client, Kind::Gateway, "whole");
    let status = json!({"status": {"conditions": conditions}});
    gateways
        .patch_status("edge", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();
    wired.caught_up(&client, Kind::Gateway, "whole").await;
    let writes = wired.writer.report().total_writes();
    wired.want([(edge.clone(), Some(gateway_status(1, Reason::Invalid)))]);
    wired.settled().await;
    assert_eq!(
        wired.writer.report().total_writes(),
        writes + 1,
        "what others add is no reason to write"
    );
    let found = get(&client, &edge).await;
    assert_eq!(condition(&found, "example.com/Painted")["reason"], "Blue");
    assert_eq!(condition(&found, "Programmed")["status"], "False");

    // No longer ours: what we said is taken back, unless somebody else has said something since.
    wired.want([(edge.clone(), None)]);
    wired.settled().await;
    let found = get(&client, &edge).await;
    assert_eq!(condition(&found, "Programmed")["status"], "Unknown", "{found:#}");

    delete(&client, &class).await;
    assert!(
        get(&client, &class).await["metadata"]["deletionTimestamp"].is_string(),
        "kept by the finalizer"
    );
    wired.writer.keep_class("whole", false);
    let classes = api(&client, Kind::GatewayClass, "");
    support::eventually("the class is gone with its last Gateway", async || {
        wired.linger(Duration::from_millis(20)).await;
        classes.get_opt("whole").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test]
async fn listener_sets_show_their_listeners_and_policies_our_ancestors_beside_those_of_others() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "sets").await;
    let (set, policy) = (
        name(Kind::ListenerSet, "sets", "more"),
        name(Kind::BackendTlsPolicy, "sets", "private"),
    );
    create(&client, Kind::ListenerSet, support::listener_set("sets", "more")).await;
    create(&client, Kind::BackendTlsPolicy, support::tls_policy("sets", "private")).await;
    let theirs = json!({"controllerName": "example.com/other", "ancestorRef": {"name": "elsewhere"}, "conditions": [{
        "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let policies = api(&client, Kind::BackendTlsPolicy, "sets");
    let status = json!({"status": {"ancestors": [theirs]}});
    policies
        .patch_status("private", &PatchParams::default(), &Patch::Merge(&status))
        .await
        .unwrap();

    let mut wired = Wired::start(&cluster, settings("example.com/sets")).await;
    wired.writer.set_leader(true);
    let accepted = || Condition::holds(ConditionKind::Accepted, Reason::Accepted, "valid");
    let shown = Status::ListenerSet(SetStatus {
        generation: 1,
        conditions: vec![
            accepted(),
            Condition::holds(ConditionKind::Programmed, Reason::Programmed, "serving"),
        ],
        listeners: vec![ListenerStatus {
            name: "web".into(),
            attached: 2,
            kinds: vec!["HTTPRoute"],
            conditions: vec![accepted()],
        }],
    });
    let ours = Status::Policy(PolicyStatus {
        generation: 1,
        gateways: [Key::new("infra", "edge")].into(),
        conditions: [accepted()].into(),
    });
    wired.want([(set.clone(), Some(shown)), (policy.clone(), Some(ours))]);
    wired.settled().await;
    let found = get(&client, &set).await;
    assert_eq!(condition(&found, "Programmed")["status"], "True");
    assert_eq!(found["status"]["listeners"][0]["attachedRoutes"], 2);
    let ancestors = |policy: &Value| -> Vec<Value> {
        let ancestors = policy["status"]["ancestors"].as_array().unwrap().iter();
        ancestors.map(|ancestor| ancestor["controllerName"].clone()).collect()
    };
    let found = get(&client, &policy).await;
    assert_eq!(ancestors(&found), ["example.com/other", "example.com/sets"]);
    assert_eq!(found["status"]["ancestors"][1]["ancestorRef"]["namespace"], "infra");

    // What we wrote comes back through the watch and is no reason to write again.
    for kind in [Kind::ListenerSet, Kind::BackendTlsPolicy] {
        wired.caught_up(&client, kind, "sets").await;
    }
    assert_eq!(wired.writer.report().total_writes(), 2);
    wired.want([(set.clone(), None), (policy.clone(), None)]);
    wired.settled().await;
    let found = get(&client, &set).await;
    for kind in ["Accepted", "Programmed"] {
        assert_eq!(condition(&found, kind)["status"], "Unknown", "{found:#}");
    }
    assert_eq!(found["status"].get("listeners"), None, "{found:#}");
    assert_eq!(ancestors(&get(&client, &policy).await), ["example.com/other"]);
}

#[tokio::test]
async fn trouble_and_its_end_are_told_as_events_and_not_twice() {
    let plane = Plane::shared().await;
    let (cluster, client) = (plane.cluster().await, plane.client().await);
    namespace(&client, "events").await;
    create(&client, Kind::Gateway, gateway("events", "edge", "c")).await;
    let edge = name(Kind::Gateway, "events", "edge");
    let wired = Wired::start(&cluster, WriterSettings::new("example.com/events", "replica-1")).await;
    wired.writer.set_leader(true);
    for reason in [Reason::Programmed, Reason::Invalid, Reason::Programmed, Reason::Invalid] {
        wired.want([(edge.clone(), Some(gateway_status(1, reason)))]);
        wired.settled().await;
    }
    let resource = ApiResource {
        group: "events.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "events.k8s.io/v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
    };
    let events: Api<DynamicObject> = Api::namespaced_with(client.clone(), "events", &resource);
    support::eventually("two Events", async || wired.writer.report().events == 2).await;
    let mut told: Vec<(Value, Value, Value)> = Vec::new();
    for event in events.list(&ListParams::default()).await.unwrap() {
        assert_eq!(event.data["regarding"]["name"], "edge");
        assert_eq!(event.data["reportingInstance"], "replica-1");
        told.push((
            event.data["type"].clone(),
            event.data["reason"].clone(),
            event.data["note"].clone(),
        ));
    }
    told.sort_by_key(|(kind, _, _)| kind.to_string());
    let expected = [
        (json!("Normal"), json!("Programmed"), json!("serving")),
        (json!("Warning"), json!("Invalid"), json!("it cannot be served")),
    ];
    assert_eq!(told, expected);
    assert_eq!(wired.writer.report().events_dropped, 2, "one of a kind in a minute");
}
