//! The state of the folder: what each file last said, and what is wrong with it.
//!
//! At the first scan the document is the unit: what is good is used. Later the file is: one with an error keeps all
//! its last good objects. Which declaration of an object is in use, and what changed by that, is decided in
//! [`super::standing`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io, mem,
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

use gatewright_api::{ObjectName, validate::Code};

use super::{
    Batch, Clock, FilesError, Problem,
    admit::{FileContent, admit_text, digest_state},
    folder::{self, Listing, Sight, Stamp, notation_of},
    parallel,
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
    /// Whether something happened that may change the problems.
    has_news: bool,
    has_links: bool,
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
            has_news: false,
            has_links: false,
            passed_over: BTreeSet::new(),
        })
    }

    /// Looks at the whole folder and says what changed since the last time.
    pub fn scan(&mut self) -> Batch {
        let is_first = !mem::replace(&mut self.has_scanned, true);
        let listing = folder::list(&self.dir);
        self.identity = listing.identity;
        self.has_links = listing.has_links;
        let mut touched = Touched::new();
        self.forget_missing(&listing, &mut touched);
        self.report_folders(&listing);
        self.look_at(listing.files, is_first, &mut touched);
        self.batch(touched, is_first)
    }

    /// Looks only at these paths. Nothing if they do not tell enough, and the whole folder must be looked at.
    pub(super) fn scan_only(&mut self, paths: &BTreeSet<PathBuf>) -> Option<Batch> {
        let is_plain = self.has_scanned && !self.has_links && self.folder_problems.is_empty();
        if !is_plain || folder::identity_of(&self.dir) != self.identity {
            return None;
        }
        let mut found = Vec::new();
        let mut gone = Vec::new();
        for path in paths {
            match folder::look(&self.dir, path) {
                Sight::File(stamp) => found.push((path.clone(), Ok(stamp))),
                Sight::Nothing if notation_of(path).is_some() => gone.push(path),
                // A folder may have been there.
                Sight::Nothing if self.has_files_below(path) => return None,
                Sight::Nothing | Sight::Other => {}
                Sight::Unclear => return None,
            }
        }
        let mut touched = Touched::new();
        for path in gone {
            if self.has_files_below(path) && !self.files.contains_key(path.as_path()) {
                return None;
            }
            self.forget(path, &mut touched);
        }
        self.look_at(found, false, &mut touched);
        Some(self.batch(touched, false))
    }

    fn has_files_below(&self, path: &Path) -> bool {
        let from = (Bound::Included(path), Bound::Unbounded);
        self.files
            .range::<Path, _>(from)
            .next()
            .is_some_and(|(file, _)| file.starts_with(path))
    }

    fn batch(&mut self, touched: Touched, is_first: bool) -> Batch {
        self.has_news |= !touched.is_empty();
        let changes = self.standings.settle(touched, &mut self.files, (self.clock)());
        let problems_changed = mem::take(&mut self.has_news) && self.collect_problems();
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
        let mut listed = listing.files.iter().map(|(path, _)| path.as_path()).peekable();
        let mut gone = Vec::new();
        // Both are in the order of paths.
        for path in self.files.keys() {
            while listed.next_if(|listed| *listed < path.as_ref()).is_some() {}
            // Below a folder that cannot be listed, nobody can say what is missing.
            let is_unknown = || listing.unreadable.iter().any(|(folder, _)| path.starts_with(folder));
            if listed.peek() != Some(&path.as_ref()) && !is_unknown() {
                gone.push(Arc::clone(path));
            }
        }
        for path in gone {
            self.forget(&path, touched);
        }
    }

    fn forget(&mut self, path: &Path, touched: &mut Touched) {
        if let Some((path, state)) = self.files.remove_entry(path) {
            self.has_news = true;
            self.standings.withdraw(&path, state.entries, touched);
        }
    }

    fn report_folders(&mut self, listing: &Listing) {
        let problem = |(folder, error): &(PathBuf, io::Error)| {
            let message = format!("folder cannot be read: {error}");
            let hint = "check that it exists and its permissions; what was read from it before stays in use";
            Problem::of_file(Code::Unreadable, folder, message, hint)
        };
        let problems: Vec<Problem> = listing.unreadable.iter().map(problem).collect();
        self.has_news |= problems != self.folder_problems;
        self.folder_problems = problems;
    }

    /// Reads those files that may have changed.
    fn look_at(&mut self, found: Vec<(PathBuf, io::Result<Stamp>)>, is_first: bool, touched: &mut Touched) {
        let mut suspects = Vec::new();
        for (path, stamp) in found {
            let known = self.files.get_key_value(path.as_path());
            if let (Ok(stamp), Some((_, state))) = (&stamp, known)
                && state.stamp.as_ref() == Some(stamp)
            {
                continue;
            }
            let digest = known.and_then(|(_, state)| state.digest);
            let path = known.map_or_else(|| Arc::from(path.as_path()), |(path, _)| Arc::clone(path));
            suspects.push(Suspect { path, stamp, digest });
        }
        for reading in parallel::map(suspects, Suspect::read) {
            self.take(reading, is_first, touched);
        }
    }

    /// Takes what was read of a file.
    fn take(&mut self, reading: Reading, is_first: bool, touched: &mut Touched) {
        let Reading { path, stamp, outcome } = reading;
        let state = self.files.entry(Arc::clone(&path)).or_default();
        let (digest, mut content) = match outcome {
            Outcome::Unreadable(error) => {
                self.has_news = true;
                state.refuse(&path, &error);
                return;
            }
            Outcome::Same => {
                state.stamp = stamp;
                return;
            }
            Outcome::New(digest, content) => (digest, content),
        };
        self.has_news = true;
        state.stamp = stamp;
        state.digest = Some(digest);
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

/// A file that may have changed, with what is known of it.
struct Suspect {
    path: Arc<Path>,
    stamp: io::Result<Stamp>,
    digest: Option<u64>,
}

/// What was read of a file.
struct Reading {
    path: Arc<Path>,
    stamp: Option<Stamp>,
    outcome: Outcome,
}

enum Outcome {
    Unreadable(io::Error),
    /// The content is what it was.
    Same,
    New(u64, FileContent),
}

impl Suspect {
    fn read(self) -> Reading {
        let Suspect { path, stamp, digest } = self;
        // Taken before the file is read: if it changes meanwhile, the next scan sees another stamp.
        let settled = stamp.as_ref().ok().copied().filter(Stamp::is_settled);
        let outcome = match stamp.and_then(|_| folder::read(&path)) {
            Err(error) => Outcome::Unreadable(error),
            Ok(bytes) => match digest_state().hash_one(&bytes) {
                same if digest == Some(same) => Outcome::Same,
                new => Outcome::New(new, read_content(&path, bytes)),
            },
        };
        Reading {
            path,
            stamp: settled,
            outcome,
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
