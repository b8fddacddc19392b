//! Events: what happened to an object, for people who ask `kubectl describe`.
//!
//! They are best effort: one that cannot be written is not worth an error.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{Api, Client, Resource, api::PostParams};

use super::NODE_NAME;

/// Whether something went as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Tone {
    Normal,
    Warning,
}

/// Writes an event about an object.
pub(in crate::cluster) async fn tell<K>(client: &Client, object: &K, tone: Tone, reason: &str, message: &str)
where
    K: Resource<DynamicType = ()>,
{
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    let now = Some(Time(Timestamp::now()));
    let event = Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}.", meta.name.as_deref().unwrap_or("object"))),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            name: meta.name.clone(),
            namespace: Some(namespace.to_owned()),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: None,
        },
        type_: Some(match tone {
            Tone::Normal => "Normal".to_owned(),
            Tone::Warning => "Warning".to_owned(),
        }),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        first_timestamp: now.clone(),
        last_timestamp: now,
        count: Some(1),
        source: Some(EventSource {
            component: Some("kubelet".to_owned()),
            host: Some(NODE_NAME.to_owned()),
        }),
        ..Event::default()
    };
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let _ = events.create(&PostParams::default(), &event).await;
}
