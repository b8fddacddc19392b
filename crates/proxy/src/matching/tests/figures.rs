//! Figures: what matching and following a change cost in large tables. Bounds are loose, since tests share a machine; the
//! figures themselves are printed.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright_ir::{Host, HostPattern, Listener, PathMatch, Pattern, reference::Request};
use imbl::OrdMap;

use super::{
    View,
    generate::{entry, listener, rule},
};
use crate::matching::ListenerTable;

type PathOf = fn(usize) -> PathMatch;

fn get(host: String, path: String) -> Request {
    Request {
        host,
        method: "GET".into(),
        path,
        ..Request::default()
    }
}

/// The shortest of many rounds: what else runs on the machine only ever adds.
fn shortest(rounds: usize, mut round: impl FnMut()) -> Duration {
    let one = |_| {
        let start = Instant::now();
        round();
        start.elapsed()
    };
    (0..rounds).map(one).min().unwrap()
}

fn time_of_lookup(table: &ListenerTable, request: &Request) -> Duration {
    let view = View::new(request);
    assert!(table.find(&view).is_some(), "{request:?}");
    shortest(60, || {
        for _ in 0..200 {
            black_box(table.find(black_box(&view)));
        }
    }) / 200
}

fn one_host(count: usize, path: impl Fn(usize) -> PathMatch) -> Listener {
    let common = rule("common");
    let entries = (0..count).map(|n| entry(path(n), &format!("r/{n:06}"), &common));
    let host = Host {
        entries: entries.collect(),
    };
    listener(OrdMap::unit(HostPattern::Exact("shop.example".into()), Arc::new(host)))
}

#[test]
fn the_last_of_ten_thousand_paths_costs_no_more_than_the_first() {
    let kinds: [(&str, PathOf); 3] = [
        ("exact", |n| PathMatch::Exact(format!("/service-{n:05}/items").into())),
        ("prefix", |n| PathMatch::Prefix(format!("/service-{n:05}/items").into())),
        ("pattern", |n| {
            PathMatch::Pattern(Pattern::new(&format!("/service-{n:05}/items(/[0-9]+)?")).unwrap())
        }),
    ];
    for (kind, path) in kinds {
        let count = if kind == "pattern" { 500 } else { 10_000 };
        let listener = one_host(count, path);
        let table = ListenerTable::compile(&listener, None);
        let at = |n: usize| time_of_lookup(&table, &get("shop.example".into(), format!("/service-{n:05}/items")));
        // Several near each end: one alone tells more about its place in a cache line than about its rank.
        let best = |places: [usize; 8]| places.map(at).into_iter().min().unwrap();
        let first = best(std::array::from_fn(|n| n));
        let last = best(std::array::from_fn(|n| count - 1 - n));
        let ratio = last.as_secs_f64() / first.as_secs_f64();
        println!("{kind}: first {first:?}, last {last:?} of {count}, ratio {ratio:.2}");
        assert!(
            ratio < 1.6,
            "{kind}: the last of {count} costs {ratio:.2} times the first"
        );
    }
}

#[test]
fn a_changed_entry_costs_little_more_among_ten_thousand_than_among_a_hundred() {
    let path = |n: usize| PathMatch::Prefix(format!("/service-{n:05}").into());
    let change_among = |count: usize| {
        let old = one_host(count, path);
        let table = ListenerTable::compile(&old, None);
        let (pattern, host) = old.hosts.get_min().unwrap();
        let mut changed = Host::clone(host);
        changed
            .entries
            .insert(entry(path(count / 2), &format!("r/{:06}", count / 2), &rule("changed")));
        let mut new = old.clone();
        new.hosts.insert(pattern.clone(), Arc::new(changed));
        let request = get("shop.example".into(), format!("/service-{:05}", count / 2));
        let followed = ListenerTable::compile(&new, Some(&table));
        assert_eq!(
            followed.find(&View::new(&request)).unwrap().rule.rule.origin.as_str(),
            "changed"
        );
        shortest(200, || drop(black_box(ListenerTable::compile(&new, Some(&table)))))
    };
    let (few, many) = (change_among(100), change_among(10_000));
    println!("one changed entry on one host: {few:?} among 100, {many:?} among 10,000");
    assert!(many < few * 8, "{few:?} {many:?}");
}

#[test]
fn a_changed_host_costs_little_more_among_twenty_thousand_than_among_a_hundred() {
    let name = |n: usize| HostPattern::Exact(format!("shop-{n:06}.example").into());
    let host_of = |n: usize, origin: &str| {
        let all = entry(PathMatch::Prefix("/".into()), &format!("r/{n:06}"), &rule(origin));
        Arc::new(Host {
            entries: [all].into_iter().collect(),
        })
    };
    let change_among = |count: usize| {
        let old = listener((0..count).map(|n| (name(n), host_of(n, "old"))).collect());
        let start = Instant::now();
        let table = ListenerTable::compile(&old, None);
        println!("{count} hosts compiled in {:?}", start.elapsed());
        let mut new = old.clone();
        new.hosts.insert(name(count / 2), host_of(count / 2, "new"));
        let request = get(format!("shop-{:06}.example", count / 2), "/".into());
        let followed = ListenerTable::compile(&new, Some(&table));
        assert_eq!(
            followed.find(&View::new(&request)).unwrap().rule.rule.origin.as_str(),
            "new"
        );
        shortest(200, || drop(black_box(ListenerTable::compile(&new, Some(&table)))))
    };
    let (few, many) = (change_among(100), change_among(20_000));
    println!("one changed host: {few:?} among 100, {many:?} among 20,000");
    assert!(many < few * 8, "{few:?} {many:?}");
}

#[test]
fn a_very_deep_path_is_read_only_as_far_as_the_deepest_rule() {
    let listener = one_host(100, |n| PathMatch::Prefix("/a".repeat(n % 10).into()));
    let table = ListenerTable::compile(&listener, None);
    let shallow = time_of_lookup(&table, &get("shop.example".into(), "/a".repeat(12)));
    let deep = time_of_lookup(&table, &get("shop.example".into(), "/a".repeat(4096)));
    println!("12 segments {shallow:?}, 4096 segments {deep:?}");
    assert!(deep < shallow * 3, "{shallow:?} {deep:?}");
}

#[test]
fn a_very_deep_rule_neither_overflows_the_stack_nor_slows_other_paths() {
    let deep = "/a".repeat(100_000);
    let listener = one_host(20, |n| match n {
        0 => PathMatch::Prefix(deep.as_str().into()),
        _ => PathMatch::Prefix(format!("/{n}").into()),
    });
    let table = ListenerTable::compile(&listener, None);
    assert!(
        table
            .find(&View::new(&get("shop.example".into(), deep.clone())))
            .is_some()
    );
    assert!(
        table
            .find(&View::new(&get("shop.example".into(), "/a".repeat(4096))))
            .is_none()
    );
    drop(table);
}
