//! Following a folder: how soon a change is there, whatever way it was saved.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    time::{Duration, Instant},
};

use gatewright_source::files::{Batch, FilesError, Watch, WatchOptions, watch};

use crate::folder::{config_map, describe, write};

/// What is promised is 100 ms; a busy machine that runs all tests at once gets ten times that.
const BOUND: Duration = Duration::from_secs(1);

struct Watched {
    dir: tempfile::TempDir,
    watch: Watch,
}

/// Waits for the next batch, for at most ten times the bound.
fn next(watch: &mut Watch) -> Batch {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let next = async { tokio::time::timeout(BOUND * 10, watch.next()).await };
    runtime
        .block_on(next)
        .expect("a batch in time")
        .expect("the watch goes on")
}

impl Watched {
    fn new(files: &[(&str, &str)], options: WatchOptions) -> Watched {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(&dir.path().join(name), text);
        }
        let mut watch = watch(dir.path(), options).unwrap();
        assert!(next(&mut watch).is_first);
        Watched { dir, watch }
    }

    /// Without the poll, so that only events can be the reason.
    fn by_events(files: &[(&str, &str)]) -> Watched {
        Watched::new(
            files,
            WatchOptions {
                poll: Duration::from_mins(10),
                ..WatchOptions::default()
            },
        )
    }

    /// Does something to the folder; the changes must come within the bound.
    fn after(&mut self, act: impl FnOnce(&Path)) -> Vec<String> {
        act(self.dir.path());
        let started = Instant::now();
        let batch = next(&mut self.watch);
        let took = started.elapsed();
        println!("{took:?} after the save");
        assert!(took < BOUND, "{took:?}");
        describe(&batch)
    }
}

#[test]
fn a_saved_file_is_there_soon() {
    let mut watched = Watched::by_events(&[("a.yaml", &config_map("one", "0"))]);
    for round in 1..=20 {
        let text = config_map("one", &round.to_string());
        assert_eq!(
            watched.after(|dir| write(&dir.join("a.yaml"), &text)),
            ["apply ConfigMap default/one"]
        );
    }
}

#[test]
fn a_deleted_file_is_gone_soon() {
    let mut watched = Watched::by_events(&[("a.yaml", &config_map("one", "0")), ("b.yaml", &config_map("two", "0"))]);
    let changes = watched.after(|dir| fs::remove_file(dir.join("a.yaml")).unwrap());
    assert_eq!(changes, ["delete ConfigMap default/one"]);
}

#[test]
fn among_thousands_of_files_a_saved_one_is_there_soon() {
    let texts: Vec<(String, String)> = (0..3000)
        .map(|number| (format!("{number}.yaml"), config_map(&format!("map-{number}"), "0")))
        .collect();
    let files: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let mut watched = Watched::by_events(&files);
    let changes = watched.after(|dir| write(&dir.join("1500.yaml"), &config_map("map-1500", "1")));
    assert_eq!(changes, ["apply ConfigMap default/map-1500"]);
}

#[test]
fn a_file_renamed_over_another_is_there_soon() {
    let mut watched = Watched::by_events(&[("a.yaml", &config_map("one", "0"))]);
    let changes = watched.after(|dir| {
        write(&dir.join("a.yaml.tmp"), &config_map("one", "1"));
        fs::rename(dir.join("a.yaml.tmp"), dir.join("a.yaml")).unwrap();
    });
    assert_eq!(changes, ["apply ConfigMap default/one"]);
}

#[test]
fn an_editor_that_moves_the_old_file_away_deletes_nothing() {
    let mut watched = Watched::by_events(&[("a.yaml", &config_map("one", "0"))]);
    let changes = watched.after(|dir| {
        fs::rename(dir.join("a.yaml"), dir.join("a.yaml~")).unwrap();
        write(&dir.join("a.yaml"), &config_map("one", "1"));
        fs::remove_file(dir.join("a.yaml~")).unwrap();
    });
    assert_eq!(changes, ["apply ConfigMap default/one"]);
}

#[test]
fn a_swapped_config_map_is_there_soon() {
    let mut watched = Watched::by_events(&[
        ("..1/a.yaml", &config_map("one", "1")),
        ("..2/a.yaml", &config_map("one", "2")),
    ]);
    let link = |dir: &Path| {
        symlink("..1", dir.join("..data")).unwrap();
        symlink("..data/a.yaml", dir.join("a.yaml")).unwrap();
    };
    assert_eq!(watched.after(link), ["apply ConfigMap default/one"]);
    let swap = |dir: &Path| {
        symlink("..2", dir.join("..data_tmp")).unwrap();
        fs::rename(dir.join("..data_tmp"), dir.join("..data")).unwrap();
        fs::remove_dir_all(dir.join("..1")).unwrap();
    };
    assert_eq!(watched.after(swap), ["apply ConfigMap default/one"]);
}

#[test]
fn new_folders_are_followed_too() {
    let mut watched = Watched::by_events(&[]);
    let first = watched.after(|dir| write(&dir.join("new/deep/a.yaml"), &config_map("one", "1")));
    assert_eq!(first, ["apply ConfigMap default/one"]);
    let second = watched.after(|dir| write(&dir.join("new/deep/a.yaml"), &config_map("one", "2")));
    assert_eq!(second, ["apply ConfigMap default/one"]);
    let third = watched.after(|dir| fs::remove_dir_all(dir.join("new")).unwrap());
    assert_eq!(third, ["delete ConfigMap default/one"]);
}

#[test]
fn a_file_that_is_being_written_is_not_read_half() {
    use std::io::Write;
    let mut watched = Watched::by_events(&[("a.yaml", &config_map("one", "0"))]);
    let text = format!("{}---\n{}", config_map("one", "0"), config_map("two", "1"));
    let changes = watched.after(|dir| {
        let mut file = fs::File::create(dir.join("a.yaml")).unwrap();
        for byte in text.as_bytes().chunks(16) {
            file.write_all(byte).unwrap();
        }
    });
    assert_eq!(changes, ["apply ConfigMap default/two"]);
}

#[test]
fn without_events_the_poll_finds_changes() {
    let poll = Duration::from_millis(20);
    let options = WatchOptions {
        poll,
        uses_events: false,
        ..WatchOptions::default()
    };
    let mut watched = Watched::new(&[("a.yaml", &config_map("one", "0"))], options);
    let changes = watched.after(|dir| write(&dir.join("a.yaml"), &config_map("one", "1")));
    assert_eq!(changes, ["apply ConfigMap default/one"]);
}

#[test]
fn a_folder_that_was_replaced_is_followed_again() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("config");
    write(&dir.join("a.yaml"), &config_map("one", "1"));
    let poll = Duration::from_millis(50);
    let mut watch = watch(
        &dir,
        WatchOptions {
            poll,
            ..WatchOptions::default()
        },
    )
    .unwrap();
    assert!(next(&mut watch).is_first);
    fs::rename(&dir, parent.path().join("old")).unwrap();
    let gone = next(&mut watch);
    assert!(gone.changes.is_empty());
    assert_eq!(gone.problems.len(), 1);
    let staged = parent.path().join("staged");
    write(&staged.join("a.yaml"), &config_map("one", "2"));
    fs::rename(&staged, &dir).unwrap();
    let back = next(&mut watch);
    assert_eq!(describe(&back), ["apply ConfigMap default/one"]);
    assert!(back.problems.is_empty());
    write(&dir.join("a.yaml"), &config_map("one", "3"));
    assert_eq!(describe(&next(&mut watch)), ["apply ConfigMap default/one"]);
}

#[test]
fn an_error_is_reported_and_the_watch_goes_on() {
    let mut watched = Watched::by_events(&[("a.yaml", &config_map("one", "0"))]);
    write(&watched.dir.path().join("a.yaml"), "kind: [");
    let batch = next(&mut watched.watch);
    assert_eq!(
        (batch.changes.len(), batch.problems.len(), batch.problems_changed),
        (0, 1, true)
    );
    write(&watched.dir.path().join("a.yaml"), &config_map("one", "1"));
    let batch = next(&mut watched.watch);
    assert_eq!(
        (batch.changes.len(), batch.problems.len(), batch.problems_changed),
        (1, 0, true)
    );
}

#[test]
fn a_missing_folder_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let error = watch(dir.path().join("missing"), WatchOptions::default()).unwrap_err();
    assert!(matches!(error, FilesError::Missing(_)));
    assert!(error.to_string().ends_with("missing does not exist"), "{error}");
}

#[test]
fn a_look_at_the_folder_can_be_asked_for() {
    let options = WatchOptions {
        poll: Duration::from_mins(10),
        uses_events: false,
        ..WatchOptions::default()
    };
    let mut watched = Watched::new(&[("a.yaml", &config_map("one", "0"))], options);
    let rescan = watched.watch.rescan();
    let changes = watched.after(|dir| {
        write(&dir.join("a.yaml"), &config_map("one", "1"));
        rescan.ask();
    });
    assert_eq!(changes, ["apply ConfigMap default/one"]);
}
