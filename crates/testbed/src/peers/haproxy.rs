//! HAProxy's configuration.

use std::{fmt, net::SocketAddrV4};

use super::HOST;

/// A reverse proxy.
#[derive(Clone, Copy, Debug)]
pub struct Proxy {
    /// Where it listens.
    pub address: SocketAddrV4,
    /// Where requests go.
    pub backend: SocketAddrV4,
}

impl fmt::Display for Proxy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, backend } = self;
        write!(
            out,
            "\
global
    nbthread 1
    maxconn 4096
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend front
    bind {address}
    http-request set-header X-Forwarded-For %[src]
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    use_backend back if {{ hdr(host) -i {HOST} }} {{ path_beg / }}
backend back
    server one {backend}
"
        )
    }
}
