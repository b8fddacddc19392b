//! The cluster as a source and the writer, held to their promises by a real API server.
//!
//! etcd and kube-apiserver run on 127.0.0.1 for as long as this program does; every test has namespaces and a controller
//! name of its own. Only what no real server can be asked to do is done by a small one of our own ([`faults`]).

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

mod agreement;
mod faults;
mod followed;
mod gateways;
mod leading;
mod outage;
mod owning;
mod plane;
mod replicas;
mod statuses;
mod support;
mod tenants;
mod trouble;
mod versions;
mod watching;
