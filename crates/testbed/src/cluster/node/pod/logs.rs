//! What containers print: kept line by line with its time, read by `kubectl logs`.
//!
//! Each run of a container has a file of its own; that of the run before is kept too, for `kubectl logs --previous`.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::watch,
};

/// The logs of all containers.
#[derive(Debug, Default)]
pub(in crate::cluster::node) struct LogBook {
    containers: Mutex<HashMap<ContainerKey, Vec<Arc<Log>>>>,
}

/// A container: namespace, pod and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::cluster::node) struct ContainerKey {
    pub(in crate::cluster::node) namespace: String,
    pub(in crate::cluster::node) pod: String,
    pub(in crate::cluster::node) container: String,
}

impl LogBook {
    /// Begins the log of a new run.
    pub(super) fn begin(&self, key: ContainerKey, folder: &Path, run: i32) -> std::io::Result<Arc<Log>> {
        let log = Arc::new(Log::new(folder.join(format!("{run}.log")))?);
        let mut containers = self.containers.lock();
        let runs = containers.entry(key).or_default();
        runs.push(Arc::clone(&log));
        if runs.len() > 2 {
            let _ = fs::remove_file(&runs.remove(0).path);
        }
        Ok(log)
    }

    /// The log of the current run, or of the one before.
    pub(in crate::cluster::node) fn find(&self, key: &ContainerKey, is_previous: bool) -> Option<Arc<Log>> {
        let containers = self.containers.lock();
        let mut runs = containers.get(key)?.iter().rev();
        if is_previous {
            runs.next();
        }
        runs.next().cloned()
    }

    /// Forgets the containers of a pod, if their logs are in its folder: a pod of the same name may have come after it.
    pub(super) fn forget(&self, folder: &Path) {
        self.containers
            .lock()
            .retain(|_, runs| !runs.iter().any(|log| log.path.starts_with(folder)));
    }
}

/// What one run of a container printed.
#[derive(Debug)]
pub(in crate::cluster::node) struct Log {
    path: PathBuf,
    file: Mutex<File>,
    progress: watch::Sender<Progress>,
}

/// How far a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::cluster::node) struct Progress {
    bytes: u64,
    /// Nothing more comes.
    pub(in crate::cluster::node) is_closed: bool,
}

impl Log {
    fn new(path: PathBuf) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(&path)?;
        Ok(Self {
            path,
            file: Mutex::new(file),
            progress: watch::Sender::new(Progress::default()),
        })
    }

    /// Writes a line down, with its time.
    fn write(&self, line: &[u8]) {
        let mut text = format!("{:.9} ", Timestamp::now()).into_bytes();
        text.extend_from_slice(line);
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        // A full disk loses lines, not containers.
        if self.file.lock().write_all(&text).is_ok() {
            self.progress
                .send_modify(|progress| progress.bytes += text.len() as u64);
        }
    }

    /// Says that nothing more comes.
    pub(super) fn close(&self) {
        self.progress.send_modify(|progress| progress.is_closed = true);
    }

    /// Changes with every line.
    pub(in crate::cluster::node) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// The whole lines from a place on, and the place after them.
    pub(in crate::cluster::node) fn read(&self, from: u64) -> std::io::Result<(Vec<Line>, u64)> {
        // Not by its path: who follows reads the last lines also when the pod's folder is gone already.
        let mut file = self.file.lock();
        // Where to read makes no difference to where is written: at the end.
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        drop(file);
        let whole = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |position| position + 1);
        bytes.truncate(whole);
        let lines = bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter_map(Line::parse)
            .collect();
        Ok((lines, from + whole as u64))
    }
}

/// A line with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cluster::node) struct Line {
    pub(in crate::cluster::node) time: Timestamp,
    /// With the line's end.
    pub(in crate::cluster::node) text: Vec<u8>,
}

impl Line {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let (time, text) = bytes.split_at_checked(space)?;
        Some(Self {
            time: std::str::from_utf8(time).ok()?.parse().ok()?,
            text: text.get(1..)?.to_vec(),
        })
    }
}

/// Writes down everything that comes, until its end.
pub(super) async fn record(log: Arc<Log>, stream: impl AsyncRead + Unpin) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(1..) = stream.read_until(b'\n', &mut line).await {
        log.write(&line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{ContainerKey, LogBook, record};

    #[tokio::test]
    async fn lines_keep_their_order_and_times_and_the_last_needs_no_end() {
        let folder = tempfile::tempdir().unwrap();
        let book = LogBook::default();
        let key = ContainerKey {
            namespace: "a".to_owned(),
            pod: "b".to_owned(),
            container: "c".to_owned(),
        };
        let log = book.begin(key.clone(), folder.path(), 0).unwrap();
        record(Arc::clone(&log), b"one\n\ntwo words".as_slice()).await;
        log.close();
        let (lines, place) = log.read(0).unwrap();
        let texts: Vec<&[u8]> = lines.iter().map(|line| line.text.as_slice()).collect();
        assert_eq!(texts, [b"one\n".as_slice(), b"\n", b"two words\n"]);
        assert!(lines.is_sorted_by_key(|line| line.time));
        assert_eq!(log.read(place).unwrap().0, []);
        assert!(book.find(&key, true).is_none());
        book.begin(key.clone(), folder.path(), 1).unwrap();
        assert!(Arc::ptr_eq(&book.find(&key, true).unwrap(), &log));
        book.forget(folder.path());
        assert!(book.find(&key, false).is_none());
        folder.close().unwrap();
        assert_eq!(log.read(0).unwrap().0, lines, "who follows it has it still");
    }
}
