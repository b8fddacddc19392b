//! The compiled tables against the reference matcher.

use std::sync::Arc;

use gatewright_ir::{Entry, Host, HostPattern, Listener, PathMatch, Pattern, reference};
use proptest::{collection::vec, prelude::*};

use super::{
    View,
    generate::{
        any_crowded_entry, any_host_pattern, any_hosts, any_of_few_patterns, any_request, crowded_hosts, listener, rule,
    },
};
use crate::matching::{BindTable, ListenerTable, patterns::literal_head};

/// Both matchers must choose an equal entry.
fn check(table: &ListenerTable, listener: &Listener, request: &reference::Request) -> Result<(), TestCaseError> {
    let expected = reference::entry(listener, request);
    let found = table.find(&View::new(request)).map(|compiled| &compiled.entry);
    prop_assert_eq!(found, expected, "{:?}", request);
    Ok(())
}

#[derive(Clone, Debug)]
enum Edit {
    Put(HostPattern, Arc<Entry>),
    /// Gives the nth entry of a host another rule, and its path other letters, neither of which changes its rank.
    Change(HostPattern, usize, u8),
    /// Removes the nth entry of a host.
    Take(HostPattern, usize),
    Drop(HostPattern),
}

fn any_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (any_of_few_patterns(), any_crowded_entry()).prop_map(|(host, entry)| Edit::Put(host, entry)),
        6 => (any_of_few_patterns(), 0..30_usize, 0..6_u8).prop_map(|(host, place, to)| Edit::Change(host, place, to)),
        3 => (any_of_few_patterns(), 0..30_usize).prop_map(|(host, place)| Edit::Take(host, place)),
        1 => any_of_few_patterns().prop_map(Edit::Drop),
    ]
}

fn apply(listener: &mut Listener, edit: Edit) {
    match edit {
        Edit::Put(pattern, entry) => {
            let mut host = listener.hosts.get(&pattern).cloned().unwrap_or_default();
            Arc::make_mut(&mut host).entries.insert(entry);
            listener.hosts.insert(pattern, host);
        }
        Edit::Change(pattern, place, to) => {
            let Some(host) = listener.hosts.get(&pattern) else {
                return;
            };
            let mut host = Host::clone(host);
            let entry = host.entries.iter().nth(place % host.entries.len().max(1)).cloned();
            if let Some(mut entry) = entry {
                let changed = Arc::make_mut(&mut entry);
                changed.rule = rule(&format!("version {to}"));
                if let PathMatch::Exact(path) | PathMatch::Prefix(path) = &mut changed.matches.path {
                    *path = path.replace('a', if to % 2 == 0 { "a" } else { "b" }).into();
                }
                host.entries.insert(entry);
            }
            listener.hosts.insert(pattern, Arc::new(host));
        }
        Edit::Take(pattern, place) => {
            let Some(host) = listener.hosts.get(&pattern) else {
                return;
            };
            let mut host = Host::clone(host);
            let entry = host.entries.iter().nth(place).cloned();
            if let Some(entry) = entry {
                host.entries.remove(&entry);
            }
            listener.hosts.insert(pattern, Arc::new(host));
        }
        Edit::Drop(pattern) => {
            listener.hosts.remove(&pattern);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_compiled_table_answers_like_the_reference_matcher(
        hosts in any_hosts(),
        requests in vec(any_request(), 30),
    ) {
        let listener = listener(hosts);
        let table = ListenerTable::compile(&listener, None);
        for request in &requests {
            check(&table, &listener, request)?;
        }
    }

    #[test]
    fn listeners_that_share_a_port_are_chosen_like_in_the_reference(
        hostnames in vec(any_host_pattern(), 0..6),
        requests in vec(any_request(), 10),
    ) {
        let listeners: Vec<_> = hostnames
            .into_iter()
            .map(|hostname| Arc::new(Listener { hostname, ..listener(imbl::OrdMap::new()) }))
            .collect();
        let table = BindTable::new(listeners.iter().map(|listener| (&listener.hostname, listener.clone())));
        for request in &requests {
            let expected = reference::listener(&listeners, &request.host);
            let found = table.listener(&request.host);
            prop_assert_eq!(found.map(Arc::as_ptr), expected.map(Arc::as_ptr));
        }
    }

    #[test]
    fn the_literal_head_of_a_pattern_begins_every_match(
        pattern in "\\^?(/|a|b|\\.|\\*|\\?|\\+|\\{2\\}|\\(a\\)|\\||\\[ab\\]){0,8}",
        path in "(/|a|b){0,6}",
    ) {
        if let Ok(pattern) = Pattern::new(&pattern)
            && pattern.compile().unwrap().is_match(&path)
        {
            let begins_with = |head| path.strip_prefix(head).is_some_and(|rest| rest.starts_with('/'));
            prop_assert!(literal_head(&pattern).is_none_or(begins_with), "{} {}", pattern.as_str(), path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn a_table_that_follows_changes_equals_one_compiled_afresh(
        hosts in crowded_hosts(),
        edits in vec(vec(any_edit(), 1..4), 1..8),
        requests in vec(any_request(), 10),
    ) {
        let mut listener = listener(hosts);
        let requests: Vec<_> = requests
            .into_iter()
            .zip(["a.b", "a.b", "c.b", "c"].into_iter().cycle())
            .map(|(request, host)| reference::Request { host: host.to_owned(), ..request })
            .collect();
        let mut table = ListenerTable::compile(&listener, None);
        for batch in edits {
            let before = (listener.clone(), table.clone());
            for edit in batch {
                apply(&mut listener, edit);
            }
            table = ListenerTable::compile(&listener, Some(&table));
            let fresh = ListenerTable::compile(&listener, None);
            prop_assert_eq!(table.patterns(), fresh.patterns());
            for request in &requests {
                check(&table, &listener, request)?;
                check(&fresh, &listener, request)?;
                // Whoever still uses the old table sees no change.
                check(&before.1, &before.0, request)?;
            }
        }
    }
}
