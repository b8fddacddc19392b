//! What every job has in common: its requests are bounded in time, and its troubles are told alike.

use std::time::Duration;

use ::kube::{Api, Error};
use gatewright_api::ObjectName;

use super::{queue::Job, run::Shared};
use crate::kube::{failure, raw::Raw};

/// A request takes no longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// A write that meets a newer version so many times in a row is put off.
pub(super) const MOST_CONFLICTS: usize = 5;
/// The name under which the API server books what we write.
pub(super) const FIELD_MANAGER: &str = "gatewright";

/// Why a job did not succeed.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) reason: String,
    pub(super) message: String,
    /// Not this object is the trouble but the server: nothing should be asked of it for a while.
    pub(super) is_of_the_server: bool,
    /// How long the server asked us to wait.
    pub(super) wait: Option<Duration>,
    /// The longest wait before the next attempt.
    pub(super) longest: Duration,
}

/// The longest wait before a write that keeps failing is tried again.
const LONGEST: Duration = Duration::from_mins(5);

impl Trouble {
    pub(super) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            is_of_the_server: false,
            wait: None,
            longest: LONGEST,
        }
    }

    pub(super) fn of(error: &Error) -> Self {
        Self {
            reason: failure::reason(error),
            message: failure::message(error),
            is_of_the_server: failure::is_of_the_server(error),
            wait: failure::retry_after(error),
            longest: LONGEST,
        }
    }
}

impl Job {
    /// The kind of its object, for counters.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Status(name) | Self::Finalizer(name) => name.kind.as_str(),
            Self::Owned(name) => name.kind.kind,
        }
    }

    /// What is being done, for reports.
    pub(super) fn action(&self) -> &'static str {
        match self {
            Self::Status(_) => "status",
            Self::Finalizer(_) => "finalizer",
            Self::Owned(_) => "apply",
        }
    }

    /// Its object, for reports.
    pub(super) fn object(&self) -> String {
        match self {
            Self::Status(name) | Self::Finalizer(name) => name.to_string(),
            Self::Owned(name) => name.to_string(),
        }
    }
}

/// The API of one declared object, in the version that is served.
pub(super) fn api(shared: &Shared, name: &ObjectName) -> Api<Raw> {
    let resource = shared.cluster.served(name.kind);
    let client = shared.cluster.client();
    if name.namespace.is_empty() {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, &name.namespace, &resource)
    }
}

/// Whether an answer says that somebody else was quicker.
pub(super) fn is_conflict(error: &Error) -> bool {
    failure::code(error) == Some(409)
}

/// Whether an answer says that the object is gone.
pub(super) fn is_gone(error: &Error) -> bool {
    failure::code(error) == Some(404)
}
