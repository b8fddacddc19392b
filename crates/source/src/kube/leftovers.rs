//! What an installation leaves in a cluster: finalizers on GatewayClasses, and objects that it made.
//!
//! Called by `gatewright uninstall`, with the rights of whoever calls it. While a replica still writes, everything that is
//! removed comes back; so [`writer`] tells whether one does.

use std::{fmt, time::Duration};

use ::kube::{
    Api,
    api::{ApiResource, DeleteParams, ListParams, Patch, PatchParams, Preconditions},
};
use gatewright_api::Kind;
use gatewright_world::desired::owned::{MANAGED_BY, MANAGER};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Cluster, OwnedKind, discovery, failure,
    raw::Raw,
    writer::{CONTROLLER, FINALIZER},
};

/// So many objects are read at once.
const PAGE: u32 = 500;

/// A thing to remove.
#[derive(Clone, Debug)]
pub struct Leftover {
    resource: ApiResource,
    namespace: String,
    name: String,
    uid: String,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    /// Take our finalizer from these.
    Release {
        finalizers: Vec<String>,
        version: String,
    },
    Delete,
}

/// What to look for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The controller whose leftovers they are.
    pub controller: String,
    /// Whether to look for objects that were made, beside finalizers.
    pub has_objects: bool,
}

/// A request that failed, in the words of the API server.
#[derive(Debug)]
pub struct LeftoverError(String);

impl fmt::Display for LeftoverError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for LeftoverError {}

impl fmt::Display for Leftover {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.resource.kind;
        match &self.action {
            Action::Release { .. } => write!(out, "finalizer of {kind} {}", self.name),
            Action::Delete => write!(out, "{kind} {}/{}", self.namespace, self.name),
        }
    }
}

/// The replica that writes now, if any: the holder of a Lease that has not run out.
pub async fn writer(cluster: &Cluster, namespace: &str, lease: &str) -> Result<Option<String>, LeftoverError> {
    let kind = OwnedKind::new("coordination.k8s.io", "v1", "Lease", "leases");
    let api: Api<Raw> = Api::namespaced_with(cluster.client(), namespace, &kind.resource());
    let Some(found) = api.get_opt(lease).await.map_err(|error| failed(lease, &error))? else {
        return Ok(None);
    };
    let text = |field: &str| found.value.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let holder = text("/spec/holderIdentity");
    let renewed: Option<Timestamp> = text("/spec/renewTime").parse().ok();
    let seconds = found
        .value
        .pointer("/spec/leaseDurationSeconds")
        .and_then(Value::as_u64);
    let age = renewed.and_then(|renewed| Duration::try_from(Timestamp::now().duration_since(renewed)).ok());
    // A renewal in the future is the holder's clock; it is alive.
    let is_fresh = age.is_none_or(|age| age <= Duration::from_secs(seconds.unwrap_or(15)));
    Ok((!holder.is_empty() && is_fresh).then(|| holder.to_owned()))
}

/// Looks for what an installation left.
pub async fn leftovers(cluster: &Cluster, search: &Search) -> Result<Vec<Leftover>, LeftoverError> {
    let mut found = classes(cluster, &search.controller).await?;
    if search.has_objects {
        for kind in [OwnedKind::ENDPOINT_SLICE, OwnedKind::SERVICE] {
            found.extend(objects(cluster, &search.controller, kind).await?);
        }
    }
    Ok(found)
}

async fn classes(cluster: &Cluster, controller: &str) -> Result<Vec<Leftover>, LeftoverError> {
    let offered = discovery::offered(&cluster.client(), Kind::GatewayClass).await;
    let Some(version) = offered.map_err(|error| failed("GatewayClasses", &error))? else {
        return Ok(Vec::new());
    };
    let resource = discovery::resource(Kind::GatewayClass, version);
    let mut leftovers = Vec::new();
    for class in list(cluster, &resource, ListParams::default()).await? {
        let finalizers = class.metadata.finalizers.clone().unwrap_or_default();
        let named = class.value.pointer("/spec/controllerName").and_then(Value::as_str);
        if named != Some(controller) || !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            continue;
        }
        let action = Action::Release {
            finalizers,
            version: class.resource_version().to_owned(),
        };
        leftovers.push(Leftover::of(&resource, &class, action));
    }
    Ok(leftovers)
}

async fn objects(cluster: &Cluster, controller: &str, kind: OwnedKind) -> Result<Vec<Leftover>, LeftoverError> {
    let resource = kind.resource();
    let ours = ListParams::default().labels(&format!("{MANAGED_BY}={MANAGER}"));
    let found = list(cluster, &resource, ours).await?.into_iter();
    let is_of_controller = |object: &Raw| {
        let annotations = object.metadata.annotations.as_ref();
        annotations
            .and_then(|annotations| annotations.get(CONTROLLER))
            .map(String::as_str)
            == Some(controller)
    };
    Ok(found
        .filter(is_of_controller)
        .map(|object| Leftover::of(&resource, &object, Action::Delete))
        .collect())
}

async fn list(cluster: &Cluster, resource: &ApiResource, which: ListParams) -> Result<Vec<Raw>, LeftoverError> {
    let api: Api<Raw> = Api::all_with(cluster.client(), resource);
    let mut found = Vec::new();
    let mut which = which.limit(PAGE);
    loop {
        let page = match api.list(&which).await {
            Ok(page) => page,
            // A kind that is not installed leaves nothing.
            Err(error) if failure::code(&error) == Some(404) => return Ok(found),
            Err(error) => return Err(failed(&resource.plural, &error)),
        };
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => which = which.continue_token(&token),
            None => return Ok(found),
        }
    }
}

/// Removes one. What is gone already is fine; what was changed meanwhile is an error, and found again by another search.
pub async fn remove(cluster: &Cluster, leftover: &Leftover) -> Result<(), LeftoverError> {
    let Leftover {
        resource,
        namespace,
        name,
        uid,
        action,
    } = leftover;
    let api: Api<Raw> = if namespace.is_empty() {
        Api::all_with(cluster.client(), resource)
    } else {
        Api::namespaced_with(cluster.client(), namespace, resource)
    };
    let result = match action {
        Action::Release { finalizers, version } => {
            let rest: Vec<&String> = finalizers.iter().filter(|finalizer| *finalizer != FINALIZER).collect();
            let change = json!({ "metadata": { "uid": uid, "resourceVersion": version, "finalizers": rest } });
            let change = Patch::Merge(&change);
            api.patch(name, &PatchParams::default(), &change).await.map(drop)
        }
        Action::Delete => {
            let exactly = Preconditions {
                uid: Some(uid.clone()),
                resource_version: None,
            };
            let parameters = DeleteParams::default().preconditions(exactly);
            api.delete(name, &parameters).await.map(drop)
        }
    };
    match result {
        Err(error) if failure::code(&error) == Some(404) => Ok(()),
        other => other.map_err(|error| failed(&leftover.to_string(), &error)),
    }
}

impl Leftover {
    fn of(resource: &ApiResource, object: &Raw, action: Action) -> Self {
        Self {
            resource: resource.clone(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            action,
        }
    }
}

fn failed(what: &str, error: &::kube::Error) -> LeftoverError {
    LeftoverError(format!("{what}: {}", failure::message(error)))
}
