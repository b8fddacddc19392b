//! The binary as its users meet it: whole outputs, and processes with real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking and show what they saw, as tests do"
)]

mod admin;
mod check;
mod demo;
mod deploy;
mod endings;
mod probes;
mod process;
mod readme;
mod reload;
mod status;
mod usage;
mod web;
mod yaml;
