use std::sync::Arc;

use super::*;
use crate::{GrpcMatch, Method, Origin, Pattern, Rank, Rule, Timeouts};

fn entry_of(route: &str, created: i64, position: u16, matches: Match) -> Arc<Entry> {
    Arc::new(Entry {
        matches,
        rank: Rank {
            created,
            route: route.into(),
            rule: 0,
            position,
        },
        rule: Arc::new(Rule {
            origin: Origin::new(route),
            name: None,
            filters: None,
            backends: Box::new([]),
            timeouts: Timeouts::default(),
            retry: None,
            session: None,
        }),
    })
}

fn on(path: PathMatch) -> Match {
    Match {
        path,
        ..Match::everything()
    }
}

fn header(name: &str, value: &str) -> Field {
    Field {
        name: name.into(),
        value: TextMatch::Exact(value.into()),
    }
}

fn winner(entries: &[Arc<Entry>], request: &Request) -> Option<String> {
    let host = Host {
        entries: entries.iter().cloned().collect(),
    };
    entry_of_host(&host, request).map(|entry| entry.rule.origin.to_string())
}

fn get(path: &str) -> Request {
    Request {
        host: "a.com".into(),
        method: "GET".into(),
        path: path.into(),
        ..Request::default()
    }
}

#[test]
fn each_tie_break_of_the_specification_decides_when_all_before_it_are_equal() {
    let prefix = |path: &str| on(PathMatch::Prefix(path.into()));
    // Each pair: the winner first. The loser is older and earlier by name, so only the step at hand can decide.
    let pairs = [
        (on(PathMatch::Exact("/a".into())), prefix("/a")),
        (prefix("/a/b"), prefix("/a")),
        (
            Match {
                method: Some(Method::Get),
                ..prefix("/a")
            },
            prefix("/a"),
        ),
        (
            Match {
                headers: Box::new([header("x", "1")]),
                ..prefix("/a")
            },
            prefix("/a"),
        ),
        (
            Match {
                query: Box::new([header("q", "1")]),
                ..prefix("/a")
            },
            prefix("/a"),
        ),
        (
            Match {
                method: Some(Method::Get),
                ..prefix("/a")
            },
            Match {
                headers: Box::new([header("x", "1")]),
                ..prefix("/a")
            },
        ),
        (
            Match {
                headers: Box::new([header("x", "1")]),
                ..prefix("/a")
            },
            Match {
                query: Box::new([header("q", "1"), header("r", "1")]),
                ..prefix("/a")
            },
        ),
        (on(PathMatch::Pattern(Pattern::new("/a/.*").unwrap())), prefix("/a")),
    ];
    for (position, (better, worse)) in pairs.into_iter().enumerate() {
        let entries = [entry_of("z/better", 9, 1, better), entry_of("a/worse", 1, 0, worse)];
        let mut request = get(if position == 0 { "/a" } else { "/a/b" });
        request.headers.push(("x".into(), "1".into()));
        request.query = vec![("q".into(), "1".into()), ("r".into(), "1".into())];
        assert_eq!(
            winner(&entries, &request).as_deref(),
            Some("z/better"),
            "pair {position}"
        );
    }
}

#[test]
fn equal_matches_go_to_the_oldest_route_then_by_name_then_by_position() {
    let all = Match::everything;
    assert_eq!(
        winner(
            &[entry_of("z/old", 1, 5, all()), entry_of("a/new", 2, 0, all())],
            &get("/")
        )
        .unwrap(),
        "z/old"
    );
    assert_eq!(
        winner(&[entry_of("b/x", 1, 0, all()), entry_of("a/x", 1, 5, all())], &get("/")).unwrap(),
        "a/x"
    );
    let host = Host {
        entries: [entry_of("a/x", 1, 1, all()), entry_of("a/x", 1, 0, all())]
            .into_iter()
            .collect(),
    };
    assert_eq!(entry_of_host(&host, &get("/")).unwrap().rank.position, 0);
}

#[test]
fn prefixes_match_whole_segments_only() {
    let prefix = PathMatch::Prefix("/foo".into());
    for (path, expected) in [
        ("/foo", true),
        ("/foo/", true),
        ("/foo/bar", true),
        ("/foobar", false),
        ("/fo", false),
    ] {
        assert_eq!(path_is_met(&prefix, path), expected, "{path}");
        assert_eq!(
            path_is_met(&PathMatch::Prefix("/foo/".into()), path),
            expected,
            "{path} with a trailing slash"
        );
    }
    assert!(path_is_met(&PathMatch::Prefix("/".into()), "/anything"));
}

#[test]
fn a_repeated_parameter_counts_by_its_first_value_and_a_repeated_header_by_any() {
    let mut request = get("/");
    request.query = vec![("q".into(), "1".into()), ("q".into(), "2".into())];
    request.headers = vec![("x".into(), "1".into()), ("x".into(), "2".into())];
    let with = |query: Option<&str>, value: Option<&str>| Match {
        query: query.map(|value| header("q", value)).into_iter().collect(),
        headers: value.map(|value| header("x", value)).into_iter().collect(),
        ..Match::everything()
    };
    assert!(is_met(&with(Some("1"), None), &request));
    assert!(!is_met(&with(Some("2"), None), &request));
    assert!(is_met(&with(None, Some("2")), &request));
}

#[test]
fn grpc_calls_go_by_service_then_method_then_headers() {
    let grpc = |path: PathMatch, service: u16, method: u16| Match {
        path,
        grpc: Some(GrpcMatch { service, method }),
        ..Match::everything()
    };
    let method_only = || grpc(PathMatch::Pattern(Pattern::new("/[^/]+/SayHello").unwrap()), 0, 8);
    // Best first.
    let ranked = [
        grpc(PathMatch::Exact("/a.B/SayHello".into()), 3, 8),
        grpc(PathMatch::Prefix("/a.B".into()), 3, 0),
        Match {
            headers: Box::new([header("x", "1")]),
            ..method_only()
        },
        method_only(),
        grpc(PathMatch::Prefix("/".into()), 0, 0),
        Match::everything(),
    ];
    let mut call = get("/a.B/SayHello");
    call.method = "POST".into();
    call.headers = vec![
        ("x".into(), "1".into()),
        ("content-type".into(), "application/grpc".into()),
    ];
    for (place, pair) in ranked.windows(2).enumerate() {
        let entries = [
            entry_of("z/better", 9, 1, pair[0].clone()),
            entry_of("a/worse", 1, 0, pair[1].clone()),
        ];
        assert_eq!(winner(&entries, &call).as_deref(), Some("z/better"), "pair {place}");
    }
    // What is no gRPC call passes all of them by.
    let entries = ranked.map(|matches| {
        let route = if matches.grpc.is_some() { "a/grpc" } else { "a/http" };
        entry_of(route, 1, 0, matches)
    });
    assert_eq!(winner(&entries, &get("/a.B/SayHello")).as_deref(), Some("a/http"));
}
