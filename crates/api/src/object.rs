//! One declared object of any kind we read, and the closed list of those kinds.
//!
//! Sources produce [`Object`]s, the world consumes them. A new kind is a new row in the table at the end of this file.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    BackendTlsPolicy, ConfigMap, EndpointSlice, Gateway, GatewayClass, GatewayConfig, GrpcRoute, HttpRoute,
    ListenerSet, Namespace, ReferenceGrant, Secret, Service, TcpRoute, TlsRoute, UdpRoute, XBackendTrafficPolicy,
    meta::ObjectMeta,
};

/// The name of one object: its kind, its namespace (empty for cluster-scoped kinds) and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ObjectName {
    /// The kind.
    pub kind: Kind,
    /// The namespace; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(out, "{} {}", self.kind, self.name)
        } else {
            write!(out, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

macro_rules! kinds {
    ($( $variant:ident: $type:ty, $text:literal, $group:literal, [$($version:literal),+], $plural:literal, namespaced: $namespaced:literal; )+) => {
        /// The kinds we read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind {
            $(#[doc = concat!("`", $text, "` of group `", $group, "`.")] $variant,)+
        }

        /// A declared object, typed.
        #[derive(Clone, Debug)]
        pub enum Object {
            $(#[doc = concat!("A `", $text, "`.")] $variant(Box<$type>),)+
        }

        impl Kind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant,)+];

            /// The kind that goes by this `apiVersion` and `kind`, if we read it.
            pub fn of(api_version: &str, kind: &str) -> Option<Kind> {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                match (group, kind) {
                    $(($group, $text) if [$($version),+].contains(&version) => Some(Kind::$variant),)+
                    _ => None,
                }
            }

            /// The kind that goes by this group and `kind` in a reference.
            pub fn of_group(group: &str, kind: &str) -> Option<Kind> {
                match (group, kind) {
                    $(($group, $text) => Some(Kind::$variant),)+
                    _ => None,
                }
            }

            /// The kind as written in YAML.
            pub fn as_str(self) -> &'static str {
                match self { $(Kind::$variant => $text,)+ }
            }

            /// The API group; empty for the core group.
            pub fn group(self) -> &'static str {
                match self { $(Kind::$variant => $group,)+ }
            }

            /// The versions we read, the one we write first.
            pub fn versions(self) -> &'static [&'static str] {
                match self { $(Kind::$variant => &[$($version),+],)+ }
            }

            /// The plural by which the API server and `kubectl` know the kind.
            pub fn plural(self) -> &'static str {
                match self { $(Kind::$variant => $plural,)+ }
            }

            /// Whether objects of this kind live in a namespace.
            pub fn is_namespaced(self) -> bool {
                match self { $(Kind::$variant => $namespaced,)+ }
            }
        }

        impl Object {
            /// Reads a value whose kind is known. The value has passed [`crate::validate`] or comes from an API server.
            pub fn from_value(kind: Kind, mut value: Value) -> Result<Object, serde_json::Error> {
                if kind == Kind::TlsRoute {
                    admit_no_hostnames(&mut value);
                }
                Ok(match kind { $(Kind::$variant => Object::$variant(serde_json::from_value(value)?),)+ })
            }

            /// The object as JSON, as it would be sent to an API server.
            pub fn to_value(&self) -> Result<Value, serde_json::Error> {
                match self { $(Object::$variant(object) => serde_json::to_value(object),)+ }
            }

            /// The kind.
            pub fn kind(&self) -> Kind {
                match self { $(Object::$variant(_) => Kind::$variant,)+ }
            }

            /// The metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self { $(Object::$variant(object) => &object.metadata,)+ }
            }

            /// The metadata, to be changed.
            pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
                match self { $(Object::$variant(object) => &mut object.metadata,)+ }
            }
        }
    };
}

/// The type wants hostnames, as v1 of TLSRoute does. A route that was stored by an older version may have none, in whatever
/// version the API server shows it now, and then matches every name.
fn admit_no_hostnames(route: &mut Value) {
    if let Some(spec) = route.get_mut("spec").and_then(Value::as_object_mut) {
        let hostnames = spec.entry("hostnames").or_insert(Value::Null);
        if hostnames.is_null() {
            *hostnames = Value::Array(Vec::new());
        }
    }
}

impl Object {
    /// The name of this object; a missing namespace is empty.
    pub fn name(&self) -> ObjectName {
        let metadata = self.metadata();
        ObjectName {
            kind: self.kind(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
        }
    }
}

impl Kind {
    /// Whether objects of this kind attach to parents, and show in their status what became of it at each.
    pub fn is_route(self) -> bool {
        matches!(
            self,
            Self::HttpRoute | Self::GrpcRoute | Self::TlsRoute | Self::TcpRoute | Self::UdpRoute
        )
    }

    /// Whether objects of this kind show a status of ours.
    pub fn has_status(self) -> bool {
        self.shared_status().is_some() || matches!(self, Self::GatewayClass | Self::Gateway | Self::ListenerSet)
    }

    /// The list in the status to which each controller adds entries of its own, and the field of an entry that says what it
    /// is about. None where the status belongs to one controller.
    pub fn shared_status(self) -> Option<(&'static str, &'static str)> {
        match self {
            route if route.is_route() => Some(("parents", "parentRef")),
            Self::BackendTrafficPolicy | Self::BackendTlsPolicy => Some(("ancestors", "ancestorRef")),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

kinds! {
    GatewayClass: GatewayClass, "GatewayClass", "gateway.networking.k8s.io", ["v1", "v1beta1"], "gatewayclasses", namespaced: false;
    Gateway: Gateway, "Gateway", "gateway.networking.k8s.io", ["v1", "v1beta1"], "gateways", namespaced: true;
    HttpRoute: HttpRoute, "HTTPRoute", "gateway.networking.k8s.io", ["v1", "v1beta1"], "httproutes", namespaced: true;
    GrpcRoute: GrpcRoute, "GRPCRoute", "gateway.networking.k8s.io", ["v1"], "grpcroutes", namespaced: true;
    TlsRoute: TlsRoute, "TLSRoute", "gateway.networking.k8s.io", ["v1", "v1alpha3", "v1alpha2"], "tlsroutes", namespaced: true;
    TcpRoute: TcpRoute, "TCPRoute", "gateway.networking.k8s.io", ["v1", "v1alpha2"], "tcproutes", namespaced: true;
    UdpRoute: UdpRoute, "UDPRoute", "gateway.networking.k8s.io", ["v1", "v1alpha2"], "udproutes", namespaced: true;
    ListenerSet: ListenerSet, "ListenerSet", "gateway.networking.k8s.io", ["v1"], "listenersets", namespaced: true;
    ReferenceGrant: ReferenceGrant, "ReferenceGrant", "gateway.networking.k8s.io", ["v1", "v1beta1"], "referencegrants", namespaced: true;
    BackendTlsPolicy: BackendTlsPolicy, "BackendTLSPolicy", "gateway.networking.k8s.io", ["v1", "v1alpha3"], "backendtlspolicies", namespaced: true;
    BackendTrafficPolicy: XBackendTrafficPolicy, "XBackendTrafficPolicy", "gateway.networking.x-k8s.io", ["v1alpha1"], "xbackendtrafficpolicies", namespaced: true;
    Service: Service, "Service", "", ["v1"], "services", namespaced: true;
    EndpointSlice: EndpointSlice, "EndpointSlice", "discovery.k8s.io", ["v1"], "endpointslices", namespaced: true;
    Secret: Secret, "Secret", "", ["v1"], "secrets", namespaced: true;
    ConfigMap: ConfigMap, "ConfigMap", "", ["v1"], "configmaps", namespaced: true;
    Namespace: Namespace, "Namespace", "", ["v1"], "namespaces", namespaced: false;
    GatewayConfig: GatewayConfig, "GatewayConfig", "gatewright.dev", ["v1alpha1"], "gatewayconfigs", namespaced: true;
}
