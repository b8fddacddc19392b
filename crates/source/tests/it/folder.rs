//! A temporary folder with a loader on it, and short ways to say what a batch did.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use gatewright_api::Object;
use gatewright_source::files::{Batch, Change, FileLoader, Timestamp};

/// The second at which the clock of a test starts.
pub(crate) const START: i64 = 1_700_000_000;

pub(crate) struct Folder {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) loader: FileLoader,
    seconds: Arc<AtomicI64>,
}

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Folder {
        let dir = tempfile::tempdir().unwrap();
        let seconds = Arc::new(AtomicI64::new(START));
        let clock = {
            let seconds = Arc::clone(&seconds);
            Box::new(move || Timestamp::from_second(seconds.load(Ordering::Relaxed)).unwrap())
        };
        let loader = FileLoader::new(dir.path(), clock).unwrap();
        let folder = Folder { dir, loader, seconds };
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.path(name), text);
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Lets the clock go on by one second.
    pub(crate) fn tick(&self) {
        self.seconds.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn scan(&mut self) -> Batch {
        self.loader.scan()
    }

    /// The changes of a scan, as text.
    pub(crate) fn changes(&mut self) -> Vec<String> {
        describe(&self.scan())
    }

    /// The problems of a scan: code, file name, line, column.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        problems(&self.scan())
    }
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(crate) fn describe(batch: &Batch) -> Vec<String> {
    let change = |change: &Change| match change {
        Change::Apply(object) => format!("apply {}", object.name()),
        Change::Delete(name) => format!("delete {name}"),
        Change::Invalid { name, .. } => format!("invalid {name}"),
    };
    batch.changes.iter().map(change).collect()
}

pub(crate) fn problems(batch: &Batch) -> Vec<String> {
    let problem = |problem: &gatewright_source::files::Problem| {
        let file = problem.file.file_name().unwrap().to_str().unwrap();
        format!("{} {file}:{}:{}", problem.code, problem.line, problem.column)
    };
    batch.problems.iter().map(problem).collect()
}

pub(crate) fn applied(batch: &Batch, name: &str) -> Object {
    let object = batch.changes.iter().find_map(|change| match change {
        Change::Apply(object) if object.name().to_string() == name => Some((**object).clone()),
        _ => None,
    });
    object.unwrap_or_else(|| panic!("{name} is not applied: {:?}", describe(batch)))
}

/// A ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: \"{value}\"\n")
}

/// A Gateway with one listener on this port.
pub(crate) fn gateway(name: &str, port: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata:\n  name: {name}\nspec:\n  \
         gatewayClassName: gatewright\n  listeners:\n  - name: http\n    port: {port}\n    protocol: HTTP\n"
    )
}
