//! The binary as its users meet it: whole outputs, and processes with real sockets.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking and show what they saw, as tests do"
)]

mod admin;
mod authorisation;
mod backend_filters;
mod calls;
mod check;
mod defaults;
mod demo;
mod deploy;
mod endings;
mod examples;
mod grpc;
mod peers;
mod probes;
mod process;
mod readme;
mod reload;
mod retries;
mod revocation;
mod secure;
mod served;
mod sessions;
mod status;
mod tls;
mod usage;
mod web;
mod yaml;
