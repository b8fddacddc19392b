//! The catalogue and what is exported are one list. The documentation is made from the catalogue.

use std::collections::BTreeSet;

use gatewright_proxy::Metrics;

use super::ALL;
use crate::{
    cluster::ClusterSummary,
    readiness::State,
    view::{Folder, View},
};

#[test]
fn every_family_is_exported_and_no_other() {
    let view = View {
        files: Some(Folder::default()),
        ..View::default()
    };
    let cluster = ClusterSummary::default();
    let text = crate::metrics::render(&Metrics::default(), &view, &State::Ready, 0.0, Some(&cluster));
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    let catalogue: BTreeSet<&str> = ALL.iter().map(|family| family.name).collect();
    assert_eq!(exported, catalogue);
    assert_eq!(text.matches("# TYPE ").count(), ALL.len(), "a family is exported twice");
}
