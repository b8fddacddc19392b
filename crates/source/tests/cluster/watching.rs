//! What the watch says about objects that come, change, go, cannot be read, or may not be seen.

use std::time::Duration;

use futures::{StreamExt, stream};
use gatewright_api::{Kind, Object};
use gatewright_source::kube::{ConnectSettings, Standing, connect};
use kube::api::{ApiResource, DeleteParams, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::{
    plane::Plane,
    support::{self, Followed, allow, api, create, delete, merge, name, namespace},
};

#[tokio::test]
async fn objects_are_listed_and_followed() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    namespace(&client, "follow").await;
    let (route, service) = (name(Kind::HttpRoute, "follow", "r"), name(Kind::Service, "follow", "s"));
    create(&client, Kind::HttpRoute, support::route("follow", "r")).await;
    let mut followed = Followed::synced(&plane.cluster().await, "example.com/follow", &[]).await;
    assert!(followed.has(&route), "what was there is there when synced");
    assert!(followed.has(&name(Kind::Namespace, "", "follow")));
    assert!(
        followed
            .watch
            .states()
            .get()
            .iter()
            .all(|state| state.standing == Standing::Watching)
    );

    create(
        &client,
        Kind::Service,
        json!({"metadata": {"name": "s", "namespace": "follow"}, "spec": {"ports": [{"port": 80}]}}),
    )
    .await;
    followed
        .until("the new Service", |followed| followed.has(&service))
        .await;
    merge(&client, &route, &json!({"spec": {"hostnames": ["b.example"]}})).await;
    followed
        .until("the new hostname", |followed| match followed.objects.get(&route) {
            Some(Object::HttpRoute(route)) => route.spec.hostnames.as_deref() == Some(&["b.example".to_owned()][..]),
            _ => false,
        })
        .await;
    let Some(Object::HttpRoute(read)) = followed.objects.get(&route) else {
        panic!("a route");
    };
    assert_eq!(read.metadata.managed_fields, None, "nobody reads them");
    delete(&client, &route).await;
    followed.until("the deletion", |followed| !followed.has(&route)).await;
}

#[tokio::test]
async fn more_objects_than_a_page_holds_are_all_there_before_the_first_sync() {
    const COUNT: usize = 1201;
    let plane = Plane::shared().await;
    let client = plane.client().await;
    namespace(&client, "paging").await;
    stream::iter(0..COUNT)
        .for_each_concurrent(16, async |number| {
            let object = json!({"metadata": {"name": format!("m{number}"), "namespace": "paging"}});
            create(&client, Kind::Secret, object).await;
        })
        .await;
    let followed = Followed::synced(&plane.cluster().await, "example.com/paging", &[]).await;
    assert_eq!(followed.in_namespace(Kind::Secret, "paging"), COUNT);
}

#[tokio::test]
async fn a_status_that_changes_is_no_change_of_the_declared_object() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    namespace(&client, "quiet").await;
    create(&client, Kind::HttpRoute, support::route("quiet", "r")).await;
    let mut followed = Followed::synced(&plane.cluster().await, "example.com/quiet", &["quiet"]).await;
    followed.observed.clear();
    let routes = api(&client, Kind::HttpRoute, "quiet");
    let status = json!({"status": {"parents": [{"controllerName": "example.com/other", "parentRef": {"name": "edge"},
        "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"}]}]}});
    let parameters = kube::api::PatchParams::default();
    routes
        .patch_status("r", &parameters, &kube::api::Patch::Merge(&status))
        .await
        .unwrap();
    let route = name(Kind::HttpRoute, "quiet", "r");
    let applied = followed.objects.remove(&route).unwrap();
    followed
        .until("the observation", |followed| {
            followed.observed.iter().any(|observed| *observed.name() == route)
        })
        .await;
    assert!(!followed.has(&route), "the route was said again");
    followed.objects.insert(route, applied);
}

#[tokio::test]
async fn kinds_that_are_not_installed_count_as_empty_until_they_are() {
    let plane = Plane::start().await;
    let client = plane.client().await;
    let mut followed = Followed::synced(&plane.cluster().await, "example.com/absent", &[]).await;
    for kind in [Kind::GatewayClass, Kind::HttpRoute, Kind::GatewayConfig] {
        assert_eq!(followed.standing(kind), [Standing::Absent], "{kind}");
    }
    assert_eq!(followed.standing(Kind::Service), [Standing::Watching]);

    // HTTPRoute in a form that lets through what this version does not know, and an older version of ReferenceGrant only.
    let mut definitions = support::gateway_api_definitions();
    definitions.retain(|definition| {
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap();
        ["gatewayclasses", "gateways", "httproutes", "referencegrants"].contains(&plural)
    });
    for definition in &mut definitions {
        let plural = definition["spec"]["names"]["plural"].clone();
        for version in definition["spec"]["versions"].as_array_mut().unwrap() {
            if plural == "httproutes" {
                version["schema"]["openAPIV3Schema"]["properties"]["spec"] =
                    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            }
            if plural == "referencegrants" && version["name"] == "v1" {
                version["served"] = json!(false);
            }
        }
    }
    support::install(&client, definitions).await;
    namespace(&client, "late").await;
    create(&client, Kind::HttpRoute, support::route("late", "good")).await;
    let good = name(Kind::HttpRoute, "late", "good");
    followed
        .until("the route of a kind that came late", |followed| followed.has(&good))
        .await;
    assert_eq!(
        followed.standing(Kind::GatewayConfig),
        [Standing::Absent],
        "still not there"
    );

    older_versions_are_read(&client, &mut followed).await;
    an_object_that_cannot_be_read_harms_no_other(&client, &mut followed).await;

    let definitions = support::definitions_api(&client);
    definitions
        .delete("httproutes.gateway.networking.k8s.io", &DeleteParams::default())
        .await
        .unwrap();
    followed
        .until("the routes are gone with their kind", |followed| !followed.has(&good))
        .await;
    followed.until_standing(Kind::HttpRoute, Standing::Absent).await;
}

async fn older_versions_are_read(client: &kube::Client, followed: &mut Followed) {
    let resource = ApiResource {
        api_version: "gateway.networking.k8s.io/v1beta1".to_owned(),
        version: "v1beta1".to_owned(),
        ..support::resource(Kind::ReferenceGrant)
    };
    let grants: kube::Api<DynamicObject> = kube::Api::namespaced_with(client.clone(), "late", &resource);
    let grant = json!({"apiVersion": resource.api_version, "kind": "ReferenceGrant", "metadata": {"name": "g"},
        "spec": {"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "a"}],
                 "to": [{"group": "", "kind": "Service"}]}});
    grants
        .create(&PostParams::default(), &serde_json::from_value(grant).unwrap())
        .await
        .unwrap();
    let grant = name(Kind::ReferenceGrant, "late", "g");
    followed
        .until("the grant in the older version", |followed| followed.has(&grant))
        .await;
    let version = |followed: &Followed| {
        let states = followed.watch.states().get();
        states
            .iter()
            .find(|state| state.kind == Kind::ReferenceGrant)
            .and_then(|state| state.version)
    };
    assert_eq!(version(followed), Some("v1beta1"));

    let definitions = support::definitions_api(client);
    let mut definition = definitions
        .get("referencegrants.gateway.networking.k8s.io")
        .await
        .unwrap();
    for version in definition.data["spec"]["versions"].as_array_mut().unwrap() {
        version["served"] = json!(true);
    }
    let patch = json!({"spec": {"versions": definition.data["spec"]["versions"]}});
    let parameters = kube::api::PatchParams::default();
    definitions
        .patch(
            "referencegrants.gateway.networking.k8s.io",
            &parameters,
            &kube::api::Patch::Merge(&patch),
        )
        .await
        .unwrap();
    followed
        .until_state(Kind::ReferenceGrant, |state| state.version == Some("v1"))
        .await;
}

async fn an_object_that_cannot_be_read_harms_no_other(client: &kube::Client, followed: &mut Followed) {
    let (good, bad) = (
        name(Kind::HttpRoute, "late", "later"),
        name(Kind::HttpRoute, "late", "bad"),
    );
    let mut strange: Value = support::route("late", "bad");
    strange["spec"]["rules"] = json!([{"filters": [{"type": "Teleport"}]}]);
    create(client, Kind::HttpRoute, strange).await;
    create(client, Kind::HttpRoute, support::route("late", "later")).await;
    followed.until("the good route", |followed| followed.has(&good)).await;
    followed
        .until("the bad route", |followed| followed.invalid.contains_key(&bad))
        .await;
    let (salvaged, error) = &followed.invalid[&bad];
    assert!(error.contains("Teleport"), "{error}");
    let Some(Object::HttpRoute(salvaged)) = salvaged else {
        panic!("its parents are salvaged");
    };
    assert_eq!(salvaged.spec.parent_refs.as_ref().unwrap()[0].name, "edge");
    followed.until_state(Kind::HttpRoute, |state| state.invalid == 1).await;

    // Mended, broken while it was good, and deleted while it is broken.
    merge(client, &bad, &json!({"spec": {"rules": null}})).await;
    followed
        .until("the mended route", |followed| {
            followed.has(&bad) && followed.invalid.is_empty()
        })
        .await;
    merge(
        client,
        &bad,
        &json!({"spec": {"rules": [{"filters": [{"type": "Teleport"}]}]}}),
    )
    .await;
    followed
        .until("the broken route", |followed| followed.invalid.contains_key(&bad))
        .await;
    // A watch that begins now meets the object in its list.
    delete(client, &bad).await;
    followed
        .until("the deletion of the broken route", |followed| {
            followed.invalid.is_empty()
        })
        .await;
}

impl Followed {
    async fn until_standing(&mut self, kind: Kind, standing: Standing) {
        self.until_state(kind, |state| state.standing == standing).await;
    }

    async fn until_state(&mut self, kind: Kind, holds: impl Fn(&gatewright_source::kube::KindState) -> bool) {
        let states = self.watch.states();
        support::eventually(&format!("the state of {kind}"), async || {
            self.linger(Duration::from_millis(20)).await;
            states.get().iter().filter(|state| state.kind == kind).all(&holds)
        })
        .await;
    }
}

fn reading(groups: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": groups, "resources": resources, "verbs": ["get", "list", "watch"]})
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_counts_as_empty_until_it_may() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    namespace(&client, "forbidden").await;
    create(
        &client,
        Kind::Secret,
        json!({"metadata": {"name": "s", "namespace": "forbidden"}}),
    )
    .await;
    let gateway_api = reading(
        &["gateway.networking.k8s.io", "gatewright.dev", "discovery.k8s.io"],
        &["*"],
    );
    let core = reading(&[""], &["services", "namespaces"]);
    allow(&client, "reader", None, json!([gateway_api, core])).await;
    let mut followed = Followed::synced(&plane.cluster_as("reader").await, "example.com/reader", &[]).await;
    assert_eq!(followed.standing(Kind::Secret), [Standing::Forbidden]);
    assert_eq!(followed.standing(Kind::HttpRoute), [Standing::Watching]);
    let states = followed.watch.states().get();
    let error = states
        .iter()
        .find(|state| state.kind == Kind::Secret)
        .unwrap()
        .last_error
        .clone()
        .unwrap();
    assert!(error.contains("cannot list resource \"secrets\""), "{error}");

    let secrets = reading(&[""], &["services", "namespaces", "secrets"]);
    allow(&client, "reader", None, json!([gateway_api, secrets])).await;
    let secret = name(Kind::Secret, "forbidden", "s");
    followed
        .until("the Secret that may be read now", |followed| followed.has(&secret))
        .await;
    assert_eq!(followed.standing(Kind::Secret), [Standing::Watching]);
}

#[tokio::test]
async fn watched_namespaces_limit_routes_and_not_gateways() {
    let plane = Plane::shared().await;
    let client = plane.client().await;
    for name in ["inside", "outside"] {
        namespace(&client, name).await;
        create(&client, Kind::HttpRoute, support::route(name, "r")).await;
        create(&client, Kind::Gateway, support::gateway(name, "g", "c")).await;
        let service = json!({"metadata": {"name": "s", "namespace": name}, "spec": {"ports": [{"port": 80}]}});
        create(&client, Kind::Service, service).await;
    }
    let followed = Followed::synced(&plane.cluster().await, "example.com/limited", &["inside", "inside"]).await;
    assert!(followed.has(&name(Kind::HttpRoute, "inside", "r")));
    assert!(!followed.has(&name(Kind::HttpRoute, "outside", "r")));
    assert!(followed.has(&name(Kind::Gateway, "inside", "g")) && followed.has(&name(Kind::Gateway, "outside", "g")));
    // The address of a Gateway stands in its Service, and backends may be of any namespace.
    assert!(followed.has(&name(Kind::Service, "inside", "s")) && followed.has(&name(Kind::Service, "outside", "s")));

    // Who may read one namespace only still sees what is in it.
    allow(&client, "local", Some("inside"), json!([reading(&["*"], &["*"])])).await;
    let followed = Followed::synced(&plane.cluster_as("local").await, "example.com/local", &["inside"]).await;
    assert!(followed.has(&name(Kind::HttpRoute, "inside", "r")) && followed.has(&name(Kind::Gateway, "inside", "g")));
    assert!(!followed.has(&name(Kind::Gateway, "outside", "g")));
    assert!(!followed.has(&name(Kind::Service, "outside", "s")));
    assert_eq!(followed.standing(Kind::Gateway), [Standing::Watching]);
    assert_eq!(followed.standing(Kind::GatewayClass), [Standing::Forbidden]);
}

#[tokio::test]
async fn without_a_cluster_the_error_says_what_to_do() {
    let settings = ConnectSettings {
        kubeconfig: Some("/nowhere/at/all".into()),
        context: None,
    };
    let error = connect(&settings).await.unwrap_err();
    assert!(error.to_string().contains("kubeconfig /nowhere/at/all"), "{error}");
    assert!(error.hint().contains("kubectl"), "{}", error.hint());
}
