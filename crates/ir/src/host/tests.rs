use super::HostPattern;
use proptest::prelude::*;

fn pattern(text: &str) -> HostPattern {
    HostPattern::parse(text).unwrap()
}

#[test]
fn a_wildcard_stands_for_one_or_more_labels_but_never_none() {
    assert!(pattern("*.example.com").contains("a.example.com"));
    assert!(pattern("*.example.com").contains("a.b.example.com"));
    assert!(!pattern("*.example.com").contains("example.com"));
    assert!(!pattern("*.example.com").contains(".example.com"));
    assert!(!pattern("*.example.com").contains("badexample.com"));
}

#[test]
fn case_and_the_trailing_dot_do_not_matter() {
    assert_eq!(pattern("Shop.Example.COM."), pattern("shop.example.com"));
}

#[test]
fn addresses_and_malformed_names_are_refused() {
    for text in [
        "10.0.0.1", "a..b", "-a.com", "a_b.com", "*", "*.*.com", "a.*.com", "a b",
    ] {
        assert_eq!(HostPattern::parse(text).is_ok(), text == "*", "{text}");
    }
}

#[test]
fn the_more_specific_pattern_sorts_first() {
    let mut patterns = ["*", "*.com", "*.example.com", "a.example.com", "example.com"].map(pattern);
    patterns.reverse();
    patterns.sort();
    let texts = patterns.map(|pattern| pattern.to_string());
    assert_eq!(texts, ["a.example.com", "example.com", "*.example.com", "*.com", "*"]);
}

fn any_pattern() -> impl Strategy<Value = HostPattern> {
    let name = proptest::collection::vec("[ab]", 1..4).prop_map(|labels| labels.join("."));
    (0..3, name).prop_map(|(shape, name)| match shape {
        0 => HostPattern::Exact(name.into()),
        1 => HostPattern::Wildcard(name.into()),
        _ => HostPattern::Any,
    })
}

proptest! {
    #[test]
    fn the_intersection_holds_exactly_the_common_names(
        left in any_pattern(), right in any_pattern(),
        host in proptest::collection::vec("[ab]", 1..5).prop_map(|labels| labels.join(".")),
    ) {
        let both = left.contains(&host) && right.contains(&host);
        let intersection = left.intersect(&right);
        prop_assert_eq!(intersection.is_some_and(|pattern| pattern.contains(&host)), both);
    }
}
