//! What needs Helm or a cluster to be checked of an installation: the chart, the page that leads through it, and the rights
//! that it grants. Files alone are checked in `tests/it/deploy`.
//!
//! The page and the rights share a cluster that begins empty and whose API server keeps a log of every request of the
//! installed account. One test at a time has it, and leaves it as empty as it was.

mod audit;
mod beside;
mod chart;
mod empty;
#[path = "../it/deploy/files.rs"]
mod files;
mod helm;
mod page;
mod rights;
mod streams;
mod strict;
