//! The parts that need no folder: cutting streams, places, names, and any text at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use gatewright_api::{Kind, ObjectName, validate::Step};
use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    Batch, Change, FileLoader,
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
    let excerpt = |text: &str, line, is_secret| Place::new(Chunk { text, lines_before: 4 }, line, 1, is_secret).excerpt;
    let text = format!("first\n{}\n", "x".repeat(1000));
    assert_eq!(excerpt(&text, 6, false).map(|line| line.len()), Some(200));
    assert_eq!(excerpt("a", 9, false), None);
    assert_eq!(excerpt("  key: value", 5, true).as_deref(), Some("  key:…"));
    assert_eq!(excerpt("c2VjcmV0", 5, true).as_deref(), Some("…"));
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

/// What somebody does to a folder: to which file, and what.
fn deeds() -> impl Strategy<Value = Vec<(&'static str, u8)>> {
    let files = prop::sample::select(vec![
        "a.yaml",
        "b.yaml",
        "deep/a.yaml",
        "deep/c.yml",
        "deep",
        ".hidden.yaml",
        "d.txt",
    ]);
    prop::collection::vec((files, 0..8_u8), 1..12)
}

fn act(dir: &Path, file: &str, deed: u8) {
    let path = dir.join(file);
    let map = |name: &str, value: u8| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{key: \"{value}\"}}\n---\n")
    };
    fs::create_dir_all(dir.join("deep")).unwrap();
    // What cannot be done to what is there (writing to a folder) is not done.
    let _ = match deed {
        0 => fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)),
        1 => fs::rename(&path, dir.join("moved.yaml")),
        2 => fs::write(&path, "kind: ["),
        3 => fs::write(&path, map("one", 0) + "kind: ["),
        _ => fs::write(
            &path,
            map("one", deed) + &map(["two", "three"][usize::from(deed) % 2], 1),
        ),
    };
}

/// Keeps the objects that the changes of a batch leave.
fn follow(objects: &mut BTreeMap<ObjectName, String>, batch: &Batch) {
    for change in &batch.changes {
        match change {
            Change::Apply(object) => {
                let mut object = (**object).clone();
                object.metadata_mut().resource_version = None;
                objects.insert(object.name(), object.to_value().unwrap().to_string());
            }
            Change::Delete(name) => assert!(objects.remove(name).is_some(), "{name} was not there"),
            Change::Invalid { name, error, .. } => panic!("{name}: {error}"),
        }
    }
    assert_eq!(objects.len(), batch.objects);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn looking_where_something_happened_equals_looking_everywhere(deeds in deeds()) {
        let dir = tempfile::tempdir().unwrap();
        let loader = || FileLoader::new(dir.path(), Box::new(|| Timestamp::UNIX_EPOCH)).unwrap();
        let (mut partly, mut wholly) = (loader(), loader());
        let (mut part, mut whole) = (BTreeMap::new(), BTreeMap::new());
        act(dir.path(), "a.yaml", 7);
        follow(&mut part, &partly.scan());
        follow(&mut whole, &wholly.scan());
        for (file, deed) in deeds {
            act(dir.path(), file, deed);
            let places = BTreeSet::from([dir.path().join(file), dir.path().join("moved.yaml"), dir.path().join("deep")]);
            let places = if deed == 0 && file != "deep" { BTreeSet::from([dir.path().join(file)]) } else { places };
            let looked = partly.scan_only(&places).unwrap_or_else(|| partly.scan());
            let all = wholly.scan();
            follow(&mut part, &looked);
            follow(&mut whole, &all);
            prop_assert_eq!(&part, &whole);
            prop_assert_eq!(looked.problems, all.problems);
            prop_assert_eq!(looked.problems_changed, all.problems_changed);
            prop_assert_eq!(looked.files, all.files);
        }
    }
}
