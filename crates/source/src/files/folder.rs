//! What is in the folder: the files to read, in order, with what tells whether they changed; and their bytes.
//!
//! Hidden files and folders are skipped. In a mounted ConfigMap the visible names are links through a hidden folder,
//! so links are followed, and what they lead to is what counts.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::parse::Notation;

/// Largest file: beyond it is no configuration.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// A file written so recently may be written again without a new time stamp.
const SETTLING: Duration = Duration::from_millis(100);

/// What changes when a file is changed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a later change is sure to give another stamp, if the file was read now.
    pub(super) fn is_settled(&self) -> bool {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let newest = self.modified.max(self.changed);
        let newest = Duration::new(
            u64::try_from(newest.0).unwrap_or_default(),
            u32::try_from(newest.1).unwrap_or(0),
        );
        newest + SETTLING < now
    }
}

/// The files of a folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// By path; a file whose stamp cannot be read is there with the error.
    pub(super) files: Vec<(PathBuf, io::Result<Stamp>)>,
    /// Folders that could not be listed: of what is below them nothing is known.
    pub(super) unreadable: Vec<(PathBuf, io::Error)>,
    /// Which folder it was; changes when the folder is replaced.
    pub(super) identity: Option<(u64, u64)>,
    /// Whether there are links: what is read may stand elsewhere.
    pub(super) has_links: bool,
}

/// Lists every file to read below `dir`.
pub(super) fn list(dir: &Path) -> Listing {
    let mut listing = Listing::default();
    match fs::metadata(dir) {
        Ok(metadata) => {
            let identity = (metadata.dev(), metadata.ino());
            listing.identity = Some(identity);
            list_into(dir, &mut vec![identity], &mut listing);
        }
        Err(error) => listing.unreadable.push((dir.to_owned(), error)),
    }
    listing
}

/// `above` are the folders on the way here, by identity: a link back to one of them is not followed.
fn list_into(dir: &Path, above: &mut Vec<(u64, u64)>, listing: &mut Listing) {
    let mut entries = match fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(error) => {
            listing.unreadable.push((dir.to_owned(), error));
            return;
        }
    };
    // In the order of names on every level, so that the whole list is in the order of paths.
    entries.sort_by_cached_key(fs::DirEntry::file_name);
    for entry in entries {
        if is_hidden(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type();
        listing.has_links |= kind.as_ref().is_ok_and(fs::FileType::is_symlink);
        if kind.is_ok_and(|kind| kind.is_file()) && notation_of(&path).is_none() {
            continue;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                let identity = (metadata.dev(), metadata.ino());
                if !above.contains(&identity) {
                    above.push(identity);
                    list_into(&path, above, listing);
                    above.pop();
                }
            }
            metadata if notation_of(&path).is_some() => {
                listing
                    .files
                    .push((path, metadata.map(|metadata| Stamp::of(&metadata))));
            }
            // A dangling link, a socket or the like with another ending.
            _ => {}
        }
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// What stands at a path of which the file system says that something happened there.
#[derive(Debug)]
pub(super) enum Sight {
    /// A file to read.
    File(Stamp),
    /// A file to read was there, maybe.
    Nothing,
    /// Something that is not read.
    Other,
    /// A folder or a link: one path does not tell what changed.
    Unclear,
}

/// Looks at one path below `dir`, without following links.
pub(super) fn look(dir: &Path, path: &Path) -> Sight {
    let Ok(below) = path.strip_prefix(dir) else {
        return Sight::Unclear;
    };
    if below.components().any(|part| is_hidden(part.as_os_str())) {
        return Sight::Other;
    }
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() && notation_of(path).is_none() => Sight::Other,
        Ok(metadata) if metadata.is_file() => Sight::File(Stamp::of(&metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.parent().is_some_and(Path::is_dir) => {
            Sight::Nothing
        }
        _ => Sight::Unclear,
    }
}

/// Which folder stands at a path.
pub(super) fn identity_of(dir: &Path) -> Option<(u64, u64)> {
    fs::metadata(dir).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// How a file of this name is written, if it is one to read.
pub(super) fn notation_of(path: &Path) -> Option<Notation> {
    match path.extension()?.to_str()? {
        "yaml" | "yml" => Some(Notation::Yaml),
        "json" => Some(Notation::Json),
        _ => None,
    }
}

/// Reads a file, if it is a regular file of bearable size.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    // Looked at before it is opened: opening a named pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = File::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(MOST_BYTES)).unwrap_or_default());
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other(format!(
            "larger than {} MiB",
            MOST_BYTES / 1024 / 1024
        )));
    }
    Ok(bytes)
}
