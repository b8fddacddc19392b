//! The planner from outside: golden cases a person can read, and properties that hold for any world.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "objects are written where they are declared, and nobody needs them afterwards"
)]

mod backend_tls;
mod certificates;
mod cluster;
mod golden;
mod incremental;
mod listener_sets;
mod references;
mod replicas;
mod schema;
mod stage;
mod streams;
mod universe;
