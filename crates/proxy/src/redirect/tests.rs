use gatewright_ir::{PathChange, Redirect, Scheme};

use super::{Redirected, location, status};

fn keep_everything() -> Redirect {
    Redirect {
        scheme: None,
        hostname: None,
        port: None,
        path: None,
        status: 302,
    }
}

fn from(scheme: Scheme, listener_port: u16) -> Redirected<'static> {
    Redirected {
        scheme,
        host: "shop.example",
        listener_port,
        path: "/a/b",
        query: None,
        matched_prefix: Some("/a"),
    }
}

#[test]
fn the_port_follows_the_specification() {
    use Scheme::{Http, Https};
    // scheme and port of the redirect, scheme and port of the listener, result
    let table = [
        (None, None, Http, 80, "http://shop.example/a/b"),
        (None, None, Http, 8080, "http://shop.example:8080/a/b"),
        (None, None, Https, 443, "https://shop.example/a/b"),
        (None, None, Https, 8443, "https://shop.example:8443/a/b"),
        (Some(Https), None, Http, 8080, "https://shop.example/a/b"),
        (Some(Http), None, Https, 8443, "http://shop.example/a/b"),
        (Some(Http), None, Http, 8080, "http://shop.example/a/b"),
        (Some(Https), Some(443), Http, 80, "https://shop.example/a/b"),
        (Some(Https), Some(8443), Http, 80, "https://shop.example:8443/a/b"),
        (Some(Http), Some(443), Http, 80, "http://shop.example:443/a/b"),
        (None, Some(80), Http, 8080, "http://shop.example/a/b"),
        (None, Some(80), Https, 443, "https://shop.example:80/a/b"),
        (None, Some(8443), Https, 443, "https://shop.example:8443/a/b"),
    ];
    for (scheme, port, listener_scheme, listener_port, expected) in table {
        let redirect = Redirect {
            scheme,
            port,
            ..keep_everything()
        };
        let made = location(&redirect, from(listener_scheme, listener_port));
        assert_eq!(
            made, expected,
            "{scheme:?} {port:?} {listener_scheme:?} {listener_port}"
        );
    }
}

#[test]
fn host_and_path_are_replaced_and_the_query_is_kept() {
    let redirect = Redirect {
        hostname: Some("new.example".into()),
        path: Some(PathChange::Prefix("/x".into())),
        ..keep_everything()
    };
    let request = Redirected {
        query: Some("q=1&r=%20"),
        ..from(Scheme::Http, 80)
    };
    assert_eq!(location(&redirect, request), "http://new.example/x/b?q=1&r=%20");
    let full = Redirect {
        path: Some(PathChange::Full("/new".into())),
        ..keep_everything()
    };
    assert_eq!(location(&full, request), "http://shop.example/new?q=1&r=%20");
}

#[test]
fn every_status_of_the_specification_is_used_as_it_is() {
    for code in [301, 302, 303, 307, 308] {
        let redirect = Redirect {
            status: code,
            ..keep_everything()
        };
        assert_eq!(status(&redirect).as_u16(), code);
    }
}
