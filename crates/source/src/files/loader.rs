//! The state of the folder: what each file last said, and what is wrong with it.
//!
//! At the first scan the document is the unit: what is good is used. Later the file is: one with an error keeps all
//! its last good objects. Which declaration of an object is in use, and what changed by that, is decided in
//! [`super::standing`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io, mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_api::{ObjectName, validate::Code};

use super::{
    Batch, Clock, FilesError, Problem,
    admit::{FileContent, admit_text, digest_state},
    folder::{self, Listing, Stamp, notation_of},
    parse::Notation,
    problem::Place,
    standing::{Entry, Standings, Touched},
};

/// Reads a folder of declared objects, again and again.
pub struct FileLoader {
    dir: PathBuf,
    clock: Clock,
    has_scanned: bool,
    identity: Option<(u64, u64)>,
    files: Files,
    standings: Standings,
    folder_problems: Vec<Problem>,
    problems: Arc<Vec<Problem>>,
    passed_over: BTreeSet<String>,
}

/// Where an object is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The file.
    pub file: PathBuf,
    /// The line of the object's name, counted from 1.
    pub line: u64,
    /// Its column, counted from 1.
    pub column: u64,
    /// The text of the line.
    pub excerpt: Option<String>,
}

/// The files, by path: the order in which declarations win.
pub(super) type Files = BTreeMap<Arc<Path>, FileState>;

/// What a file last said.
#[derive(Default)]
pub(super) struct FileState {
    /// Absent when the file must be read again in any case.
    stamp: Option<Stamp>,
    digest: Option<u64>,
    problems: Vec<Problem>,
    pub(super) entries: Vec<Entry>,
}

impl FileLoader {
    /// A loader for a folder, which must exist. Nothing is read before the first [`scan`](Self::scan).
    pub fn new(dir: impl Into<PathBuf>, clock: Clock) -> Result<FileLoader, FilesError> {
        let dir = dir.into();
        match fs::metadata(&dir) {
            Ok(metadata) if !metadata.is_dir() => return Err(FilesError::NotAFolder(dir)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FilesError::Missing(dir)),
            Err(source) => return Err(FilesError::Unreadable { dir, source }),
        }
        if let Err(source) = fs::read_dir(&dir) {
            return Err(FilesError::Unreadable { dir, source });
        }
        Ok(FileLoader {
            dir,
            clock,
            has_scanned: false,
            identity: None,
            files: BTreeMap::new(),
            standings: Standings::default(),
            folder_problems: Vec::new(),
            problems: Arc::default(),
            passed_over: BTreeSet::new(),
        })
    }

    /// Looks at the folder and says what changed since the last time.
    pub fn scan(&mut self) -> Batch {
        let is_first = !mem::replace(&mut self.has_scanned, true);
        let listing = folder::list(&self.dir);
        self.identity = listing.identity;
        let mut touched = Touched::new();
        self.forget_missing(&listing, &mut touched);
        self.report_folders(&listing);
        for (path, stamp) in listing.files {
            self.look_at(&path, stamp, is_first, &mut touched);
        }
        let changes = self.standings.settle(touched, &mut self.files, (self.clock)());
        let problems_changed = self.collect_problems();
        Batch {
            changes,
            problems: Arc::clone(&self.problems),
            problems_changed,
            is_first,
            files: self.files.len(),
            objects: self.standings.objects(),
        }
    }

    /// Where the declaration in use of an object stands: its file, the line and column of its name, and that line.
    pub fn place_of(&self, name: &ObjectName) -> Option<Declaration> {
        let (file, place) = self.standings.place_of(name, &self.files)?;
        let Place { line, column, excerpt } = place;
        let file = file.to_path_buf();
        Some(Declaration {
            file,
            line,
            column,
            excerpt,
        })
    }

    /// `apiVersion` and `kind` of what was found and is not read.
    pub fn passed_over(&self) -> &BTreeSet<String> {
        &self.passed_over
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Which folder it is by device and inode; another one after it has been replaced.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    fn forget_missing(&mut self, listing: &Listing, touched: &mut Touched) {
        let is_listed = |path: &Path| {
            listing
                .files
                .binary_search_by(|(listed, _)| listed.as_path().cmp(path))
                .is_ok()
        };
        // Below a folder that cannot be listed, nobody can say what is missing.
        let is_hidden = |path: &Path| listing.unreadable.iter().any(|(folder, _)| path.starts_with(folder));
        let is_gone = |path: &&Arc<Path>| !is_listed(path) && !is_hidden(path);
        let gone: Vec<Arc<Path>> = self.files.keys().filter(is_gone).cloned().collect();
        for path in gone {
            if let Some(state) = self.files.remove(&path) {
                self.standings.withdraw(&path, state.entries, touched);
            }
        }
    }

    fn report_folders(&mut self, listing: &Listing) {
        let problem = |(folder, error): &(PathBuf, io::Error)| {
            let message = format!("folder cannot be read: {error}");
            let hint = "check that it exists and its permissions; what was read from it before stays in use";
            Problem::of_file(Code::Unreadable, folder, message, hint)
        };
        self.folder_problems = listing.unreadable.iter().map(problem).collect();
    }

    /// Reads one file if it may have changed.
    fn look_at(&mut self, path: &Path, stamp: io::Result<Stamp>, is_first: bool, touched: &mut Touched) {
        let known = self.files.get_key_value(path);
        if let (Ok(stamp), Some((_, state))) = (&stamp, known)
            && state.stamp.as_ref() == Some(stamp)
        {
            return;
        }
        let path: Arc<Path> = known.map_or_else(|| Arc::from(path), |(path, _)| Arc::clone(path));
        let state = self.files.entry(Arc::clone(&path)).or_default();
        // Taken before the file is read: if it changes meanwhile, the next scan sees another stamp.
        let settled = stamp.as_ref().ok().copied().filter(Stamp::is_settled);
        let bytes = match stamp.and_then(|_| folder::read(&path)) {
            Ok(bytes) => bytes,
            Err(error) => {
                state.refuse(&path, &error);
                return;
            }
        };
        state.stamp = settled;
        let digest = digest_state().hash_one(&bytes);
        if state.digest.replace(digest) == Some(digest) {
            return;
        }
        let mut content = read_content(&path, bytes);
        for kind in mem::take(&mut content.passed_over) {
            if !self.passed_over.contains(&kind) {
                tracing::info!(%kind, file = %path.display(), "passed over: not a kind that is read");
                self.passed_over.insert(kind);
            }
        }
        state.problems = content.problems;
        if state.problems.iter().any(Problem::is_error) && !is_first {
            state.mark_last_good();
        } else {
            let entries = mem::take(&mut state.entries);
            self.standings.withdraw(&path, entries, touched);
            state.entries = self.standings.declare(&path, content.declared, touched);
        }
    }

    /// Puts together everything that is wrong; says whether it differs from before.
    fn collect_problems(&mut self) -> bool {
        let of_files = self.files.values().flat_map(|state| &state.problems);
        let of_objects = self.standings.duplicates();
        let mut problems: Vec<&Problem> = self.folder_problems.iter().chain(of_files).chain(of_objects).collect();
        problems
            .sort_by(|left, right| (&left.file, left.line, left.column).cmp(&(&right.file, right.line, right.column)));
        if problems.iter().copied().eq(self.problems.iter()) {
            return false;
        }
        self.problems = Arc::new(problems.into_iter().cloned().collect());
        true
    }
}

impl FileState {
    /// The file cannot be read: it keeps its last good objects.
    fn refuse(&mut self, path: &Path, error: &io::Error) {
        let hint = "check that it exists, that it is a regular file, and its permissions";
        self.problems = vec![Problem::of_file(
            Code::Unreadable,
            path,
            format!("file cannot be read: {error}"),
            hint,
        )];
        self.mark_last_good();
        self.stamp = None;
        self.digest = None;
    }

    fn mark_last_good(&mut self) {
        let has_last_good = !self.entries.is_empty();
        for problem in &mut self.problems {
            problem.uses_last_good = has_last_good;
        }
    }
}

/// Reads the content of a file. A byte order mark at its beginning is not part of it.
pub(super) fn read_content(path: &Path, bytes: Vec<u8>) -> FileContent {
    let notation = notation_of(path).unwrap_or(Notation::Yaml);
    match String::from_utf8(bytes) {
        Ok(text) => admit_text(path, text.trim_start_matches('\u{feff}'), notation),
        Err(error) => {
            let valid = error
                .as_bytes()
                .get(..error.utf8_error().valid_up_to())
                .unwrap_or_default();
            let before = String::from_utf8_lossy(valid);
            let line = before.matches('\n').count() as u64 + 1;
            let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u64 + 1;
            let place = Place {
                line,
                column,
                excerpt: None,
            };
            let hint = "save the file as UTF-8";
            let problem = Problem::of_file(Code::Syntax, path, "text is not UTF-8".to_owned(), hint).at(place);
            FileContent {
                problems: vec![problem],
                ..FileContent::default()
            }
        }
    }
}
