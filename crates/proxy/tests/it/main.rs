//! The proxy from outside: gateways in, bytes on sockets, facts and numbers out.
//!
//! Every test starts a proxy of its own through the public API, with backends and clients that the test plays itself, on
//! loopback. Nothing here looks inside.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the helpers of a test may fail the test; clippy's exemption covers only the test functions themselves"
)]

mod answers;
mod authorisation;
mod backend_filters;
mod backend_tls;
mod backend_tls_exchanges;
mod balancing;
mod certificates;
mod client_certificates;
mod cors;
mod datagrams;
mod forwarded;
mod grpc;
mod hardening;
mod http2;
mod interop;
mod introductions;
mod leaving;
mod lifecycle;
mod listeners;
mod mirrors;
mod paths;
mod pooling;
mod retries;
mod routing;
mod secured_streams;
mod sessions;
mod slow;
mod smuggling;
mod streaming;
mod streams;
mod support;
mod tls;
mod tls_names;
mod upgrade;
