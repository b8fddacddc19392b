//! A folder of YAML as the source of declared objects.
//!
//! [`FileLoader`] is the synchronous core: each [`scan`](FileLoader::scan) reads what changed in the folder and says
//! which objects changed and what is wrong. [`watch`] runs it in a thread of its own, woken by the file system. The
//! loader stands in for an API server: it validates, applies defaults and keeps the metadata that a server would keep.

mod admit;
mod folder;
mod loader;
mod locate;
mod parallel;
mod parse;
mod problem;
mod split;
mod standing;
#[cfg(test)]
mod tests;
mod watch;

use std::{io, path::PathBuf, sync::Arc};

pub use jiff::Timestamp;
pub use loader::{Declaration, FileLoader};
pub use problem::Problem;
pub use watch::{Rescan, Watch, WatchOptions, watch};

pub use crate::Change;

/// What one look at the folder found.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What changed since the batch before: deletions first, then objects by kind, namespace and name.
    pub changes: Vec<Change>,
    /// Everything that is wrong now, by file and line; not only what is new.
    pub problems: Arc<Vec<Problem>>,
    /// Whether `problems` differs from the batch before.
    pub problems_changed: bool,
    /// Whether this is the first batch, which holds every object.
    pub is_first: bool,
    /// How many files were found.
    pub files: usize,
    /// How many objects are in use.
    pub objects: usize,
}

/// Tells the time, for `creationTimestamp`.
pub type Clock = Box<dyn Fn() -> Timestamp + Send>;

/// Why a folder cannot be served from at all.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// There is no such folder.
    #[error("folder {dir} does not exist", dir = .0.display())]
    Missing(PathBuf),
    /// The path is not a folder.
    #[error("{dir} is not a folder", dir = .0.display())]
    NotAFolder(PathBuf),
    /// The folder cannot be listed.
    #[error("folder {dir} cannot be read", dir = dir.display())]
    Unreadable {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The thread that follows the folder could not be started.
    #[error("cannot start the thread that watches {dir}", dir = dir.display())]
    Thread {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
