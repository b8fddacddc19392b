//! The environment of a container: what the cluster gives to all, then `envFrom`, then `env`, the later winning.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Container, EnvFromSource, EnvVar, Pod, Secret},
};
use kube::{ResourceExt, runtime::reflector::ObjectRef};

use super::{
    Problem,
    expansion::expand,
    fields::{Addresses, field},
};
use crate::cluster::node::Node;

/// What keeps a container from being made while something it refers to is missing, as kubelets call it.
const REASON: &str = "CreateContainerConfigError";

/// All variables of a container.
pub(super) fn environment(
    node: &Node,
    pod: &Pod,
    container: &Container,
    addresses: Addresses,
) -> Result<BTreeMap<String, String>, Problem> {
    let mut variables = given(node, pod);
    for source in container.env_from.iter().flatten() {
        variables.extend(all_of(node, pod, source)?);
    }
    for variable in container.env.iter().flatten() {
        if let Some(value) = value(node, pod, variable, &variables, addresses)? {
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

/// What every container gets.
fn given(node: &Node, pod: &Pod) -> BTreeMap<String, String> {
    let (host, port) = node.settings.api;
    let pairs = [
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        ),
        ("HOME", "/root".to_owned()),
        ("HOSTNAME", pod.name_any()),
        ("KUBERNETES_SERVICE_HOST", host.to_string()),
        ("KUBERNETES_SERVICE_PORT", port.to_string()),
        ("KUBERNETES_SERVICE_PORT_HTTPS", port.to_string()),
        ("KUBERNETES_PORT", format!("tcp://{host}:{port}")),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

fn all_of(node: &Node, pod: &Pod, source: &EnvFromSource) -> Result<BTreeMap<String, String>, Problem> {
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let mut found = BTreeMap::new();
    if let Some(reference) = &source.config_map_ref {
        match config_map(node, pod, &reference.name) {
            Some(object) => found.extend(object.data.clone().unwrap_or_default()),
            None if reference.optional == Some(true) => {}
            None => return Err(missing("configmap", &reference.name)),
        }
    }
    if let Some(reference) = &source.secret_ref {
        match secret(node, pod, &reference.name) {
            Some(object) => {
                let data = object.data.iter().flatten();
                found.extend(data.map(|(key, value)| (key.clone(), text(value))));
            }
            None if reference.optional == Some(true) => {}
            None => return Err(missing("secret", &reference.name)),
        }
    }
    Ok(found
        .into_iter()
        .map(|(key, value)| (format!("{prefix}{key}"), value))
        .collect())
}

fn value(
    node: &Node,
    pod: &Pod,
    variable: &EnvVar,
    known: &BTreeMap<String, String>,
    addresses: Addresses,
) -> Result<Option<String>, Problem> {
    let Some(source) = &variable.value_from else {
        return Ok(Some(expand(variable.value.as_deref().unwrap_or_default(), known)));
    };
    if let Some(reference) = &source.field_ref {
        let value = field(pod, &reference.field_path, addresses);
        return value
            .map(Some)
            .ok_or_else(|| Problem::new(REASON, format!("no field {}", reference.field_path)));
    }
    let (kind, name, key, is_optional, found) = if let Some(reference) = &source.config_map_key_ref {
        let object = config_map(node, pod, &reference.name);
        let found = object
            .as_ref()
            .map(|object| object.data.as_ref()?.get(&reference.key).cloned());
        (
            "configmap",
            &reference.name,
            &reference.key,
            reference.optional == Some(true),
            found,
        )
    } else if let Some(reference) = &source.secret_key_ref {
        let object = secret(node, pod, &reference.name);
        let found = object
            .as_ref()
            .map(|object| object.data.as_ref()?.get(&reference.key).map(text));
        (
            "secret",
            &reference.name,
            &reference.key,
            reference.optional == Some(true),
            found,
        )
    } else {
        let message = format!(
            "the variable {} has a source that this node does not know",
            variable.name
        );
        return Err(Problem::new(REASON, message));
    };
    match found {
        Some(Some(value)) => Ok(Some(value)),
        _ if is_optional => Ok(None),
        None => Err(missing(kind, name)),
        Some(None) => Err(Problem::new(
            REASON,
            format!("couldn't find key {key} in {kind} {name}"),
        )),
    }
}

fn missing(kind: &str, name: &str) -> Problem {
    Problem::new(REASON, format!("{kind} {name:?} not found"))
}

fn text(value: &ByteString) -> String {
    String::from_utf8_lossy(&value.0).into_owned()
}

/// A ConfigMap of the pod's namespace.
pub(super) fn config_map(node: &Node, pod: &Pod, name: &str) -> Option<std::sync::Arc<ConfigMap>> {
    node.config_maps
        .get(&ObjectRef::new(name).within(&pod.namespace().unwrap_or_default()))
}

/// A Secret of the pod's namespace.
pub(super) fn secret(node: &Node, pod: &Pod, name: &str) -> Option<std::sync::Arc<Secret>> {
    node.secrets
        .get(&ObjectRef::new(name).within(&pod.namespace().unwrap_or_default()))
}
