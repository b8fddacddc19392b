//! An object as the API server sends it: its metadata read, the rest left as JSON.
//!
//! Nothing that a cluster can hold fails to be read as one of these, so that one strange object never costs a page of the
//! others. What we never read (managed fields, what kubectl applied last) is dropped before anything else sees it.

use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
};

use ::kube::{Resource, api::ApiResource, core::DynamicResourceScope};
use gatewright_api::meta::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::{Map, Value};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object of any kind.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) metadata: ObjectMeta,
    /// The whole object, metadata included.
    pub(crate) value: Value,
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::of(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl Raw {
    /// Takes a whole object apart.
    pub(crate) fn of(mut value: Value) -> Result<Self, serde_json::Error> {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(LAST_APPLIED);
            }
        }
        let metadata = match value.get("metadata") {
            Some(metadata) => ObjectMeta::deserialize(metadata)?,
            None => ObjectMeta::default(),
        };
        Ok(Self { metadata, value })
    }

    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn status(&self) -> &Value {
        self.value.get("status").unwrap_or(&Value::Null)
    }

    /// A fingerprint of everything that a person can declare: all but the version counter and, where the status is only
    /// ever written by us, the status. Holds within this process only.
    pub(crate) fn content(&self, with_status: bool) -> u64 {
        let mut hasher = ahash::AHasher::default();
        let Some(fields) = self.value.as_object() else {
            return 0;
        };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("status", _) if !with_status => {}
                ("metadata", Value::Object(metadata)) => hash_metadata(metadata, &mut hasher),
                _ => (key, value).hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    /// The same without status and generation: what is left when nobody changed what was asked for.
    pub(crate) fn content_without_counters(&self) -> u64 {
        let mut hasher = ahash::AHasher::default();
        for (key, value) in self.value.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("status", _) => {}
                ("metadata", Value::Object(metadata)) => {
                    let counters = ["resourceVersion", "generation"];
                    for field in metadata.iter().filter(|(key, _)| !counters.contains(&key.as_str())) {
                        field.hash(&mut hasher);
                    }
                }
                _ => (key, value).hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}

fn hash_metadata(metadata: &Map<String, Value>, hasher: &mut impl Hasher) {
    for field in metadata.iter().filter(|(key, _)| *key != "resourceVersion") {
        field.hash(hasher);
    }
}

impl Resource for Raw {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
