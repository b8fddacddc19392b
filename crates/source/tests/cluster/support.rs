//! What tests of the cluster say often: make objects, wait for a condition, say what a status should be.

use std::{
    fs,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use gatewright_api::{Kind, ObjectName};
use gatewright_source::kube::WriterSettings;
use gatewright_testbed::cluster::{Channel, gateway_api_manifests};
use gatewright_world::{
    desired::{Condition, ConditionKind, ParentStatus, Reason, RouteStatus, Status},
    object::ParentRef,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

pub(crate) use crate::followed::{Followed, Wired};

/// A deadline for what takes a moment on an idle machine: tests share theirs.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFnMut() -> bool) {
    eventually_within(SOON, what, holds).await;
}

pub(crate) async fn eventually_within(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !holds().await {
        assert!(started.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn resource(kind: Kind) -> ApiResource {
    let version = kind.versions()[0];
    let api_version = match kind.group() {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    ApiResource {
        group: kind.group().to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

/// The API of a kind, in a namespace or, if that is empty, everywhere.
pub(crate) fn api(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    if namespace.is_empty() {
        Api::all_with(client.clone(), &resource(kind))
    } else {
        Api::namespaced_with(client.clone(), namespace, &resource(kind))
    }
}

pub(crate) async fn create(client: &Client, kind: Kind, mut value: Value) -> DynamicObject {
    value["apiVersion"] = json!(resource(kind).api_version);
    value["kind"] = json!(kind.as_str());
    let namespace = value["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let object: DynamicObject = serde_json::from_value(value).unwrap();
    api(client, kind, &namespace)
        .create(&PostParams::default(), &object)
        .await
        .unwrap()
}

pub(crate) async fn namespace(client: &Client, name: &str) {
    create(client, Kind::Namespace, json!({"metadata": {"name": name}})).await;
}

pub(crate) async fn merge(client: &Client, name: &ObjectName, change: &Value) -> DynamicObject {
    let api = api(client, name.kind, &name.namespace);
    api.patch(&name.name, &PatchParams::default(), &Patch::Merge(change))
        .await
        .unwrap()
}

pub(crate) async fn get(client: &Client, name: &ObjectName) -> Value {
    let object = api(client, name.kind, &name.namespace).get(&name.name).await.unwrap();
    serde_json::to_value(object).unwrap()
}

pub(crate) async fn delete(client: &Client, name: &ObjectName) {
    let api = api(client, name.kind, &name.namespace);
    api.delete(&name.name, &kube::api::DeleteParams::default())
        .await
        .unwrap();
}

pub(crate) fn name(kind: Kind, namespace: &str, name: &str) -> ObjectName {
    ObjectName {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

pub(crate) fn route(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace},
           "spec": {"parentRefs": [{"name": "edge"}], "hostnames": ["a.example"]}})
}

pub(crate) fn gateway(namespace: &str, gateway: &str, class: &str) -> Value {
    json!({"metadata": {"name": gateway, "namespace": namespace}, "spec": {"gatewayClassName": class,
           "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}]}})
}

pub(crate) fn listener_set(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"parentRef": {"name": "edge"},
           "listeners": [{"name": "web", "port": 80, "protocol": "HTTP"}]}})
}

pub(crate) fn tls_policy(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace},
           "spec": {"targetRefs": [{"group": "", "kind": "Service", "name": "a"}],
                    "validation": {"hostname": "a.example.com", "wellKnownCACertificates": "System"}}})
}

pub(crate) async fn create_routes(client: &Client, namespace: &str, count: usize) {
    stream::iter(0..count)
        .for_each_concurrent(16, async |number| {
            create(client, Kind::HttpRoute, route(namespace, &format!("r{number:04}"))).await;
        })
        .await;
}

/// The definitions of Gateway API, from its published Go module.
pub(crate) fn gateway_api_definitions() -> Vec<Value> {
    let mut definitions = Vec::new();
    for file in gateway_api_manifests(Channel::Experimental).unwrap() {
        let text = fs::read_to_string(file).unwrap();
        for part in text.split("\n---\n") {
            let value: Value = serde_saphyr::from_str(part).unwrap();
            if value["kind"] == "CustomResourceDefinition" {
                definitions.push(value);
            }
        }
    }
    assert!(definitions.len() > 5, "{}", definitions.len());
    definitions
}

fn definition_resource() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}

pub(crate) fn lease_resource() -> ApiResource {
    ApiResource {
        group: "coordination.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "coordination.k8s.io/v1".to_owned(),
        kind: "Lease".to_owned(),
        plural: "leases".to_owned(),
    }
}

pub(crate) fn definitions_api(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &definition_resource())
}

/// Installs definitions and waits until they are served.
pub(crate) async fn install(client: &Client, definitions: Vec<Value>) {
    let api = definitions_api(client);
    let names: Vec<String> = stream::iter(definitions)
        .map(async |definition| {
            let object: DynamicObject = serde_json::from_value(definition).unwrap();
            api.create(&PostParams::default(), &object)
                .await
                .unwrap()
                .metadata
                .name
                .unwrap()
        })
        .buffer_unordered(4)
        .collect()
        .await;
    eventually("all definitions are established", async || {
        let listed = api.list(&ListParams::default()).await.unwrap();
        let is_established = |name: &String| {
            let object = listed
                .items
                .iter()
                .find(|object| object.metadata.name.as_ref() == Some(name));
            let conditions = object.and_then(|object| object.data["status"]["conditions"].as_array());
            conditions.is_some_and(|conditions| {
                conditions
                    .iter()
                    .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
            })
        };
        names.iter().all(is_established)
    })
    .await;
}

/// Gateway API and our own kinds.
pub(crate) async fn install_all(client: &Client) {
    let mut definitions = gateway_api_definitions();
    definitions.extend(gatewright_api::definitions().unwrap());
    install(client, definitions).await;
}

pub(crate) fn settings(controller: &str) -> WriterSettings {
    WriterSettings {
        has_events: false,
        ..WriterSettings::new(controller, "test")
    }
}

pub(crate) fn parent(gateway: &str) -> ParentRef {
    ParentRef {
        group: "gateway.networking.k8s.io".into(),
        kind: "Gateway".into(),
        namespace: None,
        name: gateway.into(),
        section: None,
        port: None,
    }
}

/// The status of a route at one parent.
pub(crate) fn route_status(generation: i64, gateway: &str, is_accepted: bool) -> Status {
    let accepted = if is_accepted {
        Condition::holds(ConditionKind::Accepted, Reason::Accepted, "accepted")
    } else {
        Condition::fails(
            ConditionKind::Accepted,
            Reason::NotAllowedByListeners,
            "no listener lets it in",
        )
    };
    let resolved = Condition::holds(ConditionKind::ResolvedRefs, Reason::ResolvedRefs, "all there");
    Status::Route(RouteStatus {
        generation,
        parents: [ParentStatus {
            parent: parent(gateway),
            conditions: [accepted, resolved].into(),
        }]
        .into(),
        dangling: [].into(),
    })
}

/// Whose entries a route's status has, and what each says first.
pub(crate) fn entries(route: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parents = route["status"]["parents"].as_array().cloned().unwrap_or_default();
    parents
        .iter()
        .map(|entry| (text(&entry["controllerName"]), text(&entry["conditions"][0]["status"])))
        .collect()
}

/// Lets a user do something, everywhere or in one namespace.
pub(crate) async fn allow(client: &Client, user: &str, namespace: Option<&str>, rules: Value) {
    let scope = if namespace.is_some() { "" } else { "Cluster" };
    let make = async |kind: String, plural: String, value: Value| {
        let resource = ApiResource {
            group: "rbac.authorization.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "rbac.authorization.k8s.io/v1".to_owned(),
            kind,
            plural,
        };
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let parameters = PatchParams::apply("test").force();
        api.patch(user, &parameters, &Patch::Apply(&value)).await.unwrap();
    };
    let lower = scope.to_lowercase();
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{scope}Role"),
                      "metadata": {"name": user}, "rules": rules});
    make(format!("{scope}Role"), format!("{lower}roles"), role).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": format!("{scope}RoleBinding"),
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": format!("{scope}Role"), "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    make(format!("{scope}RoleBinding"), format!("{lower}rolebindings"), binding).await;
}
