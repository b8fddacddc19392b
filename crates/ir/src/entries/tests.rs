use std::sync::Arc;

use super::{Entries, EntryChange};
use crate::{Entry, Host, HostPattern, Match, Origin, PathMatch, Rank, Rule, Timeouts};

fn entry(path: usize, origin: &str) -> Arc<Entry> {
    Arc::new(Entry {
        matches: Match {
            path: PathMatch::Prefix(format!("/{path:05}").into()),
            ..Match::everything()
        },
        rank: Rank {
            created: 0,
            route: format!("shop/{path:05}").into(),
            rule: 0,
            position: 0,
        },
        rule: Arc::new(Rule {
            origin: Origin::new(origin),
            name: None,
            filters: None,
            backends: Box::new([]),
            timeouts: Timeouts::default(),
            retry: None,
            session: None,
        }),
    })
}

fn changes(old: &Entries, new: &Entries) -> Vec<String> {
    old.diff(new)
        .map(|change| match change {
            EntryChange::Added(entry) => format!("+{}", entry.rule.origin),
            EntryChange::Removed(entry) => format!("-{}", entry.rule.origin),
            EntryChange::Replaced { old, new } => format!("{}>{}", old.rule.origin, new.rule.origin),
        })
        .collect()
}

#[test]
fn a_rule_that_changed_at_the_same_rank_is_a_difference() {
    let old: Entries = (0..500).map(|path| entry(path, "old")).collect();
    let mut new = old.clone();
    assert_eq!(new.insert(entry(250, "new")).unwrap().rule.origin.as_str(), "old");
    assert_eq!(changes(&old, &new), ["old>new"]);
    assert_ne!(old, new);
    let rule_of = |entries: &Entries| entries.iter().nth(250).unwrap().rule.origin.to_string();
    assert_eq!((rule_of(&old), rule_of(&new)), ("old".into(), "new".into()));
}

#[test]
fn hosts_that_differ_only_in_a_rule_differ_in_a_map_too() {
    let map = |origin: &str| {
        let host = Host {
            entries: [entry(1, origin)].into_iter().collect(),
        };
        imbl::OrdMap::unit(HostPattern::Any, Arc::new(host))
    };
    assert_eq!(map("old").diff(&map("new")).count(), 1);
    assert_eq!(map("old").diff(&map("old")).count(), 0);
}

#[test]
fn a_new_object_with_the_old_content_is_no_difference() {
    let old: Entries = (0..50).map(|path| entry(path, "same")).collect();
    let new: Entries = (0..50).map(|path| entry(path, "same")).collect();
    assert_eq!(changes(&old, &new), [] as [&str; 0]);
    assert_eq!(old, new);
}

#[test]
fn additions_and_removals_are_found_beside_replacements() {
    let old: Entries = (0..100).map(|path| entry(path, "old")).collect();
    let mut new = old.clone();
    new.remove(&entry(10, "whatever"));
    new.insert(entry(20, "changed"));
    new.insert(entry(200, "added"));
    assert_eq!(changes(&old, &new), ["-old", "old>changed", "+added"]);
    assert_eq!(changes(&new, &old), ["+old", "changed>old", "-added"]);
}
