//! The Kubernetes kinds Gatewright reads and writes.
//!
//! The ecosystem's types are re-exported here and nowhere else, together with what they lack and our own CRDs, so that
//! a new version of them is a change of this crate alone. Everyone who touches a declared object starts from
//! [`Object`]. This crate knows nothing of the IR, the world or the plan.

pub mod config;
mod definition;
mod object;
pub mod validate;

pub use config::{GatewayConfig, GatewayConfigSpec};
pub use definition::definitions;
pub use gateway_api::Duration;
pub use gateway_api::backendtlspolicies::{self, BackendTlsPolicy};
pub use gateway_api::experimental::gatewayclasses::{self, GatewayClass};
pub use gateway_api::experimental::gateways::{self, Gateway};
pub use gateway_api::experimental::grpcroutes::{self, GrpcRoute};
pub use gateway_api::experimental::httproutes::{self, HttpRoute};
pub use gateway_api::experimental::listenersets::{self, ListenerSet};
pub use gateway_api::experimental::referencegrants::{self, ReferenceGrant};
pub use gateway_api::experimental::tcproutes::{self, TcpRoute};
pub use gateway_api::experimental::tlsroutes::{self, TlsRoute};
pub use gateway_api::experimental::udproutes::{self, UdpRoute};
pub use gateway_api::experimental::xbackendtrafficpolicies::{self, XBackendTrafficPolicy};
pub use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
pub use k8s_openapi::api::discovery::v1::EndpointSlice;
pub use k8s_openapi::api::{core::v1 as core, discovery::v1 as discovery};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
pub use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
pub use kube::{CustomResourceExt, Resource, ResourceExt};
pub use object::{Kind, Object, ObjectName};

/// The API group of Gateway API's standard and experimental kinds.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";
/// The key of a ConfigMap with certificates of authorities, in PEM.
pub const AUTHORITIES_KEY: &str = "ca.crt";
/// The API group of our own kinds.
pub const GATEWRIGHT_GROUP: &str = "gatewright.dev";
