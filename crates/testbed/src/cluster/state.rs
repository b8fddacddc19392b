//! What a cluster leaves on the machine, recorded before it is made, and the janitor that removes it.
//!
//! Every cluster has a folder. A lock beside it says that its name is taken; the process that owns the cluster holds it,
//! and so does a janitor, a small shell that outlives the owner and cleans up when the owner ends, by whatever means.
//! Should both be killed, the next owner of the name finds the lock free and the folder there, and cleans up first.
//! When a cluster is gone, so are its lock and the log of its service, and with the last cluster the folder of all.

mod owner;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::Write,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

pub use owner::{Owner, OwnerKind};

use crate::{
    locks::{PAUSE, try_lock},
    say,
};

/// Ends the processes of a cluster and removes its namespaces and its folder.
const CLEAN: &str = include_str!("clean.sh");

/// How long the janitor of an owner that has ended may take.
const JANITOR: Duration = Duration::from_mins(1);

/// Where the folders of all clusters are. Not where a session keeps its files: whoever is root finds them.
pub(super) const ROOT: &str = "/tmp/gatewright-testbed";

/// A cluster's folder, claimed by this process.
#[derive(Debug)]
pub(super) struct State {
    folder: PathBuf,
    lock: File,
    /// Its standard input ends with this process.
    janitor: Child,
}

impl State {
    /// Claims a name: cleans up after an earlier owner, makes the folder and starts the janitor.
    pub(super) fn claim(name: &str, kind: OwnerKind) -> anyhow::Result<Self> {
        check_name(name)?;
        let folder = folder_of(name);
        let lock = lock(name, &folder)?;
        if folder.exists() {
            say(format_args!("cleaning up what an earlier cluster {name} left"));
            clean(&folder, false)?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Owner::this_process(kind)?.write(&folder)?;
        let mut janitor = Command::new("sh");
        janitor
            .args(["-c", CLEAN, "janitor"])
            .arg(&folder)
            .arg("all")
            .current_dir("/")
            .process_group(0);
        // The lock is the janitor's too: as its standard output, to which nothing is written.
        janitor
            .stdin(Stdio::piped())
            .stdout(lock.try_clone()?)
            .stderr(Stdio::null());
        let janitor = janitor.spawn().context("cannot start the janitor")?;
        Ok(Self { folder, lock, janitor })
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The record of namespaces, for those who make some.
    pub(super) fn ledger(&self) -> Ledger {
        Ledger {
            file: self.folder.join("namespaces"),
        }
    }

    /// Cleans up now. The threads of this process must have left the namespaces.
    pub(super) fn clean(&mut self) -> anyhow::Result<()> {
        drop(self.janitor.stdin.take());
        let status = self.janitor.wait().context("cannot wait for the janitor")?;
        self.lock.unlock()?;
        ensure!(
            status.success() && !self.folder.exists(),
            "the janitor failed: {status}"
        );
        Ok(())
    }
}

/// Where namespaces are written down before they are made.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    file: PathBuf,
}

impl Ledger {
    /// Writes a name down.
    pub(super) fn record(&self, namespace: &str) -> anyhow::Result<()> {
        let open = OpenOptions::new().create(true).append(true).open(&self.file);
        let mut file = open.with_context(|| format!("cannot write {}", self.file.display()))?;
        writeln!(file, "{namespace}")?;
        Ok(())
    }
}

/// The folder of a cluster.
pub(super) fn folder_of(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

/// Makes the folder of all clusters, which holds the keys of administrators.
pub(super) fn make_root() -> anyhow::Result<()> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(ROOT);
    made.with_context(|| format!("cannot make {ROOT}"))?;
    let metadata = fs::symlink_metadata(ROOT)?;
    // Everybody may write to /tmp, so another user may have been there first.
    ensure!(
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw(),
        "{ROOT} is somebody else's\n\nhint: find out whose, and remove it",
    );
    Ok(())
}

/// The names of the clusters that have a folder.
pub(super) fn names() -> Vec<String> {
    let entries = fs::read_dir(ROOT).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = folders
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Removes what a cluster without an owner left. Returns whether there was anything.
pub(super) fn remove_leftovers(name: &str) -> anyhow::Result<bool> {
    check_name(name)?;
    let folder = folder_of(name);
    let _lock = lock(name, &folder)?;
    let is_there = folder.exists();
    clean(&folder, true)?;
    Ok(is_there)
}

/// Takes the lock of a name. Waits for a janitor, but not for a living owner.
fn lock(name: &str, folder: &Path) -> anyhow::Result<File> {
    make_root()?;
    let path = Path::new(ROOT).join(format!("{name}.lock"));
    let started = Instant::now();
    loop {
        if let Some(lock) = try_lock(&path)? {
            return Ok(lock);
        }
        if let Some(owner) = Owner::read(folder).filter(Owner::is_alive) {
            bail!("cluster {name} is running: process {} owns it", owner.pid);
        }
        ensure!(
            started.elapsed() < JANITOR,
            "{} stayed locked for {JANITOR:?}",
            path.display()
        );
        thread::sleep(PAUSE);
    }
}

/// Removes a folder and all it speaks of; with everything, also the lock, which the caller holds, and the log.
fn clean(folder: &Path, is_everything: bool) -> anyhow::Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", CLEAN, "clean"]).arg(folder).current_dir("/");
    command.args(is_everything.then_some("all"));
    let status = command.stdin(Stdio::null()).status().context("cannot start sh")?;
    ensure!(
        status.success() && !folder.exists(),
        "{} could not be cleaned: {status}",
        folder.display()
    );
    Ok(())
}

/// Names become parts of file names and of the names of namespaces.
pub(super) fn check_name(name: &str) -> anyhow::Result<()> {
    let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    ensure!(
        !name.is_empty() && name.len() <= 32 && name.bytes().all(is_legal),
        "{name:?} cannot be the name of a cluster\n\nhint: use at most 32 lower-case letters, digits and dashes",
    );
    Ok(())
}
