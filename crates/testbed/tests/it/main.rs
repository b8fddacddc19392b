//! The benchmarks' own tests: bounds on the plan that a busy machine cannot break, and configurations that say what they
//! should.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod configurations;
mod plan;

use gatewright_testbed::memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
