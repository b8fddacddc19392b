//! The echo backend through real sockets: every mode, every path, both ways of ending.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod aids;
mod endings;
mod grpc;
mod http;
mod lines;
mod retries;
mod support;
mod tcp;
mod tls;
mod udp;
mod websocket;
