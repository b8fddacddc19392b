use std::net::IpAddr;

use gatewright_ir::{Network, Scheme};
use proptest::prelude::*;

use super::{
    ConnectionOptions, Fate, Hop, RequestHygiene, forwardable_upgrade, forwarded_headers, is_trusted, request_header,
    response_header,
};

/// The fate of a header in an ordinary request from an untrusted peer, with this `Connection` header.
fn untrusted(connection: &str, name: &str, value: &str) -> Fate {
    let connection = ConnectionOptions::parse([connection.as_bytes()]);
    let hygiene = RequestHygiene {
        connection: &connection,
        is_trusted: false,
        allows_underscores: false,
        is_upgrade: false,
    };
    request_header(name.as_bytes(), value.as_bytes(), &hygiene)
}

fn trusted(connection: &str, name: &str) -> Fate {
    let connection = ConnectionOptions::parse([connection.as_bytes()]);
    let hygiene = RequestHygiene {
        connection: &connection,
        is_trusted: true,
        allows_underscores: true,
        is_upgrade: false,
    };
    request_header(name.as_bytes(), b"x", &hygiene)
}

#[test]
fn what_concerns_one_connection_ends_here() {
    for name in [
        "Connection",
        "keep-alive",
        "PROXY-CONNECTION",
        "Proxy-Authorization",
        "Proxy-Authenticate",
        "HTTP2-Settings",
        "Upgrade",
        "TE",
    ] {
        assert_eq!(untrusted("", name, "x"), Fate::Drop, "{name}");
    }
}

#[test]
fn headers_named_in_connection_are_dropped_in_any_case() {
    assert_eq!(untrusted("close, X-Private", "x-pRivate", "1"), Fate::Drop);
    assert_eq!(untrusted("close, X-Private", "x-private-2", "1"), Fate::Forward);
    assert_eq!(untrusted("x-a,x-b , ,x-c", "X-C", "1"), Fate::Drop);
}

#[test]
fn no_client_can_have_a_trusted_proxy_s_statements_dropped() {
    for name in ["X-Forwarded-Proto", "x-forwarded-host", "Forwarded", "X-Real-IP"] {
        assert_eq!(
            trusted(&format!("close, {}", name.to_lowercase()), name),
            Fate::Forward,
            "{name}"
        );
    }
    assert_eq!(untrusted("content-length", "Content-Length", "1"), Fate::Codec);
    assert_eq!(untrusted("host", "Host", "a"), Fate::Codec);
}

#[test]
fn statements_about_the_client_count_only_from_a_trusted_peer() {
    for name in [
        "X-Forwarded-For",
        "x-forwarded-proto",
        "X-FORWARDED-HOST",
        "x-forwarded-port",
        "x-forwarded-client-cert",
        "Forwarded",
        "X-Real-IP",
        "x-envoy-original-path",
        "x-envoy-internal",
    ] {
        assert_eq!(untrusted("", name, "9.9.9.9"), Fate::Drop, "{name}");
        let expected = if name == "X-Forwarded-For" {
            Fate::Drop
        } else {
            Fate::Forward
        };
        assert_eq!(trusted("", name), expected, "{name}");
    }
    assert_eq!(untrusted("", "x-forwarded", "1"), Fate::Forward);
    assert_eq!(untrusted("", "x-real-ipx", "1"), Fate::Forward);
}

#[test]
fn underscores_are_refused_or_read_as_dashes() {
    assert_eq!(untrusted("", "x_forwarded_for", "1"), Fate::Refuse);
    assert_eq!(untrusted("", "x_a", "1"), Fate::Refuse);
    let connection = ConnectionOptions::default();
    let lenient = RequestHygiene {
        connection: &connection,
        is_trusted: false,
        allows_underscores: true,
        is_upgrade: false,
    };
    assert_eq!(request_header(b"X_Forwarded_For", b"1", &lenient), Fate::Drop);
    assert_eq!(request_header(b"transfer_encoding", b"1", &lenient), Fate::Codec);
    assert_eq!(request_header(b"x_a", b"1", &lenient), Fate::Forward);
}

#[test]
fn of_te_only_trailers_pass() {
    assert_eq!(untrusted("te", "te", "trailers"), Fate::Replace("trailers"));
    assert_eq!(
        untrusted("", "TE", "gzip;q=0.5, Trailers;q=1"),
        Fate::Replace("trailers")
    );
    assert_eq!(untrusted("", "TE", "gzip, trailersx"), Fate::Drop);
}

#[test]
fn an_upgrade_passes_only_when_it_is_carried_out() {
    let connection = ConnectionOptions::parse([&b"Upgrade"[..]]);
    let hygiene = |is_upgrade| RequestHygiene {
        connection: &connection,
        is_trusted: false,
        allows_underscores: false,
        is_upgrade,
    };
    assert_eq!(request_header(b"Upgrade", b"websocket", &hygiene(true)), Fate::Forward);
    assert_eq!(request_header(b"Upgrade", b"websocket", &hygiene(false)), Fate::Drop);
    assert_eq!(response_header(b"upgrade", &connection, true), Fate::Forward);
    assert_eq!(response_header(b"upgrade", &connection, false), Fate::Drop);
}

#[test]
fn only_protocols_that_are_not_http_again_are_forwarded() {
    for protocol in ["websocket", "WebSocket", " spdy/3.1 ", "tcp"] {
        assert!(forwardable_upgrade(protocol.as_bytes()).is_some(), "{protocol}");
    }
    for protocol in [
        "h2c",
        "H2C",
        "h2",
        "HTTP/2.0",
        "TLS/1.0",
        "",
        "websocket, h2c",
        "web socket",
    ] {
        assert!(forwardable_upgrade(protocol.as_bytes()).is_none(), "{protocol}");
    }
}

#[test]
fn connection_options_are_read_from_all_headers() {
    let options = ConnectionOptions::parse([&b"Keep-Alive, x-a"[..], b" CLOSE ,X-B"]);
    assert!(options.names(b"X-A") && options.names(b"x-b") && !options.names(b"close") && !options.is_excessive);
    let many = ["x-a"; 9].join(",");
    assert!(ConnectionOptions::parse([many.as_bytes()]).is_excessive);
    let framing_only = vec!["close"; 1000].join(",");
    assert!(!ConnectionOptions::parse([framing_only.as_bytes()]).is_excessive);
}

#[test]
fn response_headers_lose_only_what_concerns_the_connection() {
    let connection = ConnectionOptions::parse([&b"close, X-Internal"[..]]);
    for (name, expected) in [
        ("connection", Fate::Drop),
        ("Keep-Alive", Fate::Drop),
        ("x-internal", Fate::Drop),
        ("Transfer-Encoding", Fate::Codec),
        ("content-length", Fate::Codec),
        ("set-cookie", Fate::Forward),
        ("x_under", Fate::Forward),
        ("x-forwarded-for", Fate::Forward),
        ("trailer", Fate::Forward),
    ] {
        assert_eq!(response_header(name.as_bytes(), &connection, false), expected, "{name}");
    }
}

fn written(hop: Hop<'_>, received: &[(&str, &str)]) -> Vec<String> {
    let mut lines = Vec::new();
    let received = received.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    forwarded_headers(hop, received, |name, value| {
        lines.push(format!("{name}: {}", String::from_utf8_lossy(value)));
    });
    lines
}

const HOP: Hop<'static> = Hop {
    peer: "192.0.2.1",
    is_trusted: false,
    scheme: Scheme::Https,
    authority: "shop.example:8443",
};

#[test]
fn an_untrusted_peer_is_described_afresh() {
    let lines = written(HOP, &[("x-forwarded-for", "9.9.9.9"), ("x-forwarded-proto", "http")]);
    assert_eq!(
        lines,
        [
            "x-forwarded-for: 192.0.2.1",
            "x-forwarded-proto: https",
            "x-forwarded-host: shop.example:8443"
        ]
    );
}

#[test]
fn a_trusted_peer_s_statements_are_completed() {
    let hop = Hop {
        is_trusted: true,
        ..HOP
    };
    let received = [
        ("X-Forwarded-For", "9.9.9.9, 8.8.8.8"),
        ("x-forwarded-for", "7.7.7.7"),
        ("X-Forwarded-Proto", "http"),
    ];
    assert_eq!(
        written(hop, &received),
        [
            "x-forwarded-for: 9.9.9.9, 8.8.8.8, 7.7.7.7, 192.0.2.1",
            "x-forwarded-host: shop.example:8443"
        ]
    );
    assert_eq!(written(hop, &[]).len(), 3);
}

#[test]
fn trust_is_by_network() {
    let trusted: Vec<Network> = ["10.0.0.0/8", "::1"].map(|text| text.parse().unwrap()).to_vec();
    let peer = |text: &str| text.parse::<IpAddr>().unwrap();
    assert!(is_trusted(&trusted, peer("10.1.2.3")) && is_trusted(&trusted, peer("::1")));
    assert!(!is_trusted(&trusted, peer("11.0.0.1")) && !is_trusted(&[], peer("127.0.0.1")));
}

proptest! {
    #[test]
    fn no_spelling_of_a_forwarded_header_gets_through_from_an_untrusted_peer(
        place in 0..5_usize,
        upper in any::<u32>(),
        underscores in any::<u32>(),
        token in any::<bool>(),
    ) {
        let names = ["x-forwarded-for", "x-forwarded-proto", "forwarded", "x-real-ip", "x-envoy-internal"];
        let bit = |mask: u32, place: usize| mask >> (place % 32) & 1 == 1;
        let spelled: Vec<u8> = names[place].bytes().enumerate().map(|(place, byte)| match byte {
            b'-' if bit(underscores, place) => b'_',
            _ if bit(upper, place) => byte.to_ascii_uppercase(),
            _ => byte,
        }).collect();
        let connection = if token { ConnectionOptions::parse([&*spelled]) } else { ConnectionOptions::default() };
        let hygiene = |allows_underscores| RequestHygiene {
            connection: &connection, is_trusted: false, allows_underscores, is_upgrade: false,
        };
        prop_assert_eq!(request_header(&spelled, b"1", &hygiene(true)), Fate::Drop);
        prop_assert!(matches!(request_header(&spelled, b"1", &hygiene(false)), Fate::Drop | Fate::Refuse));
    }
}
