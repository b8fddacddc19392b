//! What the admin API and the metrics read: one immutable picture of the spine, replaced as a whole.
//!
//! The spine publishes a new view after each turn; readers keep the one they loaded. Large parts are persistent maps or
//! shared, so that a view costs what changed since the last one.

use std::{path::PathBuf, sync::Arc};

use arc_swap::ArcSwap;
use gatewright_api::Kind;
use gatewright_ir::{Gateway, Origin};
use gatewright_source::files::Problem;
use imbl::OrdMap;

use crate::{admin::document::ReplicaSummary, board::Objects, durations::Durations};

/// Where the current view is found. Nothing is in it before the first full load.
pub(crate) type SharedView = Arc<ArcSwap<View>>;

/// A picture of the spine.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// How often has been planned.
    pub(crate) revision: u64,
    /// The objects with their statuses.
    pub(crate) objects: Objects,
    /// What the proxy serves.
    pub(crate) gateways: OrdMap<Origin, Arc<Gateway>>,
    /// The folder, where objects come from one.
    pub(crate) files: Option<Folder>,
    /// The replicas that are known, where objects come from a cluster.
    pub(crate) replicas: Vec<ReplicaSummary>,
    /// How many objects of each kind are declared.
    pub(crate) counts: Vec<(Kind, usize)>,
    /// How long planning took.
    pub(crate) plan_times: Durations,
}

/// The folder, as last seen.
#[derive(Clone, Default)]
pub(crate) struct Folder {
    pub(crate) directory: PathBuf,
    pub(crate) files: usize,
    pub(crate) objects: usize,
    pub(crate) problems: Arc<Vec<Problem>>,
    /// How often changes were taken over.
    pub(crate) reloads: u64,
    /// How many errors appeared since the start.
    pub(crate) errors: u64,
}
