//! The embedded data plane

mod dns;
mod tls;
