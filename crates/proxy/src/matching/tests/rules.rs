//! Rules and filters, compiled.

use std::sync::Arc;

use gatewright_ir::{
    Backend, ClusterId, Filters, HeaderChange, Origin, PathChange, Redirect, Rewrite, Rule, Target, Timeouts,
    Unresolved,
};

use crate::matching::{CompiledFilters, CompiledRule};

fn rule(weights: &[u32], filters: Option<Filters>) -> CompiledRule {
    let backend = |(place, weight): (usize, &u32)| Backend {
        weight: *weight,
        target: Target::Cluster(ClusterId::new(place.to_string())),
        filters: None,
    };
    CompiledRule::compile(&Arc::new(Rule {
        origin: Origin::new("r"),
        name: None,
        filters: filters.map(Box::new),
        backends: weights.iter().enumerate().map(backend).collect(),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
    }))
}

fn chosen(rule: &CompiledRule, random: u64) -> Option<String> {
    rule.backend(rule.choose(random)).map(|backend| match &backend.target {
        Target::Cluster(id) => id.to_string(),
        Target::Unresolved(reason) => reason.as_str().to_owned(),
    })
}

#[test]
fn backends_are_chosen_by_weight_and_zero_gets_nothing() {
    let rule = rule(&[0, 1, 0, 3, 0], None);
    let mut counts = [0_u32; 5];
    for step in 0..4000_u64 {
        let place: usize = chosen(&rule, step * (u64::MAX / 4000)).unwrap().parse().unwrap();
        counts[place] += 1;
    }
    assert!(
        counts[1].abs_diff(1000) <= 1 && counts[3].abs_diff(3000) <= 1,
        "{counts:?}"
    );
    assert_eq!(chosen(&rule, 0).as_deref(), Some("1"));
    assert_eq!(chosen(&rule, u64::MAX).as_deref(), Some("3"));
}

#[test]
fn without_any_weight_nothing_is_chosen() {
    assert_eq!(chosen(&rule(&[], None), 7), None);
    assert_eq!(chosen(&rule(&[0, 0], None), 7), None);
}

#[test]
fn the_greatest_weights_do_not_overflow() {
    let rule = rule(&[u32::MAX; 16], None);
    assert_eq!(chosen(&rule, u64::MAX).as_deref(), Some("15"));
}

fn header(set: &[(&str, &str)], add: &[(&str, &str)], remove: &[&str]) -> Filters {
    let pairs = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    };
    Filters {
        request_headers: Some(HeaderChange {
            set: pairs(set),
            add: pairs(add),
            remove: remove.iter().map(|name| (*name).into()).collect(),
        }),
        ..Filters::default()
    }
}

#[test]
fn header_changes_are_set_then_add_then_remove() {
    let filters = header(
        &[("x-set", "1"), ("x-gone", "2")],
        &[("x-set", "3")],
        &["x-gone", "x-other"],
    );
    let changes = CompiledFilters::compile(&filters).unwrap().request_headers;
    let additions: Vec<_> = changes
        .additions()
        .map(|(name, value)| format!("{name}={}", value.to_str().unwrap()))
        .collect();
    assert_eq!(additions, ["x-set=1", "x-set=3"]);
    assert!(changes.replaces(b"X-Set") && changes.replaces(b"x-other") && !changes.replaces(b"x-kept"));
}

#[test]
fn a_rule_whose_filters_cannot_be_carried_out_is_refused() {
    let rewrite = |hostname: &str| Filters {
        rewrite: Some(Rewrite {
            hostname: Some(hostname.into()),
            path: None,
        }),
        ..Filters::default()
    };
    for filters in [
        header(&[("x", "a\r\nb: c")], &[], &[]),
        header(&[], &[("a b", "c")], &[]),
        header(&[("transfer-encoding", "chunked")], &[], &[]),
        header(&[], &[], &["content-length"]),
        rewrite("a b"),
        rewrite("a\r\nb"),
    ] {
        let refused = rule(&[1], Some(filters.clone()));
        assert_eq!(
            chosen(&refused, 0).as_deref(),
            Some(Unresolved::Unsupported.as_str()),
            "{filters:?}"
        );
        assert!(refused.filters.is_none());
    }
}

#[test]
fn a_backend_whose_filters_cannot_be_carried_out_is_refused_alone() {
    let backend = |id: &str, filters: Option<Filters>| Backend {
        weight: 1,
        target: Target::Cluster(ClusterId::new(id)),
        filters: filters.map(Box::new),
    };
    let rule = CompiledRule::compile(&Arc::new(Rule {
        origin: Origin::new("r"),
        name: None,
        filters: None,
        backends: Box::new([
            backend("good", None),
            backend("bad", Some(header(&[("x", "\n")], &[], &[]))),
        ]),
        timeouts: Timeouts::default(),
        retry: None,
        session: None,
    }));
    assert_eq!(chosen(&rule, 0).as_deref(), Some("good"));
    assert_eq!(chosen(&rule, u64::MAX).as_deref(), Some("unsupported"));
}

#[test]
fn a_declared_path_cannot_break_out_of_a_message() {
    let change = |path: PathChange| {
        let redirect = Redirect {
            scheme: None,
            hostname: None,
            port: None,
            path: Some(path),
            status: 302,
        };
        let filters = Filters {
            redirect: Some(redirect),
            ..Filters::default()
        };
        CompiledFilters::compile(&filters)
            .unwrap()
            .redirect
            .unwrap()
            .path
            .unwrap()
    };
    assert_eq!(
        change(PathChange::Full("/a b\r\nx?#ü%20".into())),
        PathChange::Full("/a%20b%0D%0Ax%3F%23%C3%BC%20".into())
    );
    assert_eq!(change(PathChange::Full("".into())), PathChange::Full("/".into()));
    assert_eq!(change(PathChange::Prefix("x".into())), PathChange::Prefix("/x".into()));
    assert_eq!(change(PathChange::Prefix("".into())), PathChange::Prefix("".into()));
}
