use std::borrow::Cow;

use proptest::prelude::*;

use super::{Authority, Refusal, Target, path::normalise_path};

fn normal(path: &str) -> Result<String, Refusal> {
    normalise_path(path.as_bytes(), false).map(Cow::into_owned)
}

#[test]
fn every_row_of_the_table_holds() {
    let table = [
        ("/", Ok("/")),
        ("/a/../b", Ok("/b")),
        ("/a/%2e%2e/b", Ok("/b")),
        ("/a/.%2E/b", Ok("/b")),
        ("/a/./b/.", Ok("/a/b/")),
        ("/a/b/..", Ok("/a/")),
        ("/..", Ok("/")),
        ("/../../a", Ok("/a")),
        ("/a//b", Ok("/a/b")),
        ("//", Ok("/")),
        ("/a//../b", Ok("/b")),
        ("/a/b/", Ok("/a/b/")),
        ("/a\\b", Err(Refusal::Character)),
        ("/a%2fb", Err(Refusal::EscapedSlash)),
        ("/a%5Cb", Err(Refusal::EscapedSlash)),
        ("/a%00", Err(Refusal::Null)),
        ("/a#b", Err(Refusal::Fragment)),
        ("/a%", Err(Refusal::Escape)),
        ("/a%4", Err(Refusal::Escape)),
        ("/a%zz", Err(Refusal::Escape)),
        ("/a\u{1}", Err(Refusal::Character)),
        ("/a b", Err(Refusal::Character)),
        ("/a\u{7f}", Err(Refusal::Character)),
        ("/a/;x/b", Ok("/a/;x/b")),
        ("/..;/a", Ok("/..;/a")),
        ("/a/%c0%ae%c0%ae/b", Ok("/a/%c0%ae%c0%ae/b")),
        ("/%61%7E", Ok("/a~")),
        ("/%2561", Ok("/%2561")),
        ("/%252e%252e/a", Ok("/%252e%252e/a")),
        ("/ü", Ok("/%C3%BC")),
        ("/.well-known/x", Ok("/.well-known/x")),
        ("/...", Ok("/...")),
        ("/a|b{c}^", Ok("/a|b{c}^")),
        ("", Err(Refusal::Form)),
        ("a", Err(Refusal::Form)),
    ];
    for (path, expected) in table {
        assert_eq!(normal(path), expected.map(str::to_owned), "{path}");
    }
}

#[test]
fn escaped_slashes_are_kept_when_asked_for() {
    let kept = normalise_path(b"/a%2f..%5C/%2e", true).unwrap();
    assert_eq!(kept, "/a%2f..%5C/");
}

#[test]
fn a_normal_path_is_not_copied() {
    for path in ["/", "/a/b", "/.well-known/acme", "/a%20b", "/a..b/"] {
        assert!(
            matches!(normalise_path(path.as_bytes(), false), Ok(Cow::Borrowed(_))),
            "{path}"
        );
    }
}

#[test]
fn each_form_of_a_target_is_understood() {
    let parse = |method, target: &'static str| Target::parse(method, target.as_bytes(), false);
    let origin = parse("GET", "/a/../b?c=%zz&/../").unwrap();
    assert_eq!((&origin.authority, &*origin.path), (&None, "/b"));
    assert_eq!(origin.query.as_deref(), Some("c=%zz&/../"));
    let absolute = parse("GET", "HTTP://Shop.Example:80//a?").unwrap();
    let authority = absolute.authority.unwrap();
    assert_eq!((authority.text, &*authority.host), ("Shop.Example:80", "shop.example"));
    assert_eq!((&*absolute.path, absolute.query.as_deref()), ("/a", Some("")));
    let bare = parse("GET", "http://shop?q").unwrap();
    assert_eq!((&*bare.path, bare.query.as_deref()), ("/", Some("q")));
    assert_eq!(parse("OPTIONS", "*").unwrap().path, "*");
}

#[test]
fn other_targets_are_refused() {
    for (method, target, refusal) in [
        ("GET", "*", Refusal::Form),
        ("CONNECT", "shop:443", Refusal::Connect),
        ("GET", "shop:443", Refusal::Form),
        ("GET", "ftp://shop/", Refusal::Form),
        ("GET", "http:///a", Refusal::Host),
        ("GET", "http://a@b/", Refusal::Host),
        ("GET", "http://a#b", Refusal::Form),
        ("GET", "", Refusal::Form),
        ("GET", "/a?b#c", Refusal::Fragment),
        ("GET", "/a?b c", Refusal::Character),
        ("GET", "/a?b\r\n", Refusal::Character),
    ] {
        assert_eq!(
            Target::parse(method, target.as_bytes(), false),
            Err(refusal),
            "{method} {target}"
        );
    }
}

#[test]
fn bytes_above_127_in_a_query_are_escaped() {
    let target = Target::parse("GET", b"/?a=\xc3\xbc\xff", false).unwrap();
    assert_eq!(target.query.as_deref(), Some("a=%C3%BC%FF"));
}

#[test]
fn hosts_are_read_in_lower_case_without_port_and_trailing_dot() {
    for (text, host, port) in [
        ("Shop.Example.COM", "shop.example.com", None),
        ("shop.:8080", "shop", Some(8080)),
        ("10.0.0.1:65535", "10.0.0.1", Some(65535)),
        ("[2001:DB8::1]:80", "[2001:db8::1]", Some(80)),
        ("[::1]", "[::1]", None),
        ("a_b.c", "a_b.c", None),
    ] {
        let authority = Authority::parse(text.as_bytes()).unwrap();
        assert_eq!((&*authority.host, authority.port, authority.text), (host, port, text));
    }
}

#[test]
fn malformed_hosts_are_refused() {
    let long = "a".repeat(254);
    for text in [
        "",
        ".",
        ":80",
        "a@b",
        "a,b",
        "a b",
        "a/b",
        "a..b",
        ".a",
        "a:",
        "a:0",
        "a:65536",
        "a:+1",
        "a:1:2",
        "a:b",
        "[::1",
        "[::1]x",
        "[1.2.3.4]",
        "::1",
        "ü",
        "a%41",
        "a\r",
        "a\0",
        "*",
        &long,
    ] {
        assert_eq!(Authority::parse(text.as_bytes()), Err(Refusal::Host), "{text}");
    }
    assert_eq!(Authority::parse(b"a\xff"), Err(Refusal::Host));
}

proptest! {
    #[test]
    fn the_normal_form_is_final_and_has_nothing_left_to_resolve(
        path in "(/|\\.|%2e|%2E|%2f|%61|%25|a|;|ü|~){0,12}",
        keep in any::<bool>(),
    ) {
        let path = format!("/{path}");
        if let Ok(once) = normalise_path(path.as_bytes(), keep) {
            let twice = normalise_path(once.as_bytes(), keep);
            prop_assert!(matches!(&twice, Ok(Cow::Borrowed(text)) if *text == once), "{} {:?}", once, twice);
            prop_assert!(once.starts_with('/') && once.is_ascii());
            prop_assert!(!once.contains("//"));
            prop_assert!(!once.split('/').any(|segment| matches!(segment, "." | "..")));
            prop_assert!(!once.to_ascii_lowercase().contains("%2e"));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(target in proptest::collection::vec(any::<u8>(), 0..40)) {
        drop(Target::parse("GET", &target, false));
        drop(Target::parse("GET", &[b"/", &*target].concat(), true));
        drop(Authority::parse(&target));
    }
}
