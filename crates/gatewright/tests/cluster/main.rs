//! The binary in a cluster, as its users meet it: installed by the manifests, driven by `kubectl apply`, asked through the
//! addresses of a load balancer. Real programs on real sockets, as root; see the testbed.
//!
//! Tests share a cluster and one installation in it, and have namespaces of their own. Those that restart or remove replicas
//! have an installation of their own, under another controller name; those that take the API server away another cluster.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking and show what they saw, as tests do"
)]

mod bed;
mod churn;
mod classes;
mod deploy;
mod entry;
mod experimental;
mod install;
mod late;
mod namespace;
mod owned;
mod quickstart;
mod replicas;
mod scope;
mod status;
mod steady;
mod thousand;
mod trouble;
mod web;
