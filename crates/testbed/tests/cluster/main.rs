//! The cluster of the testbed, held to its promises: real programs on real sockets, as root.
//!
//! Most tests share one cluster and have a namespace of their own in it; those about starting and ending have clusters of
//! their own.

mod api_server;
mod lifecycle;
mod pods;
mod services;
mod volumes;
mod world;
