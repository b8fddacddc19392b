//! The custom resource definitions of our own kinds, as an API server takes them.
//!
//! Made from the types and from what [`crate::validate`] knows of them, so that a cluster refuses what a folder refuses.
//! `gatewright crds` prints them.

use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde_json::Value;

use crate::{GatewayConfig, Kind, validate::publish::publish};

/// The definitions of all our own kinds.
pub fn definitions() -> Result<Vec<Value>, serde_json::Error> {
    Ok(vec![definition::<GatewayConfig>(Kind::GatewayConfig)?])
}

fn definition<T: CustomResourceExt + JsonSchema>(kind: Kind) -> Result<Value, serde_json::Error> {
    let mut definition = serde_json::to_value(T::crd())?;
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            publish::<T>(kind, schema);
        }
    }
    Ok(definition)
}

#[cfg(test)]
mod tests;
