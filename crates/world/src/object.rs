//! The reduced objects: what planning reads of each kind, already in the form it needs.
//!
//! One file per kind holds the reduced type and the reduction. A reduction never fails: what cannot be understood becomes
//! a [`Refusal`] that the planner turns into a condition.

mod authorities;
mod class;
mod config;
mod entry;
mod filters;
mod gateway;
mod grant;
mod grpc_route;
mod http_route;
mod listener;
mod listener_set;
mod policy;
mod reference;
mod route;
mod secret;
mod selector;
mod service;
mod session;
mod slice;
mod stream_route;
mod tls_policy;

use std::{borrow::Cow, time::Duration};

use gatewright_api::meta::ObjectMeta;
use gatewright_ir::Text;

pub use authorities::{Authorities, AuthorityProblem};
pub use class::{GatewayClass, ParametersRef};
pub use config::{Config, ConfigSection};
pub use entry::EntryService;
pub use gateway::{AddressRequest, Frontend, FrontendValidation, Gateway, Infrastructure};
pub use grant::{GrantFrom, GrantTo, ReferenceGrant};
pub use listener::{AllowedNamespaces, Listener, ListenerProtocol, RouteKindRef};
pub use listener_set::ListenerSet;
pub use policy::TrafficPolicy;
pub use reference::ObjectRef;
pub use route::{
    AuthRef, BackendRef, MirrorRef, ParentRef, Route, RouteFilters, RouteKey, RouteKind, RouteRule, ServiceRef,
    SessionPersistence,
};
pub use secret::{Secret, TlsMaterial, TlsProblem};
pub use selector::Selector;
pub use service::{AppProtocol, Service, ServicePort};
pub use slice::{EndpointSlice, Hints, SliceEndpoint, SlicePort};
pub use tls_policy::{TlsPolicy, TlsTarget};

/// What every object's status and every tie-break needs of its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Counts changes of the spec.
    pub generation: i64,
    /// Seconds since 1970.
    pub created: i64,
}

impl Meta {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self {
            generation: metadata.generation.unwrap_or(1),
            created: metadata
                .creation_timestamp
                .as_ref()
                .map_or(0, |time| time.0.as_second()),
        }
    }
}

/// Reads a duration in Gateway API's format, for example `10s` or `1m30s`.
fn parse_duration(text: &str) -> Option<Duration> {
    let duration = text.parse::<gatewright_api::Duration>().ok()?;
    Some(Duration::new(duration.as_secs(), duration.subsec_nanos()))
}

/// Something in an object that cannot be honoured; it breaks the part it stands in, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of trouble.
    pub cause: RefusalCause,
    /// Where: the field's path inside the object.
    pub field: Text,
    /// What and what to do, in one sentence.
    pub message: Cow<'static, str>,
}

/// The kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// A value that the specification allows and that we do not honour.
    Unsupported,
    /// A value that is wrong.
    Invalid,
    /// A reference to a kind that cannot stand there.
    InvalidKind,
}

impl Refusal {
    pub(crate) fn unsupported(field: impl Into<Text>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            cause: RefusalCause::Unsupported,
            field: field.into(),
            message: message.into(),
        }
    }

    pub(crate) fn invalid(field: impl Into<Text>, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            cause: RefusalCause::Invalid,
            field: field.into(),
            message: message.into(),
        }
    }
}
