//! What is wanted of one object, beside what it shows.

use std::sync::Arc;

use gatewright_api::Kind;
use gatewright_world::desired::Status;

use crate::kube::observed::Seen;

/// Gateway API's own name for what keeps a class in use from vanishing.
pub(crate) const FINALIZER: &str = "gateway-exists-finalizer.gateway.networking.k8s.io";

#[derive(Debug, Default)]
pub(super) struct Entry {
    /// What the cluster shows; nothing if it is not there, or not seen yet.
    pub(super) seen: Option<Seen>,
    pub(super) want: Want,
    /// Whether it should keep our finalizer.
    pub(super) keep: Option<bool>,
    /// What the server made of a status we wrote: the fingerprint we wanted, and the one it shows since. They differ
    /// where it leaves out fields of a newer version; writing again would not help.
    pub(super) made: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Want {
    /// Nothing has been said.
    #[default]
    Unsaid,
    /// This status, with its fingerprint.
    Status(Arc<Status>, u64),
    /// Nothing of ours.
    Nothing {
        /// The fingerprint of what was wanted before.
        was: Option<u64>,
    },
}

impl Entry {
    /// Whether the status must be written.
    pub(super) fn needs_status(&self, kind: Kind) -> bool {
        let Some(seen) = &self.seen else { return false };
        match &self.want {
            Want::Status(_, wanted) => *wanted != seen.ours && self.made != Some((*wanted, seen.ours)),
            // On a route our entries bear our name. A Gateway, ListenerSet or class that is no longer ours may already show what its
            // new controller says: only what we ourselves made it show is taken back.
            Want::Unsaid | Want::Nothing { .. } if kind.shared_status().is_some() => seen.has_ours,
            Want::Nothing { was } => *was == Some(seen.ours),
            Want::Unsaid => false,
        }
    }

    /// Whether our finalizer must be added or removed.
    pub(super) fn needs_finalizer(&self) -> bool {
        let (Some(seen), Some(keep)) = (&self.seen, self.keep) else {
            return false;
        };
        let has = seen.finalizers.iter().any(|finalizer| **finalizer == *FINALIZER);
        // What is being deleted takes no new finalizers.
        has != keep && !(keep && seen.is_ending)
    }

    /// Whether nothing is known and nothing is wanted.
    pub(super) fn is_idle(&self) -> bool {
        self.seen.is_none() && self.keep != Some(true) && !matches!(self.want, Want::Status(..))
    }
}
