//! The planner from outside: golden cases a person can read, and properties that hold for any world.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod cluster;
mod golden;
mod incremental;
mod references;
mod replicas;
mod schema;
mod universe;
