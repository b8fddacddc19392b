//! Clusters that serve nothing newer than an older version of a kind, and get the newer one later.

use std::time::Duration;

use gatewright_api::{Kind, Object};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    plane::Plane,
    support::{self, Followed, name},
};

/// What older versions there are, and what is declared in them.
fn older() -> Vec<(Kind, &'static str, Value)> {
    let route = json!({"parentRefs": [{"name": "edge"}], "rules": [{"backendRefs": [{"name": "a", "port": 1}]}]});
    let policy = json!({"targetRefs": [{"group": "", "kind": "Service", "name": "a"}],
                        "validation": {"hostname": "a.example.com", "wellKnownCACertificates": "System"}});
    vec![
        (Kind::TlsRoute, "v1alpha2", route.clone()),
        (Kind::TcpRoute, "v1alpha2", route.clone()),
        (Kind::UdpRoute, "v1alpha2", route),
        (Kind::BackendTlsPolicy, "v1alpha3", policy),
    ]
}

fn definition(kind: Kind) -> String {
    format!("{}.{}", kind.plural(), kind.group())
}

/// Serves these versions of a kind and no others.
fn serve(definition: &mut Value, served: impl Fn(&str) -> bool) {
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["served"] = json!(served(version["name"].as_str().unwrap()));
    }
}

async fn declare(client: &Client, kind: Kind, version: &str, spec: &Value) {
    let resource = ApiResource {
        version: version.to_owned(),
        api_version: format!("{}/{version}", kind.group()),
        ..support::resource(kind)
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "older", &resource);
    let value =
        json!({"apiVersion": resource.api_version, "kind": kind.as_str(), "metadata": {"name": "x"}, "spec": spec});
    let object = serde_json::from_value(value).unwrap();
    support::eventually("the version is served", async || {
        api.create(&PostParams::default(), &object).await.is_ok()
    })
    .await;
}

fn version(followed: &Followed, kind: Kind) -> Option<&'static str> {
    let states = followed.watch.states().get();
    states
        .iter()
        .find(|state| state.kind == kind)
        .and_then(|state| state.version)
}

#[tokio::test]
async fn routes_and_policies_are_read_in_the_newest_version_that_is_there() {
    let plane = Plane::start().await;
    let client = plane.client().await;
    let mut definitions = support::gateway_api_definitions();
    definitions.retain(|definition| {
        let name = definition["metadata"]["name"].as_str().unwrap();
        older().iter().any(|(kind, ..)| self::definition(*kind) == name)
    });
    assert_eq!(definitions.len(), older().len());
    for definition in &mut definitions {
        let name = definition["metadata"]["name"].clone();
        let (_, only, _) = older()
            .into_iter()
            .find(|(kind, ..)| name == self::definition(*kind))
            .unwrap();
        serve(definition, |version| version == only);
    }
    support::install(&client, definitions).await;
    support::namespace(&client, "older").await;
    for (kind, version, spec) in older() {
        declare(&client, kind, version, &spec).await;
    }
    let mut followed = Followed::synced(&plane.cluster().await, "example.com/older", &[]).await;
    for (kind, only, _) in older() {
        assert!(followed.has(&name(kind, "older", "x")), "{kind}");
        assert_eq!(version(&followed, kind), Some(only), "{kind}");
    }
    assert!(followed.invalid.is_empty(), "{:?}", followed.invalid);

    // The newer versions come; what was stored by the older ones is still there, and is read.
    for (kind, ..) in older() {
        let api = support::definitions_api(&client);
        let mut found = serde_json::to_value(api.get(&definition(kind)).await.unwrap()).unwrap();
        serve(&mut found, |_| true);
        let change = json!({"spec": {"versions": found["spec"]["versions"]}});
        let parameters = PatchParams::default();
        api.patch(&definition(kind), &parameters, &Patch::Merge(&change))
            .await
            .unwrap();
    }
    support::eventually("the newest versions", async || {
        followed.linger(Duration::from_millis(50)).await;
        let states = followed.watch.states().get();
        let is_newest = |kind: Kind| {
            let mut states = states.iter().filter(|state| state.kind == kind);
            states.all(|state| state.version == Some("v1") && state.lists == 2)
        };
        older().iter().all(|(kind, ..)| is_newest(*kind))
    })
    .await;
    assert!(followed.invalid.is_empty(), "{:?}", followed.invalid);
    for (kind, ..) in older() {
        assert!(followed.has(&name(kind, "older", "x")), "{kind}");
    }
    let Some(Object::TlsRoute(route)) = followed.objects.get(&name(Kind::TlsRoute, "older", "x")) else {
        panic!("a TLSRoute");
    };
    assert!(route.spec.hostnames.is_empty(), "it had none");
}
