//! Locks between processes: what two must not do at the same time, such as installing a program or owning a cluster's name.
//!
//! A lock is a file that is locked, and ends with the process that holds it. Its holder may remove the file.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

/// How often a lock is tried.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Waits for a lock, which is held until the file is dropped.
pub(crate) fn wait_for_lock(path: &Path, deadline: Duration) -> anyhow::Result<File> {
    let started = Instant::now();
    loop {
        if let Some(lock) = try_lock(path)? {
            return Ok(lock);
        }
        ensure!(
            started.elapsed() < deadline,
            "{} stayed locked for {deadline:?}",
            path.display()
        );
        thread::sleep(PAUSE);
    }
}

/// Takes a lock if nobody has it. A file that is not there is made, in a folder that is made.
pub(crate) fn try_lock(path: &Path) -> anyhow::Result<Option<File>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    // A folder can be locked as well, but not be opened to be written.
    let opened = if path.is_dir() {
        File::open(path)
    } else {
        OpenOptions::new().create(true).append(true).open(path)
    };
    let file = match opened {
        // The folder may have been removed since it was made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.with_context(|| format!("cannot open {}", path.display()))?,
    };
    match file.try_lock() {
        Ok(()) => Ok(is_at(&file, path).then_some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// Whether this is the file that others find at the path: a lock on one that was removed keeps nobody out.
fn is_at(file: &File, path: &Path) -> bool {
    let of = |metadata: io::Result<fs::Metadata>| metadata.map(|metadata| (metadata.dev(), metadata.ino())).ok();
    of(file.metadata()) == of(fs::metadata(path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::try_lock;

    #[test]
    fn a_lock_is_one_holders_and_free_again_when_its_file_is_dropped_or_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made").join("lock");
        let first = try_lock(&path).unwrap().unwrap();
        assert!(try_lock(&path).unwrap().is_none());
        drop(first);
        let second = try_lock(&path).unwrap().unwrap();
        fs::remove_file(&path).unwrap();
        let third = try_lock(&path).unwrap().unwrap();
        drop(second);
        assert!(try_lock(&path).unwrap().is_none(), "the new file is locked");
        drop(third);
        assert!(try_lock(folder.path()).unwrap().is_some(), "a folder is as good");
    }
}
