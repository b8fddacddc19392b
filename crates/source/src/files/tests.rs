//! The parts that need no folder: cutting streams, places, names, and any text at all.

use std::path::Path;

use gatewright_api::{Kind, ObjectName, validate::Step};
use proptest::prelude::*;

use super::{
    admit::admit_text,
    locate::Located,
    parse::Notation,
    problem::Place,
    split::{Chunk, split},
    standing::uid,
};

fn chunks(stream: &str) -> Vec<(&str, u64)> {
    split(stream)
        .into_iter()
        .map(|chunk| (chunk.text, chunk.lines_before))
        .collect()
}

#[test]
fn streams_are_cut_at_markers() {
    assert_eq!(chunks("a: 1\n---\nb: 2\n"), [("a: 1\n", 0), ("---\nb: 2\n", 1)]);
    assert_eq!(chunks("---\na: 1\n--- \nb: 2"), [("---\na: 1\n", 0), ("--- \nb: 2", 2)]);
    assert_eq!(
        chunks("a: 1\r\n---\r\nb: 2\r\n"),
        [("a: 1\r\n", 0), ("---\r\nb: 2\r\n", 1)]
    );
    assert_eq!(
        chunks("--- {a: 1}\n--- # comment\nb: 2\n"),
        [("--- {a: 1}\n", 0), ("--- # comment\nb: 2\n", 1)]
    );
}

#[test]
fn what_only_looks_like_a_marker_does_not_cut() {
    for text in ["a: ---\n", " ---\n", "---a\n", "a: |\n  ---\n  text\n", "-----BEGIN\n"] {
        assert_eq!(chunks(text).len(), 1, "{text:?}");
    }
}

#[test]
fn a_marker_cuts_even_inside_a_block_of_text() {
    assert_eq!(chunks("a: |\n  text\n---\nb: 2\n").len(), 2);
}

#[test]
fn directives_and_comments_belong_to_the_document_after_them() {
    assert_eq!(
        chunks("# about\n%YAML 1.1\n---\na: 1\n"),
        [("# about\n%YAML 1.1\n---\na: 1\n", 0)]
    );
    assert_eq!(
        chunks("a: 1\n...\n%YAML 1.1\n---\nb: 1\n"),
        [("a: 1\n...\n", 0), ("%YAML 1.1\n---\nb: 1\n", 2)]
    );
}

#[test]
fn documents_without_content_are_left_out() {
    assert!(chunks("---\n# nothing\n---\n\n...\n---\n").is_empty());
}

#[test]
fn places_are_those_of_values_keys_and_items() {
    let text = "spec:\n  name: x\n  list:\n  - a\n  - b: {c: 1}\n";
    let located = Located::read(Chunk { text, lines_before: 10 }).unwrap();
    let find = |steps: &[Step], wants_key| located.find(steps, wants_key);
    assert_eq!(find(&[], false), (11, 1));
    assert_eq!(find(&["spec".into(), "name".into()], false), (12, 9));
    assert_eq!(find(&["spec".into(), "name".into()], true), (12, 3));
    assert_eq!(find(&["spec".into(), "list".into()], false), (13, 3));
    assert_eq!(find(&["spec".into(), "list".into(), 0.into()], false), (14, 5));
    assert_eq!(
        find(&["spec".into(), "list".into(), 1.into(), "b".into(), "c".into()], false),
        (15, 12)
    );
    // What is missing is shown at what should have it.
    assert_eq!(find(&["spec".into(), "missing".into(), "deep".into()], false), (11, 1));
}

#[test]
fn aliases_are_placed_where_they_are_used() {
    let text = "a: &a {port: 1}\nb: *a\n";
    let located = Located::read(Chunk { text, lines_before: 0 }).unwrap();
    assert_eq!(located.find(&["b".into()], false), (2, 1));
}

#[test]
fn excerpts_are_one_short_line() {
    let text = format!("first\n{}\n", "x".repeat(1000));
    let place = Place::new(&text, 2, 1, false);
    assert_eq!(place.excerpt.map(|line| line.len()), Some(200));
    assert_eq!(Place::new("a", 9, 1, false).excerpt, None);
    assert_eq!(
        Place::new("  key: value", 1, 1, true).excerpt.as_deref(),
        Some("  key:…")
    );
    assert_eq!(Place::new("c2VjcmV0", 1, 1, true).excerpt.as_deref(), Some("…"));
}

#[test]
fn names_have_stable_and_distinct_uids() {
    let name = |kind, namespace: &str, name: &str| ObjectName {
        kind,
        namespace: namespace.into(),
        name: name.into(),
    };
    let one = uid(&name(Kind::Service, "a", "b"));
    assert_eq!(one, "9ddaf54c-85c2-899e-a434-36ab5ff29fcf");
    assert_ne!(one, uid(&name(Kind::Service, "a-b", "")));
    assert_ne!(one, uid(&name(Kind::Secret, "a", "b")));
    assert_ne!(one, uid(&name(Kind::Service, "ab", "")));
}

/// Pieces from which YAML of all kinds, mostly broken, can be put together.
fn broken_yaml() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "apiVersion: v1\n",
        "kind: ConfigMap\n",
        "kind: Secret\n",
        "kind: List\n",
        "items:\n",
        "- ",
        "  ",
        "metadata: ",
        "{name: a}",
        "\n",
        "---\n",
        "...\n",
        "&a ",
        "*a",
        "<<: ",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "|\n",
        ">\n",
        "\t",
        "# x",
        ": ",
        "? ",
        "!!binary ",
        "!x ",
        "data: ",
        "é",
        "\u{feff}",
        "\r\n",
        "0x",
        "1e999",
        ".nan",
        "~",
        "%YAML 1.1\n",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_with_places_inside_it(text in broken_yaml()) {
        for notation in [Notation::Yaml, Notation::Json] {
            let content = admit_text(Path::new("a.yaml"), &text, notation);
            let lines = text.split('\n').count() as u64 + 1;
            for problem in content.problems {
                prop_assert!(problem.line >= 1 && problem.line <= lines, "{problem}");
            }
        }
    }

    #[test]
    fn cutting_keeps_every_line_of_content(text in broken_yaml()) {
        let kept: String = chunks(&text).into_iter().map(|(text, _)| text).collect();
        let content = |text: &str| -> Vec<String> {
            let is_content = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#')
                && !line.starts_with("---") && !line.starts_with("...") && !line.starts_with('%');
            text.split('\n').filter(is_content).map(str::to_owned).collect()
        };
        prop_assert_eq!(content(&kept), content(&text));
    }
}
