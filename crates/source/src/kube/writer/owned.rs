//! Objects that the plan wants to exist: made, corrected when edited, deleted when no longer planned.
//!
//! An object is ours when it carries our label and the name of our controller. What has the right name and is not ours is
//! never touched and reported as a conflict, unless its controller is the very object that ours would belong to: then it
//! is adopted. All of it goes by server-side apply under one field manager, so that fields others set stay theirs.

mod covers;
mod follow;
mod object;
mod replace;
mod table;
mod write;

use std::fmt;

use ::kube::api::ApiResource;
pub(super) use follow::{follow, has_label, selector};
use gatewright_api::ObjectName;
use gatewright_world::desired;
pub(crate) use object::CONTROLLER;
use serde_json::Value;
pub(super) use table::Owned;
pub(super) use write::write;

use crate::kube::raw::Raw;

/// A kind of objects that we make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version we write.
    pub version: &'static str,
    /// The kind as written in YAML.
    pub kind: &'static str,
    /// The plural by which the API server knows it.
    pub plural: &'static str,
}

impl OwnedKind {
    /// Services.
    pub const SERVICE: Self = Self::new("", "v1", "Service", "services");
    /// ServiceAccounts.
    pub const SERVICE_ACCOUNT: Self = Self::new("", "v1", "ServiceAccount", "serviceaccounts");
    /// ConfigMaps.
    pub const CONFIG_MAP: Self = Self::new("", "v1", "ConfigMap", "configmaps");
    /// Secrets.
    pub const SECRET: Self = Self::new("", "v1", "Secret", "secrets");
    /// EndpointSlices.
    pub const ENDPOINT_SLICE: Self = Self::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
    /// Deployments.
    pub const DEPLOYMENT: Self = Self::new("apps", "v1", "Deployment", "deployments");
    /// Gateways.
    pub const GATEWAY: Self = Self::new(gatewright_api::GATEWAY_GROUP, "v1", "Gateway", "gateways");
    /// HTTPRoutes.
    pub const HTTP_ROUTE: Self = Self::new(gatewright_api::GATEWAY_GROUP, "v1", "HTTPRoute", "httproutes");

    /// Any other kind; all are namespaced.
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
        }
    }

    pub(crate) fn resource(&self) -> ApiResource {
        let api_version = if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        };
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// The name of an object that we make.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnedName {
    /// The kind.
    pub kind: OwnedKind,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl OwnedName {
    pub(super) fn of(kind: OwnedKind, raw: &Raw) -> Self {
        Self {
            kind,
            namespace: raw.namespace().to_owned(),
            name: raw.name().to_owned(),
        }
    }
}

impl fmt::Display for OwnedName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}/{}", self.kind.kind, self.namespace, self.name)
    }
}

/// An object as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedObject {
    /// The object it belongs to and goes with: a Gateway, a GatewayClass or an HTTPRoute, of the same namespace or of none.
    pub owner: ObjectName,
    /// Everything but its name, kind and owner: `spec` or `data`, and labels and annotations under `metadata`. Only what
    /// stands here is compared and corrected. Our label is added.
    ///
    /// Nothing: it is neither made nor changed nor deleted.
    pub value: Option<Value>,
}

impl From<&desired::OwnedName> for OwnedName {
    fn from(name: &desired::OwnedName) -> Self {
        Self {
            kind: name.kind.into(),
            namespace: name.namespace.to_string(),
            name: name.name.to_string(),
        }
    }
}

impl From<desired::OwnedKind> for OwnedKind {
    fn from(kind: desired::OwnedKind) -> Self {
        match kind {
            desired::OwnedKind::Service => Self::SERVICE,
            desired::OwnedKind::EndpointSlice => Self::ENDPOINT_SLICE,
        }
    }
}

impl From<&desired::Owned> for OwnedObject {
    fn from(owned: &desired::Owned) -> Self {
        Self {
            owner: owned.owner.clone(),
            value: owned.to_value(),
        }
    }
}

/// An object that cannot be made because its name is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedConflict {
    /// The object that cannot be made.
    pub name: OwnedName,
    /// The object it would belong to.
    pub owner: ObjectName,
    /// Who has the name, and what to do.
    pub message: String,
}
