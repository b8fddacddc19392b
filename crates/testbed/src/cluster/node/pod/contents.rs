//! What files a volume has: the keys of a Secret or ConfigMap, fields of the pod, a token, or all of these together.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec},
    core::v1::{
        ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, ServiceAccount, ServiceAccountTokenProjection,
        Volume, VolumeProjection,
    },
};
use kube::{Api, ResourceExt, api::PostParams};

use super::{
    Problem,
    environment::{config_map, secret},
    fields::{Addresses, field},
};
use crate::cluster::node::Node;

/// What keeps a pod waiting for a volume, as kubelets call it.
pub(super) const REASON: &str = "FailedMount";

/// Files by path.
pub(super) type Contents = BTreeMap<String, File>;

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) mode: u32,
}

/// The tokens of a pod, by volume and path, each with the time from which it should be replaced.
pub(super) type Tokens = BTreeMap<(String, String), (String, Timestamp)>;

/// The files of a volume; none for one that the pod itself fills.
pub(super) async fn contents(
    node: &Node,
    pod: &Pod,
    volume: &Volume,
    addresses: Addresses,
    tokens: &mut Tokens,
) -> Result<Option<Contents>, Problem> {
    if volume.empty_dir.is_some() {
        return Ok(None);
    }
    let mut files = Contents::new();
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        let mode = mode(source.default_mode);
        let keys = secret(node, pod, name).map(|object| secret_keys(&object));
        let is_optional = source.optional == Some(true);
        select(
            &mut files,
            keys,
            ("secret", name),
            source.items.as_deref(),
            mode,
            is_optional,
        )?;
    } else if let Some(source) = &volume.config_map {
        let mode = mode(source.default_mode);
        let keys = config_map(node, pod, &source.name).map(|object| config_map_keys(&object));
        let is_optional = source.optional == Some(true);
        select(
            &mut files,
            keys,
            ("configmap", &source.name),
            source.items.as_deref(),
            mode,
            is_optional,
        )?;
    } else if let Some(source) = &volume.downward_api {
        write_fields(
            &mut files,
            pod,
            source.items.as_deref(),
            mode(source.default_mode),
            addresses,
        )?;
    } else if let Some(source) = &volume.projected {
        let mode = mode(source.default_mode);
        for part in source.sources.iter().flatten() {
            project(&mut files, node, pod, (volume, part), mode, addresses, tokens).await?;
        }
    } else {
        let message = format!("volume {:?} is of a kind that this node does not offer", volume.name);
        return Err(Problem::new(REASON, message));
    }
    Ok(Some(files))
}

async fn project(
    files: &mut Contents,
    node: &Node,
    pod: &Pod,
    (volume, part): (&Volume, &VolumeProjection),
    mode: u32,
    addresses: Addresses,
    tokens: &mut Tokens,
) -> Result<(), Problem> {
    if let Some(source) = &part.secret {
        let keys = secret(node, pod, &source.name).map(|object| secret_keys(&object));
        let is_optional = source.optional == Some(true);
        select(
            files,
            keys,
            ("secret", &source.name),
            source.items.as_deref(),
            mode,
            is_optional,
        )?;
    }
    if let Some(source) = &part.config_map {
        let keys = config_map(node, pod, &source.name).map(|object| config_map_keys(&object));
        let is_optional = source.optional == Some(true);
        select(
            files,
            keys,
            ("configmap", &source.name),
            source.items.as_deref(),
            mode,
            is_optional,
        )?;
    }
    if let Some(source) = &part.downward_api {
        write_fields(files, pod, source.items.as_deref(), mode, addresses)?;
    }
    if let Some(source) = &part.service_account_token {
        let key = (volume.name.clone(), source.path.clone());
        let is_fresh = tokens.get(&key).is_some_and(|(_, renewal)| Timestamp::now() < *renewal);
        if !is_fresh {
            let token = request_token(node, pod, source).await?;
            tokens.insert(key.clone(), token);
        }
        if let Some((token, _)) = tokens.get(&key) {
            let bytes = token.clone().into_bytes();
            files.insert(source.path.clone(), File { bytes, mode });
        }
    }
    Ok(())
}

/// Asks the API server for a token of the pod's ServiceAccount, bound to the pod.
async fn request_token(
    node: &Node,
    pod: &Pod,
    source: &ServiceAccountTokenProjection,
) -> Result<(String, Timestamp), Problem> {
    let name = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.service_account_name.as_deref())
        .unwrap_or("default");
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: source.audience.clone().map(|audience| vec![audience]),
            expiration_seconds: source.expiration_seconds,
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(node.client.clone(), &pod.namespace().unwrap_or_default());
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await;
    let refused = |error: String| Problem::new(REASON, format!("no token for ServiceAccount {name}: {error}"));
    let status = answer.map_err(|error| refused(error.to_string()))?.status;
    let (token, expiration) = status
        .map(|status| (status.token, status.expiration_timestamp))
        .unwrap_or_default();
    let token = token.ok_or_else(|| refused("the answer holds none".to_owned()))?;
    // At four fifths of its time, as kubelets do.
    let seconds = expiration.map_or(0, |time| time.0.as_second() - Timestamp::now().as_second());
    let renewal = Duration::from_secs(u64::try_from(seconds).unwrap_or_default()) * 4 / 5;
    Ok((token, Timestamp::now().checked_add(renewal).unwrap_or(Timestamp::MAX)))
}

/// Takes all keys, or those that are asked for under the paths that are asked for.
fn select(
    files: &mut Contents,
    keys: Option<BTreeMap<String, Vec<u8>>>,
    (kind, name): (&str, &str),
    items: Option<&[KeyToPath]>,
    mode: u32,
    is_optional: bool,
) -> Result<(), Problem> {
    let Some(keys) = keys else {
        let problem = Problem::new(REASON, format!("{kind} {name:?} not found"));
        return if is_optional { Ok(()) } else { Err(problem) };
    };
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        files.extend(keys.into_iter().map(|(key, bytes)| (key, File { bytes, mode })));
        return Ok(());
    };
    for item in items {
        let Some(bytes) = keys.get(&item.key).cloned() else {
            if is_optional {
                continue;
            }
            return Err(Problem::new(
                REASON,
                format!("{kind} {name:?} has no key {:?}", item.key),
            ));
        };
        let mode = item.mode.map_or(mode, |mode| self::mode(Some(mode)));
        files.insert(item.path.clone(), File { bytes, mode });
    }
    Ok(())
}

fn write_fields(
    files: &mut Contents,
    pod: &Pod,
    items: Option<&[DownwardAPIVolumeFile]>,
    mode: u32,
    addresses: Addresses,
) -> Result<(), Problem> {
    for item in items.into_iter().flatten() {
        let path = item
            .field_ref
            .as_ref()
            .map(|reference| reference.field_path.as_str())
            .unwrap_or_default();
        let value = field(pod, path, addresses);
        let value = value.ok_or_else(|| Problem::new(REASON, format!("{} has no field {path:?}", item.path)))?;
        let bytes = value.into_bytes();
        let mode = item.mode.map_or(mode, |mode| self::mode(Some(mode)));
        files.insert(item.path.clone(), File { bytes, mode });
    }
    Ok(())
}

fn secret_keys(object: &Secret) -> BTreeMap<String, Vec<u8>> {
    object
        .data
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.0.clone()))
        .collect()
}

fn config_map_keys(object: &ConfigMap) -> BTreeMap<String, Vec<u8>> {
    let text = object
        .data
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.clone().into_bytes()));
    let bytes = object
        .binary_data
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.0.clone()));
    text.chain(bytes).collect()
}

fn mode(given: Option<i32>) -> u32 {
    given.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644)
}
