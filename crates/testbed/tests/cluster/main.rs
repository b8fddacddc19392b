//! The cluster of the testbed, held to its promises: real programs on real sockets, as root.
//!
//! Most tests share one cluster and have a namespace of their own in it; those about starting and ending have clusters of
//! their own.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod api_server;
mod backends;
mod h2spec;
mod images;
mod lifecycle;
mod pods;
mod services;
mod sslyze;
mod volumes;
mod world;
