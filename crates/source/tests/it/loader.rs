//! What is in use: first load, last good, duplicates, generations.

use std::{fs, os::unix::fs::symlink, sync::Arc};

use gatewright_api::Object;
use gatewright_source::files::{FileLoader, FilesError, Timestamp};

use crate::folder::{Folder, START, applied, config_map, describe, gateway, problems};

#[test]
fn every_object_is_in_the_first_batch_and_nothing_in_the_second() {
    let mut folder = Folder::new(&[
        (
            "b.yaml",
            &format!("{}---\n{}", config_map("one", "1"), config_map("two", "2")),
        ),
        ("deep/er/a.yml", &gateway("edge", "80")),
        ("notes.txt", "not read"),
        (".hidden.yaml", &config_map("hidden", "1")),
        (".hidden/a.yaml", &config_map("hidden", "1")),
    ]);
    let batch = folder.scan();
    assert!(batch.is_first);
    assert_eq!(
        describe(&batch),
        [
            "apply Gateway default/edge",
            "apply ConfigMap default/one",
            "apply ConfigMap default/two"
        ]
    );
    assert_eq!((batch.files, batch.objects), (2, 3));
    assert!(batch.problems.is_empty());
    let batch = folder.scan();
    assert!(!batch.is_first && batch.changes.is_empty() && !batch.problems_changed);
}

#[test]
fn only_what_really_changed_is_applied() {
    let both = |value: &str| format!("{}---\n{}", config_map("one", value), config_map("two", "2"));
    let mut folder = Folder::new(&[("a.yaml", &both("1"))]);
    folder.scan();
    folder.write("a.yaml", &both("new"));
    assert_eq!(folder.changes(), ["apply ConfigMap default/one"]);
    folder.write("a.yaml", &format!("# a comment\n{}", both("new")));
    assert!(folder.changes().is_empty());
    // A default written out is the same object.
    folder.write("b.yaml", &gateway("edge", "80"));
    folder.scan();
    folder.write(
        "b.yaml",
        &format!(
            "{}    allowedRoutes: {{namespaces: {{from: Same}}}}\n",
            gateway("edge", "80")
        ),
    );
    assert!(folder.changes().is_empty());
}

#[test]
fn at_the_first_start_a_bad_document_harms_no_other() {
    let text = format!(
        "{}---\nkind: [\n---\n{}---\n{}",
        config_map("one", "1"),
        gateway("bad", "70000"),
        config_map("two", "2")
    );
    let mut folder = Folder::new(&[("a.yaml", &text)]);
    let batch = folder.scan();
    assert_eq!(
        describe(&batch),
        ["apply ConfigMap default/one", "apply ConfigMap default/two"]
    );
    assert_eq!(problems(&batch), ["GW1101 a.yaml:8:7", "GW1006 a.yaml:18:11"]);
    assert!(batch.problems.iter().all(|problem| !problem.uses_last_good));
}

#[test]
fn later_a_file_with_an_error_keeps_all_its_last_good_objects() {
    let mut folder = Folder::new(&[
        ("a.yaml", &config_map("one", "1")),
        ("b.yaml", &config_map("other", "1")),
    ]);
    folder.scan();
    // One document is gone, one is new, one is bad: nothing of it counts.
    folder.write(
        "a.yaml",
        &format!("{}---\n{}", config_map("new", "1"), gateway("bad", "0")),
    );
    folder.write("b.yaml", &config_map("other", "2"));
    let batch = folder.scan();
    assert_eq!(describe(&batch), ["apply ConfigMap default/other"]);
    assert_eq!(problems(&batch), ["GW1006 a.yaml:16:11"]);
    assert!(batch.problems[0].uses_last_good);
    // The error stays until it is mended.
    let batch = folder.scan();
    assert_eq!((batch.problems.len(), batch.problems_changed), (1, false));
    folder.write(
        "a.yaml",
        &format!("{}---\n{}", config_map("new", "1"), gateway("good", "80")),
    );
    let batch = folder.scan();
    assert!(batch.problems.is_empty() && batch.problems_changed);
    assert_eq!(
        describe(&batch),
        [
            "delete ConfigMap default/one",
            "apply Gateway default/good",
            "apply ConfigMap default/new"
        ]
    );
}

#[test]
fn a_new_file_with_an_error_declares_nothing_until_it_is_mended() {
    let mut folder = Folder::new(&[]);
    folder.scan();
    folder.write(
        "a.yaml",
        &format!("{}---\n{}", config_map("one", "1"), gateway("edge", "0")),
    );
    let batch = folder.scan();
    assert!(batch.changes.is_empty());
    assert!(!batch.problems[0].uses_last_good);
    folder.write(
        "a.yaml",
        &format!("{}---\n{}", config_map("one", "1"), gateway("edge", "1")),
    );
    assert_eq!(folder.changes().len(), 2);
}

#[test]
fn a_deleted_file_takes_its_objects_with_it() {
    let mut folder = Folder::new(&[("a.yaml", &config_map("one", "1")), ("b.yaml", &config_map("two", "1"))]);
    folder.scan();
    folder.remove("a.yaml");
    let batch = folder.scan();
    assert_eq!(describe(&batch), ["delete ConfigMap default/one"]);
    assert_eq!((batch.files, batch.objects), (1, 1));
}

#[test]
fn a_renamed_file_changes_nothing() {
    let mut folder = Folder::new(&[("a.yaml", &config_map("one", "1"))]);
    folder.scan();
    fs::rename(folder.path("a.yaml"), folder.path("z.yaml")).unwrap();
    assert!(folder.changes().is_empty());
}

#[test]
fn of_two_declarations_the_first_path_wins_and_the_other_takes_over() {
    let mut folder = Folder::new(&[("b.yaml", &config_map("one", "from b"))]);
    folder.scan();
    let value = |object: &Object| match object {
        Object::ConfigMap(map) => map.data.as_ref().unwrap()["key"].clone(),
        _ => unreachable!("a ConfigMap"),
    };
    folder.write("a.yaml", &format!("# first\n{}", config_map("one", "from a")));
    let batch = folder.scan();
    assert_eq!(value(&applied(&batch, "ConfigMap default/one")), "from a");
    assert_eq!(problems(&batch), ["GW1103 b.yaml:4:9"]);
    let message = &batch.problems[0].message;
    assert!(message.contains("a.yaml:5 comes first"), "{message}");
    assert_eq!(batch.problems[0].excerpt.as_deref(), Some("  name: one"));

    // The file that lost is broken now: what it said before still takes over.
    folder.write("b.yaml", "kind: [");
    folder.scan();
    folder.remove("a.yaml");
    let batch = folder.scan();
    assert_eq!(value(&applied(&batch, "ConfigMap default/one")), "from b");
    assert_eq!(batch.objects, 1);
}

#[test]
fn the_same_object_twice_in_one_file_is_an_error_and_the_first_is_used() {
    let text = format!(
        "{}---\n{}---\n{}",
        config_map("one", "1"),
        config_map("one", "2"),
        config_map("two", "1")
    );
    let mut folder = Folder::new(&[("a.yaml", &text)]);
    let batch = folder.scan();
    assert_eq!(
        describe(&batch),
        ["apply ConfigMap default/one", "apply ConfigMap default/two"]
    );
    assert_eq!(problems(&batch), ["GW1103 a.yaml:11:9"]);
    // The rest of the file still follows its changes.
    folder.write("a.yaml", &text.replace("name: two", "name: three"));
    assert_eq!(
        folder.changes(),
        ["delete ConfigMap default/two", "apply ConfigMap default/three"]
    );
}

#[test]
fn generation_counts_changes_of_spec_and_age_is_when_first_seen() {
    let mut folder = Folder::new(&[("a.yaml", &gateway("edge", "80"))]);
    let first = applied(&folder.scan(), "Gateway default/edge");
    let metadata = first.metadata();
    assert_eq!(metadata.generation, Some(1));
    assert_eq!(
        metadata.creation_timestamp.as_ref().unwrap().0,
        Timestamp::from_second(START).unwrap()
    );
    assert_eq!(metadata.resource_version.as_deref(), Some("1"));

    folder.tick();
    folder.write("a.yaml", &gateway("edge", "81"));
    let second = applied(&folder.scan(), "Gateway default/edge");
    assert_eq!(second.metadata().generation, Some(2));
    assert_eq!(second.metadata().creation_timestamp, metadata.creation_timestamp);
    assert_eq!(second.metadata().uid, metadata.uid);
    assert_eq!(second.metadata().resource_version.as_deref(), Some("2"));

    // A label is not spec.
    folder.write(
        "a.yaml",
        &gateway("edge", "81").replace("metadata:", "metadata:\n  labels: {a: b}"),
    );
    let third = applied(&folder.scan(), "Gateway default/edge");
    assert_eq!(third.metadata().generation, Some(2));

    // Gone and back is another object of the same name.
    folder.remove("a.yaml");
    folder.scan();
    folder.write("a.yaml", &gateway("edge", "81"));
    let fourth = applied(&folder.scan(), "Gateway default/edge");
    assert_eq!(fourth.metadata().generation, Some(1));
    assert_eq!(
        fourth.metadata().creation_timestamp.as_ref().unwrap().0,
        Timestamp::from_second(START + 1).unwrap()
    );
}

#[test]
fn kinds_without_spec_count_changes_of_their_content() {
    let mut folder = Folder::new(&[("a.yaml", &config_map("one", "1"))]);
    folder.scan();
    folder.write("a.yaml", &config_map("one", "2"));
    assert_eq!(
        applied(&folder.scan(), "ConfigMap default/one").metadata().generation,
        Some(2)
    );
}

#[test]
fn an_age_written_in_the_file_wins_and_other_server_metadata_does_not() {
    let metadata =
        "metadata:\n  creationTimestamp: 2020-01-02T03:04:05Z\n  uid: mine\n  generation: 7\n  resourceVersion: \"9\"";
    let mut folder = Folder::new(&[("a.yaml", &config_map("one", "1").replace("metadata:", metadata))]);
    let batch = folder.scan();
    assert!(batch.problems.is_empty(), "{:?}", batch.problems);
    let object = applied(&batch, "ConfigMap default/one");
    let metadata = object.metadata();
    assert_eq!(
        metadata.creation_timestamp.as_ref().unwrap().0.to_string(),
        "2020-01-02T03:04:05Z"
    );
    assert_ne!(metadata.uid.as_deref(), Some("mine"));
    assert_eq!(
        (metadata.generation, metadata.resource_version.as_deref()),
        (Some(1), Some("1"))
    );
}

#[test]
fn a_file_that_cannot_be_read_keeps_its_last_good_objects() {
    let mut folder = Folder::new(&[("a.yaml", &config_map("one", "1"))]);
    folder.scan();
    // Also for the superuser, whom permissions do not stop.
    folder.remove("a.yaml");
    symlink("nowhere", folder.path("a.yaml")).unwrap();
    let batch = folder.scan();
    assert!(batch.changes.is_empty());
    assert_eq!(problems(&batch), ["GW1102 a.yaml:0:0"]);
    assert!(batch.problems[0].uses_last_good);
    folder.remove("a.yaml");
    folder.write("a.yaml", &config_map("one", "1"));
    let batch = folder.scan();
    assert!(batch.changes.is_empty() && batch.problems.is_empty());
}

#[test]
fn a_named_pipe_is_an_error_and_does_not_block() {
    let mut folder = Folder::new(&[("b.yaml", &config_map("one", "1"))]);
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path("a.yaml"))
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(folder.problems(), ["GW1102 a.yaml:0:0"]);
}

#[test]
fn when_the_folder_goes_away_everything_stays_in_use() {
    let mut folder = Folder::new(&[("a.yaml", &config_map("one", "1"))]);
    folder.scan();
    let (here, away) = (folder.dir.path().to_owned(), folder.dir.path().with_extension("away"));
    fs::rename(&here, &away).unwrap();
    let batch = folder.scan();
    assert!(batch.changes.is_empty());
    assert_eq!(batch.problems.len(), 1);
    fs::rename(&away, &here).unwrap();
    let batch = folder.scan();
    assert!(batch.changes.is_empty() && batch.problems.is_empty());
}

#[test]
fn a_mounted_config_map_is_read_through_its_links_and_swapped_at_once() {
    let mut folder = Folder::new(&[
        ("..2026_1/a.yaml", &config_map("one", "1")),
        ("..2026_2/a.yaml", &config_map("one", "2")),
    ]);
    symlink("..2026_1", folder.path("..data")).unwrap();
    symlink("..data/a.yaml", folder.path("a.yaml")).unwrap();
    assert_eq!(folder.changes(), ["apply ConfigMap default/one"]);
    symlink("..2026_2", folder.path("..data_tmp")).unwrap();
    fs::rename(folder.path("..data_tmp"), folder.path("..data")).unwrap();
    let batch = folder.scan();
    assert_eq!(describe(&batch), ["apply ConfigMap default/one"]);
    assert!(batch.problems.is_empty());
}

#[test]
fn links_in_a_circle_end() {
    let mut folder = Folder::new(&[("deep/a.yaml", &config_map("one", "1"))]);
    symlink(folder.dir.path(), folder.path("deep/up")).unwrap();
    assert_eq!(folder.changes(), ["apply ConfigMap default/one"]);
}

#[test]
fn a_missing_folder_and_a_file_are_refused_at_the_start() {
    let folder = Folder::new(&[("a.yaml", "")]);
    let open = |name| FileLoader::new(folder.path(name), Box::new(Timestamp::now));
    assert!(matches!(open("missing"), Err(FilesError::Missing(_))));
    assert!(matches!(open("a.yaml"), Err(FilesError::NotAFolder(_))));
}

#[test]
fn problems_are_shared_while_they_do_not_change() {
    let mut folder = Folder::new(&[("a.yaml", "kind: [")]);
    let first = folder.scan().problems;
    assert!(Arc::ptr_eq(&first, &folder.scan().problems));
}

#[test]
fn the_place_of_an_object_is_the_line_of_its_name() {
    let both = format!("{}---\n{}", config_map("one", "1"), config_map("two", "2"));
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.yaml"), &both).unwrap();
    let mut loader = FileLoader::new(dir.path(), Box::new(Timestamp::now)).unwrap();
    let batch = loader.scan();
    let names = ["ConfigMap default/one", "ConfigMap default/two"].map(|name| applied(&batch, name).name());
    for name in names {
        let place = loader.place_of(&name).unwrap();
        assert_eq!(place.file, dir.path().join("a.yaml"));
        let line = both.lines().nth(usize::try_from(place.line).unwrap() - 1).unwrap();
        assert!(line.contains(&format!("name: {}", name.name)), "{place:?}");
        assert_eq!(place.excerpt.as_deref(), Some(line));
    }
}
