//! What a changed table shares with the one before.

use std::sync::Arc;

use gatewright_ir::{Field, Host, HostPattern, PathMatch, Pattern, TextMatch, reference::Request};
use imbl::OrdMap;

use super::{
    View,
    generate::{entry, listener, rule},
};
use crate::matching::{CompiledEntry, ListenerTable};

fn get(host: &str, path: &str) -> Request {
    Request {
        host: host.into(),
        method: "GET".into(),
        path: path.into(),
        ..Request::default()
    }
}

fn find(table: &ListenerTable, request: &Request) -> Option<Arc<CompiledEntry>> {
    table.find(&View::new(request)).cloned()
}

fn exact(name: &str) -> HostPattern {
    HostPattern::Exact(name.into())
}

#[test]
fn what_did_not_change_is_not_compiled_again() {
    let rule_of = rule("one");
    let host = |range: std::ops::Range<usize>| {
        let entries = range.map(|n| {
            entry(
                PathMatch::Exact(format!("/{n:03}").into()),
                &format!("r/{n:03}"),
                &rule_of,
            )
        });
        Arc::new(Host {
            entries: entries.collect(),
        })
    };
    let mut listener = listener(OrdMap::from_iter([(exact("a"), host(0..50)), (exact("b"), host(0..3))]));
    let old = ListenerTable::compile(&listener, None);
    let mut changed = Host::clone(&listener.hosts[&exact("a")]);
    changed
        .entries
        .insert(entry(PathMatch::Exact("/007".into()), "r/007", &rule("two")));
    listener.hosts.insert(exact("a"), Arc::new(changed));
    let new = ListenerTable::compile(&listener, Some(&old));
    for (host, path, is_shared) in [("a", "/007", false), ("a", "/008", true), ("b", "/001", true)] {
        let (old, new) = (
            find(&old, &get(host, path)).unwrap(),
            find(&new, &get(host, path)).unwrap(),
        );
        assert_eq!(Arc::ptr_eq(&old, &new), is_shared, "{host}{path}");
    }
    assert_eq!(find(&new, &get("a", "/007")).unwrap().rule.rule.origin.as_str(), "two");
    assert_eq!(find(&old, &get("a", "/007")).unwrap().rule.rule.origin.as_str(), "one");
}

#[test]
fn the_matches_of_one_rule_share_what_is_compiled() {
    let shared = rule("shared");
    let entries = ["/a", "/b"].map(|path| entry(PathMatch::Exact(path.into()), path, &shared));
    let host = Arc::new(Host {
        entries: entries.into_iter().collect(),
    });
    let listener = listener(OrdMap::from_iter([
        (exact("a"), host.clone()),
        (HostPattern::Any, host),
    ]));
    let table = ListenerTable::compile(&listener, None);
    let rule_of = |host, path| find(&table, &get(host, path)).unwrap().rule.clone();
    assert!(Arc::ptr_eq(&rule_of("a", "/a"), &rule_of("x", "/b")));
}

#[test]
fn a_pattern_is_held_once_and_only_while_it_is_used() {
    let pattern = |text: &str| PathMatch::Pattern(Pattern::new(text).unwrap());
    let used = rule("used");
    let host = |patterns: &[(&str, &str)]| {
        let entries = patterns.iter().map(|(route, text)| entry(pattern(text), route, &used));
        let host = Host {
            entries: entries.collect(),
        };
        listener(OrdMap::unit(HostPattern::Any, Arc::new(host)))
    };
    let many: Vec<_> = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
        .map(|route| (route, "/x/[0-9]+"))
        .to_vec();
    let table = ListenerTable::compile(&host(&many), None);
    assert_eq!(table.patterns(), 1);
    let table = ListenerTable::compile(&host(&[("1", "/x/[0-9]+"), ("2", "/y/.*")]), Some(&table));
    assert_eq!(table.patterns(), 2);
    let table = ListenerTable::compile(&host(&[("2", "/y/.*")]), Some(&table));
    assert_eq!(table.patterns(), 1);
    let table = ListenerTable::compile(&host(&[]), Some(&table));
    assert_eq!(table.patterns(), 0);
    assert!(find(&table, &get("x", "/y/z")).is_none());
}

#[test]
fn entries_that_share_a_path_come_and_go_one_by_one() {
    let used = rule("used");
    let entry_of = |n: usize| {
        let mut entry = entry(PathMatch::Prefix("/a".into()), &format!("r/{n:02}"), &used);
        Arc::make_mut(&mut entry).matches.headers = Box::new([Field {
            name: "x".into(),
            value: TextMatch::Exact(n.to_string().into()),
        }]);
        entry
    };
    let mut host = Host {
        entries: (0..12).map(entry_of).collect(),
    };
    let mut table: Option<ListenerTable> = None;
    for taken in [5, 0, 11, 3, 4, 1, 10, 2, 9, 6, 8, 7] {
        let listener = listener(OrdMap::unit(HostPattern::Any, Arc::new(host.clone())));
        let followed = ListenerTable::compile(&listener, table.as_ref());
        for n in 0..12 {
            let mut request = get("a", "/a/b");
            request.headers = vec![("x".into(), n.to_string())];
            let is_there = find(&followed, &request).is_some();
            assert_eq!(
                is_there,
                host.entries.iter().any(|entry| **entry == *entry_of(n)),
                "{n} before {taken}"
            );
        }
        table = Some(followed);
        host.entries.remove(&entry_of(taken));
    }
    assert!(host.entries.is_empty());
}
