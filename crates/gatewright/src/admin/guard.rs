//! Keeps web pages away from the admin API.
//!
//! A browser on this host can be led to connect to loopback under a name that the attacker's DNS resolves to it. Such a
//! request carries that name as its host, so only hosts that cannot be rebound are let through: IP addresses of
//! loopback, `localhost`, and the address that the socket is bound to. There are no CORS headers, so pages of other origins
//! can read no answer and send no PUT.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::Request,
    http::{StatusCode, header::HOST, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Refuses a request for a host that is not ours.
pub(super) async fn check(bound: SocketAddr, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_single = hosts.next().is_none();
    if is_single && host.is_some_and(|host| is_ours(host, bound)) {
        return next.run(request).await;
    }
    let text = "the admin API answers only requests for localhost or its own address\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

fn is_ours(host: &str, bound: SocketAddr) -> bool {
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match name.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            // On a socket for all addresses any of them may be meant; an address, unlike a name, cannot be rebound.
            address.is_loopback() || address == bound.ip().to_canonical() || bound.ip().is_unspecified()
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_hosts_that_cannot_be_rebound_are_ours() {
        let loopback = "127.0.0.1:9870".parse().unwrap();
        for host in [
            "localhost",
            "LocalHost:9870",
            "127.0.0.1:9870",
            "[::1]:9870",
            "127.0.0.2",
        ] {
            assert!(is_ours(host, loopback), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:9870",
            "10.0.0.1",
            "user@evil",
            "127.0.0.1.nip.io",
            "0",
        ] {
            assert!(!is_ours(host, loopback), "{host}");
        }
        let bound = "10.0.0.1:9870".parse().unwrap();
        assert!(is_ours("10.0.0.1", bound));
        assert!(!is_ours("10.0.0.2", bound));
        assert!(!is_ours("evil.example", "0.0.0.0:9870".parse().unwrap()));
    }
}
