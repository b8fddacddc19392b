//! What a data plane must do, and nothing about where that was declared.
//!
//! The planner produces a [`Gateway`] for every Gateway it accepted; data planes read it and report [`Fact`]s. The IR is
//! made of small shared pieces in persistent maps: cloning a snapshot costs nothing, a change costs its own size, and two
//! snapshots are compared by what they do not share. This crate knows nothing of Kubernetes, async or I/O. It also holds
//! Gateway API's precedence, as a type with an order, and the reference matcher that every faster matcher must equal.

mod auth;
mod certificate;
mod cluster;
mod cors;
mod entries;
mod fact;
mod filter;
mod gateway;
mod host;
mod matching;
mod network;
mod origin;
pub mod reference;
mod rule;
mod settings;

pub use auth::{AuthProtocol, ExternalAuth};
pub use certificate::{
    Authority, Certificate, ClientValidation, PrivateKey, SubjectName, Termination, Trust, UpstreamTls,
};
pub use cluster::{Cluster, ClusterId, Endpoint, Endpoints, RetryBudget, Security, UpstreamProtocol};
pub use cors::{Cors, Listed, OriginPattern};
pub use entries::{Entries, EntryChange};
pub use fact::{Fact, ListenFailure, ListenerState};
pub use filter::{Filters, HeaderChange, Mirror, PathChange, Redirect, Rewrite, Scheme, Share};
pub use gateway::{Gateway, Host, Listener, Protocol};
pub use host::{HostPattern, HostPatternError};
pub use matching::{Field, GrpcMatch, Match, Method, PathMatch, Pattern, PatternError, TextMatch, is_grpc};
pub use network::{Network, NetworkError, Port, Transport};
pub use origin::Origin;
pub use rule::{Backend, Carrier, Entry, Rank, Retry, Rule, Session, SessionKey, Target, Timeouts, Unresolved};
pub use settings::{ListenerSettings, ProxyHeader, UpstreamSettings};

/// Shared text: cloned by reference count.
pub type Text = std::sync::Arc<str>;
