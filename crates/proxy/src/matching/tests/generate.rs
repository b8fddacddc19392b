//! Random listeners and requests over alphabets so small that almost everything collides.

use std::sync::Arc;

use gatewright_ir::{
    Entry, Field, GrpcMatch, Host, HostPattern, Listener, ListenerSettings, Match, Method, Origin, PathMatch, Pattern,
    Protocol, Rank, Rule, TextMatch, Timeouts, reference::Request,
};
use imbl::OrdMap;
use proptest::{collection::vec, prelude::*, sample::select};

pub(super) fn rule(origin: &str) -> Arc<Rule> {
    Arc::new(Rule {
        origin: Origin::new(origin),
        name: None,
        filters: None,
        backends: Box::new([]),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
    })
}

pub(super) fn entry(path: PathMatch, route: &str, rule: &Arc<Rule>) -> Arc<Entry> {
    Arc::new(Entry {
        matches: Match {
            path,
            ..Match::everything()
        },
        rank: Rank {
            created: 0,
            route: route.into(),
            rule: 0,
            position: 0,
        },
        rule: rule.clone(),
    })
}

pub(super) fn listener(hosts: OrdMap<HostPattern, Arc<Host>>) -> Listener {
    Listener {
        origin: Origin::new("listener"),
        name: "http".into(),
        addresses: Vec::new(),
        port: 80,
        bind: 80,
        protocol: Protocol::Http,
        hostname: HostPattern::Any,
        settings: Arc::new(ListenerSettings::default()),
        hosts,
    }
}

pub(super) fn any_host_pattern() -> impl Strategy<Value = HostPattern> {
    let name = || vec("[ab]", 1..4).prop_map(|labels| labels.join(".").into());
    prop_oneof![
        name().prop_map(HostPattern::Exact),
        name().prop_map(HostPattern::Wildcard),
        Just(HostPattern::Any),
    ]
}

fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => vec("(a|b|ab|)", 1..4).prop_map(|segments| format!("/{}", segments.join("/"))),
        1 => vec("a", 1..14).prop_map(|segments| format!("/{}", segments.join("/"))),
        1 => select(vec!["", "*", "a", "/", "//"]).prop_map(str::to_owned),
    ]
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    let patterns = [
        "/a/.*",
        "/a/b?",
        "/a/b/.*",
        "/a/*b",
        "/.*",
        ".*",
        "/a|/b/.*",
        "/(a|b)/a",
        "^/a/b$",
        "/a{1,2}/b",
        "/a/[ab]+",
        "(?i)/A/B",
        "/b/a+/.*",
        "/a/b",
        "/ab/.*",
        "a/.*",
        "",
    ];
    select(patterns.map(|text| Pattern::new(text).unwrap()).to_vec())
}

fn any_path_match() -> impl Strategy<Value = PathMatch> {
    prop_oneof![
        any_path().prop_map(|path| PathMatch::Exact(path.into())),
        any_path().prop_map(|path| PathMatch::Prefix(path.into())),
        any_pattern().prop_map(PathMatch::Pattern),
    ]
}

fn any_fields(names: &'static [&'static str]) -> impl Strategy<Value = Box<[Field]>> {
    let value = prop_oneof![
        3 => "[12]".prop_map(|text| TextMatch::Exact(text.into())),
        1 => select(vec!["1|2", "[0-9]+", "2"]).prop_map(|text| TextMatch::Pattern(Pattern::new(text).unwrap())),
    ];
    prop_oneof![
        3 => Just(Vec::new()),
        1 => (proptest::sample::subsequence(names, 1..=names.len()), vec(value, names.len())).prop_map(
            |(names, values)| {
                let field = |(name, value): (&str, TextMatch)| Field { name: name.into(), value };
                names.into_iter().zip(values).map(field).collect()
            }
        ),
    ]
    .prop_map(Vec::into_boxed_slice)
}

/// `version` tells apart entries that agree in everything else.
fn any_entry_on(path: impl Strategy<Value = PathMatch>) -> impl Strategy<Value = Arc<Entry>> {
    let method = prop_oneof![3 => Just(None), 1 => select(vec![Some(Method::Get), Some(Method::Post)])];
    let grpc = (0..4_u16, 0..3_u16).prop_map(|(service, method)| Some(GrpcMatch { service, method }));
    let grpc = prop_oneof![3 => Just(None), 1 => grpc];
    let matches = (path, method, any_fields(&["x", "y"]), any_fields(&["q", "r"]), grpc);
    let rank = (0..2_i64, "[st]", 0..2_u16, 0..2_u16);
    (matches, rank, 0..3_u8).prop_map(
        |((path, method, headers, query, grpc), (created, route, rule_position, position), version)| {
            Arc::new(Entry {
                matches: Match {
                    path,
                    method,
                    headers,
                    query,
                    grpc,
                },
                rank: Rank {
                    created,
                    route: route.into(),
                    rule: rule_position,
                    position,
                },
                rule: rule(&format!("version {version}")),
            })
        },
    )
}

pub(super) fn any_entry() -> impl Strategy<Value = Arc<Entry>> {
    any_entry_on(any_path_match())
}

/// Entries on so few paths that many share one.
pub(super) fn any_crowded_entry() -> impl Strategy<Value = Arc<Entry>> {
    let path = || select(vec!["/", "/a", "/a/", "/a/b"]);
    any_entry_on(prop_oneof![
        path().prop_map(|path| PathMatch::Exact(path.into())),
        path().prop_map(|path| PathMatch::Prefix(path.into())),
        select(vec!["/a/.*", "/a/b?", ".*"]).prop_map(|text| PathMatch::Pattern(Pattern::new(text).unwrap())),
    ])
}

/// A few hosts, of which several hold the same names, with crowded entries.
pub(super) fn crowded_hosts() -> impl Strategy<Value = OrdMap<HostPattern, Arc<Host>>> {
    let host = vec(any_crowded_entry(), 0..30).prop_map(|entries| {
        Arc::new(Host {
            entries: entries.into_iter().collect(),
        })
    });
    vec((any_of_few_patterns(), host), 0..4).prop_map(|hosts| hosts.into_iter().collect())
}

pub(super) fn any_of_few_patterns() -> impl Strategy<Value = HostPattern> {
    select(vec![
        HostPattern::Any,
        HostPattern::Exact("a.b".into()),
        HostPattern::Wildcard("b".into()),
    ])
}

pub(super) fn any_hosts() -> impl Strategy<Value = OrdMap<HostPattern, Arc<Host>>> {
    let entries = prop_oneof![vec(any_entry(), 0..6), vec(any_entry(), 6..24)];
    let host = entries.prop_map(|entries| {
        Arc::new(Host {
            entries: entries.into_iter().collect(),
        })
    });
    vec((any_host_pattern(), host), 0..5).prop_map(|hosts| hosts.into_iter().collect())
}

pub(super) fn any_request() -> impl Strategy<Value = Request> {
    let host = prop_oneof![
        8 => vec("[ab]", 1..5).prop_map(|labels| labels.join(".")),
        1 => select(vec!["", ".", ".a", "a.", "..a", "c"]).prop_map(str::to_owned),
    ];
    let method = select(vec!["GET", "POST", "PUT"]).prop_map(str::to_owned);
    let pairs = |names: &'static str| vec((names, "[123]"), 0..3);
    let content_type = select(vec!["", "text/plain", "application/grpc", "application/grpc+proto"]);
    (host, method, any_path(), pairs("[xy]"), pairs("[qr]"), content_type).prop_map(
        |(host, method, path, mut headers, query, content_type)| {
            if !content_type.is_empty() {
                headers.push(("content-type".to_owned(), content_type.to_owned()));
            }
            Request {
                host,
                method,
                path,
                headers,
                query,
            }
        },
    )
}
