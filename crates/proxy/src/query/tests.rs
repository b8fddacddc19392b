use std::borrow::Cow;

use proptest::prelude::*;

use super::{Parameters, pairs};

fn read(raw: &str) -> Vec<(String, String)> {
    pairs(raw)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

#[test]
fn names_and_values_are_decoded() {
    assert_eq!(
        read("a=b&c&d=&e=f=g&%61b=1%202+3"),
        [
            pair("a", "b"),
            pair("c", ""),
            pair("d", ""),
            pair("e", "f=g"),
            pair("ab", "1 2 3")
        ]
    );
}

#[test]
fn malformed_escapes_stand_for_themselves() {
    assert_eq!(
        read("a=%&b=%4&c=%zz&d=%%41"),
        [pair("a", "%"), pair("b", "%4"), pair("c", "%zz"), pair("d", "%A")]
    );
    assert_eq!(read("a=%ff"), [pair("a", "\u{fffd}")]);
}

#[test]
fn empty_pieces_are_no_parameters() {
    assert_eq!(read(""), []);
    assert_eq!(read("&&a&"), [pair("a", "")]);
}

#[test]
fn of_a_repeated_parameter_the_first_value_counts() {
    let parameters = Parameters::new(Some("q=1&q=2&p"));
    assert_eq!(parameters.first("q"), Some("1"));
    assert_eq!(parameters.first("p"), Some(""));
    assert_eq!(parameters.first("x"), None);
    assert_eq!(Parameters::new(None).first("q"), None);
}

#[test]
fn plain_parameters_are_not_copied() {
    assert!(pairs("name=value").all(|(name, value)| matches!((name, value), (Cow::Borrowed(_), Cow::Borrowed(_)))));
}

proptest! {
    #[test]
    fn what_is_escaped_is_read_back(given in proptest::collection::vec((".{1,4}", ".{0,4}"), 0..4)) {
        let escape = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
        let raw: Vec<_> = given.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
        prop_assert_eq!(read(&raw.join("&")), given);
    }
}
