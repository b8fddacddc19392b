//! What `/status` answers and `gatewright status` reads: one document, written by the server and read by the client.
//!
//! `objects` are exactly as they would stand in Kubernetes; the summaries beside them hold what a table needs and what
//! Kubernetes keeps in the spec.

mod replica;
mod select;
mod summary;

use std::collections::BTreeMap;

use gatewright_plan::StatusKey;
use gatewright_world::desired;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{board::Shown, cluster::ClusterSummary, diagnose, finding::Finding, readiness::State, view::View};

pub(crate) use replica::ReplicaSummary;
pub(crate) use select::Selection;
pub(crate) use summary::{
    ClassSummary, GatewaySummary, ListenerSummary, PolicySummary, RouteSummary, SetSummary, Verdict,
};

/// The whole answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    pub(crate) version: String,
    pub(crate) controller_name: String,
    /// `Starting`, `Ready` or `Draining`.
    pub(crate) state: String,
    /// How often has been planned.
    pub(crate) revision: u64,
    /// The folder, where objects come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<FilesSummary>,
    /// The cluster, where objects come from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<ClusterSummary>,
    /// The replicas in that cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) replicas: Vec<ReplicaSummary>,
    /// Declared objects by kind.
    pub(crate) counts: BTreeMap<String, usize>,
    pub(crate) classes: Vec<ClassSummary>,
    pub(crate) gateways: Vec<GatewaySummary>,
    pub(crate) listener_sets: Vec<SetSummary>,
    pub(crate) routes: Vec<RouteSummary>,
    pub(crate) policies: Vec<PolicySummary>,
    /// The objects with their full status.
    pub(crate) objects: Vec<Value>,
    /// Everything that someone should mend: in files, and in the plan.
    pub(crate) problems: Vec<Finding>,
}

/// The folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FilesSummary {
    pub(crate) directory: String,
    pub(crate) files: usize,
    pub(crate) objects: usize,
}

impl Document {
    /// The document of a view, as far as it is asked for.
    pub(crate) fn of(
        view: &View,
        state: &State,
        controller: &str,
        selection: &Selection,
        cluster: Option<ClusterSummary>,
    ) -> Self {
        let chosen = || view.objects.iter().filter(|(id, _)| selection.holds(id));
        let of_files = view
            .files
            .iter()
            .flat_map(|files| files.problems.iter())
            .map(Finding::from);
        let of_plan = diagnose::everything(&view.objects, &view.gateways, controller, cluster.is_none());
        // Before the first load there is no plan to complain about.
        let of_plan = of_plan.into_iter().filter(|_| view.revision > 0);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            controller_name: controller.to_owned(),
            state: state.as_str().to_owned(),
            revision: view.revision,
            files: view.files.as_ref().map(|folder| FilesSummary {
                directory: folder.directory.display().to_string(),
                files: folder.files,
                objects: folder.objects,
            }),
            cluster,
            replicas: view.replicas.clone(),
            counts: view
                .counts
                .iter()
                .map(|(kind, count)| (kind.as_str().to_owned(), *count))
                .collect(),
            classes: chosen().filter_map(|(id, shown)| ClassSummary::of(id, shown)).collect(),
            gateways: chosen()
                .filter_map(|(id, shown)| GatewaySummary::of(id, shown))
                .collect(),
            listener_sets: chosen().filter_map(|(id, shown)| SetSummary::of(id, shown)).collect(),
            routes: chosen().filter_map(|(id, shown)| RouteSummary::of(id, shown)).collect(),
            policies: chosen()
                .filter_map(|(id, shown)| PolicySummary::of(id, shown))
                .collect(),
            objects: chosen().map(|(id, shown)| object(id, shown, controller)).collect(),
            problems: of_files.chain(of_plan).collect(),
        }
    }
}

/// An object as it would stand in Kubernetes, without its spec.
fn object(id: &StatusKey, shown: &Shown, controller: &str) -> Value {
    let StatusKey { kind, key } = id;
    let meta = shown.declared.meta();
    let version = kind.versions().first().copied().unwrap_or_default();
    let created = Timestamp::from_second(meta.created).unwrap_or_default();
    let namespace = kind.is_namespaced().then(|| ("namespace", json!(key.namespace)));
    let metadata = [
        ("name", json!(key.name)),
        ("generation", json!(meta.generation)),
        ("creationTimestamp", json!(created.to_string())),
    ];
    let status = shown.status.as_ref();
    let status = status.map(|status| ("status", desired::render(status, controller, &shown.stamps)));
    let object = [
        ("apiVersion", json!(format!("{}/{version}", kind.group()))),
        ("kind", json!(kind.as_str())),
        ("metadata", fields(metadata.into_iter().chain(namespace))),
    ];
    fields(object.into_iter().chain(status))
}

fn fields(fields: impl Iterator<Item = (&'static str, Value)>) -> Value {
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}
