//! Drivers for real programs, and the benchmarks made with them.
//!
//! The binary `bench` compares the proxy with its peers and measures the planner; tests use the same parts at a smaller
//! scale. Nothing outside tests and benchmarks may depend on this crate.

pub mod bench;
pub mod certificates;
pub mod cluster;
pub mod conformance;
pub mod figures;
pub mod h2spec;
pub mod load;
mod locks;
pub mod memory;
pub mod peers;
pub mod process;
pub mod programs;
pub mod report;
pub mod sslyze;
pub mod statistics;
pub mod worlds;

use std::io::Write;

/// Tells the person in front of the terminal what is going on; on stderr, for stdout carries the results.
pub fn say(line: impl std::fmt::Display) {
    // Nobody may be reading, which is no reason to stop measuring.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
