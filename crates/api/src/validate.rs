//! Checks a declared object as the API server would, and completes it with the API server's defaults.
//!
//! Everything known of a kind is one tree, its [`shape`](self::shape): fields and types come from the ecosystem's
//! types, limits, defaults and cross-field rules from the files beside this one, one per kind. Sources call [`admit`]
//! on what they read; `check` prints the findings. Nothing here knows files, lines or the plan.

mod backend_tls_policy;
mod backend_traffic_policy;
mod check;
mod code;
mod complete;
mod endpoint_slice;
mod facts;
mod finding;
mod formats;
mod gateway;
mod gateway_class;
mod gateway_config;
mod grpc_route;
mod http_route;
mod http_route_filters;
mod listener_set;
mod metadata;
pub(crate) mod publish;
mod reference_grant;
mod report;
mod secret;
mod service;
mod shape;
mod stream_route;
mod suggest;
#[cfg(test)]
mod tests;
mod walk;

use std::sync::LazyLock;

use serde_json::Value;

pub use code::Code;
pub use finding::{FieldPath, Finding, Severity, Step};

use crate::{Kind, Object};
use report::Report;
use shape::Shape;

/// What became of a document: the object when it may be used, and what was found in it.
#[derive(Debug)]
pub struct Admission {
    /// The completed object; absent when a finding is an error.
    pub object: Option<Object>,
    /// What was found, errors and warnings, by field in alphabetical order.
    pub findings: Vec<Finding>,
}

/// Checks a document of a known kind. Defaults are applied to a copy first, as the API server does before it validates.
pub fn validate(kind: Kind, value: &Value) -> Vec<Finding> {
    let mut value = value.clone();
    complete(kind, &mut value);
    validate_completed(kind, &value)
}

/// Checks a document on which [`complete`] has been called.
pub fn validate_completed(kind: Kind, value: &Value) -> Vec<Finding> {
    let mut report = Report::new();
    walk::walk(shape_of(kind), value, &mut report);
    metadata::check(kind, value, &mut report);
    report.into_findings()
}

/// Applies the API server's defaults to a document, and drops the nulls that the API server drops.
///
/// What has the wrong type is left as it is, for [`validate`] to name.
pub fn complete(kind: Kind, value: &mut Value) {
    complete::complete(shape_of(kind), value);
    match kind {
        Kind::TlsRoute => stream_route::complete_tls(value),
        Kind::Service => service::complete(value),
        Kind::Secret | Kind::ConfigMap => secret::complete(value),
        _ => {}
    }
}

/// Completes, checks and types a document: what an API server does with it before it stores it.
pub fn admit(kind: Kind, mut value: Value) -> Admission {
    complete(kind, &mut value);
    let findings = validate_completed(kind, &value);
    admit_checked(kind, value, findings)
}

/// Types a document on which [`complete`] and [`validate_completed`] have been called, with what the latter found.
pub fn admit_checked(kind: Kind, value: Value, mut findings: Vec<Finding>) -> Admission {
    if findings.iter().any(Finding::is_error) {
        return Admission { object: None, findings };
    }
    match Object::from_value(kind, value) {
        Ok(mut object) => {
            secret::merge_string_data(&mut object);
            Admission {
                object: Some(object),
                findings,
            }
        }
        // The types are stricter than the shape in some corner: still a finding, never a panic or a silent drop.
        Err(error) => {
            // The text of the error quotes values, which in a Secret are secret.
            let detail = if kind == Kind::Secret {
                String::new()
            } else {
                format!(": {error}")
            };
            findings.push(Finding {
                code: Code::WrongType,
                severity: Severity::Error,
                path: FieldPath::default(),
                message: format!("cannot be read as {kind}{detail}"),
                hint: None,
            });
            Admission { object: None, findings }
        }
    }
}

fn shape_of(kind: Kind) -> &'static Shape {
    macro_rules! shape {
        ($type:ty, $facts:path) => {{
            static SHAPE: LazyLock<Shape> = LazyLock::new(|| facts::build::<$type>($facts).0);
            &SHAPE
        }};
    }
    match kind {
        Kind::GatewayClass => shape!(crate::GatewayClass, gateway_class::facts),
        Kind::Gateway => shape!(crate::Gateway, gateway::facts),
        Kind::HttpRoute => shape!(crate::HttpRoute, http_route::facts),
        Kind::GrpcRoute => shape!(crate::GrpcRoute, grpc_route::facts),
        Kind::TlsRoute => shape!(crate::TlsRoute, stream_route::tls_facts),
        Kind::TcpRoute => shape!(crate::TcpRoute, stream_route::facts),
        Kind::UdpRoute => shape!(crate::UdpRoute, stream_route::facts),
        Kind::ListenerSet => shape!(crate::ListenerSet, listener_set::facts),
        Kind::BackendTlsPolicy => shape!(crate::BackendTlsPolicy, backend_tls_policy::facts),
        Kind::ReferenceGrant => shape!(crate::ReferenceGrant, reference_grant::facts),
        Kind::BackendTrafficPolicy => shape!(crate::XBackendTrafficPolicy, backend_traffic_policy::facts),
        Kind::Service => shape!(crate::Service, service::facts),
        Kind::EndpointSlice => shape!(crate::EndpointSlice, endpoint_slice::facts),
        Kind::Secret => shape!(crate::Secret, secret::secret_facts),
        Kind::ConfigMap => shape!(crate::ConfigMap, secret::config_map_facts),
        Kind::Namespace => shape!(crate::Namespace, metadata::namespace_facts),
        Kind::GatewayConfig => shape!(crate::GatewayConfig, gateway_config::facts),
    }
}
