//! Follows a folder: a thread that scans when the file system says that something changed.
//!
//! Events only wake it; what changed is always found by looking, so that a lost event costs time and never truth. A
//! look at all time stamps every second is the safety net. The thread ends when the [`Watch`] is dropped, and for no
//! other reason.

use std::{
    collections::{BTreeSet, HashSet},
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind, RenameMode},
};

use super::{Batch, Clock, FileLoader, FilesError, folder::notation_of};

/// Programs that save a file do several things to it; this long nothing must happen before it is read.
const QUIET: Duration = Duration::from_millis(4);
/// Some editors move the old file away before they write the new one.
const QUIET_AFTER_REMOVAL: Duration = Duration::from_millis(40);
/// However busy the folder is, it is looked at after this long.
const PATIENCE: Duration = Duration::from_millis(50);
/// Unless a file is being written: half of it may be a valid file, so it is read when it is closed, or after this long.
const PATIENCE_WITH_WRITERS: Duration = Duration::from_millis(250);
/// Looking takes at most this share of the time when nothing happens.
const POLL_SHARE: u32 = 20;

/// How to watch.
pub struct WatchOptions {
    /// Tells the time.
    pub clock: Clock,
    /// How often to look when no event says so. Folders that take long to look at are looked at less often.
    pub poll: Duration,
    /// Whether to ask the file system for events.
    pub uses_events: bool,
}

impl Default for WatchOptions {
    fn default() -> WatchOptions {
        WatchOptions {
            clock: Box::new(Timestamp::now),
            poll: Duration::from_secs(1),
            uses_events: true,
        }
    }
}

/// A watched folder. Dropping it ends the watch.
#[derive(Debug)]
pub struct Watch {
    batches: tokio::sync::mpsc::Receiver<Batch>,
    rescan: Rescan,
}

/// Asks a watch to look at its folder now, without waiting for an event.
#[derive(Clone, Debug)]
pub struct Rescan(mpsc::Sender<notify::Result<Event>>);

impl Rescan {
    /// Asks. Has no effect when the watch has ended.
    pub fn ask(&self) {
        let _ = self.0.send(Ok(Event::new(EventKind::Any)));
    }
}

impl Watch {
    /// A way to ask for a look at the folder.
    pub fn rescan(&self) -> Rescan {
        self.rescan.clone()
    }

    /// The next batch: at once the first, complete one, then one whenever objects or problems change.
    ///
    /// May be dropped and called again without losing a batch. While nobody asks, changes gather into one batch.
    pub async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }

    /// The same, for callers without a runtime.
    pub fn blocking_next(&mut self) -> Option<Batch> {
        self.batches.blocking_recv()
    }
}

/// Watches a folder, which must exist now and may go away and come back later.
pub fn watch(dir: impl Into<PathBuf>, options: WatchOptions) -> Result<Watch, FilesError> {
    let WatchOptions {
        clock,
        poll,
        uses_events,
    } = options;
    let loader = FileLoader::new(dir, clock)?;
    let dir = loader.dir().to_owned();
    let watched = std::path::absolute(&dir).unwrap_or_else(|_| dir.clone());
    // One batch waits at most: what happens meanwhile is found by the next look.
    let (sender, batches) = tokio::sync::mpsc::channel(1);
    let follower = Follower {
        loader,
        poll,
        uses_events,
        watched,
        watcher: None,
        open: HashSet::new(),
        places: None,
    };
    let (events_in, events) = mpsc::channel();
    let rescan = Rescan(events_in.clone());
    let run = move || follower.run(&sender, &events_in, &events);
    match thread::Builder::new().name("files".to_owned()).spawn(run) {
        Ok(_) => Ok(Watch { batches, rescan }),
        Err(source) => Err(FilesError::Thread { dir, source }),
    }
}

struct Follower {
    loader: FileLoader,
    poll: Duration,
    uses_events: bool,
    /// The folder as an absolute path, as it is watched.
    watched: PathBuf,
    /// The watcher, and which folder it watches.
    watcher: Option<(RecommendedWatcher, Option<(u64, u64)>)>,
    /// Files that somebody has changed and not yet closed.
    open: HashSet<PathBuf>,
    /// Where something happened since the last look; nothing when that is not known.
    places: Option<BTreeSet<PathBuf>>,
}

type Events = mpsc::Receiver<notify::Result<Event>>;

impl Follower {
    fn run(
        mut self,
        batches: &tokio::sync::mpsc::Sender<Batch>,
        events_in: &mpsc::Sender<notify::Result<Event>>,
        events: &Events,
    ) {
        // Before the first look, so that nothing falls between the two.
        self.subscribe(events_in);
        let mut poll_at = Instant::now();
        loop {
            // After events only what they name is looked at, unless that does not tell enough.
            let places = self.places.replace(BTreeSet::new());
            let batch = places
                .and_then(|places| self.loader.scan_only(&places))
                .unwrap_or_else(|| {
                    let started = Instant::now();
                    let batch = self.loader.scan();
                    poll_at = Instant::now() + self.poll.max(started.elapsed() * POLL_SHARE);
                    batch
                });
            if (batch.is_first || batch.problems_changed || !batch.changes.is_empty())
                && batches.blocking_send(batch).is_err()
            {
                return;
            }
            self.subscribe(events_in);
            if !self.wait(events, poll_at, batches) {
                return;
            }
        }
    }

    /// Asks for the events of the folder, again if it is not the folder it was.
    fn subscribe(&mut self, events: &mpsc::Sender<notify::Result<Event>>) {
        let identity = self.loader.identity();
        let is_current = self
            .watcher
            .as_ref()
            .is_some_and(|(_, watched)| watched.is_none() || *watched == identity);
        if !self.uses_events {
            return;
        }
        if is_current {
            // The first look, which knows the identity, comes after the first subscription.
            if let Some((_, watched)) = &mut self.watcher {
                *watched = identity;
            }
            return;
        }
        let had_watcher = self.watcher.take().is_some();
        match subscribe(&self.watched, events.clone()) {
            Ok(watcher) => self.watcher = Some((watcher, identity)),
            Err(error) => {
                if had_watcher || identity.is_none() {
                    let folder = self.loader.dir().display();
                    tracing::warn!(%folder, %error, "no events from the file system: looking every {:?}", self.poll);
                }
            }
        }
    }

    /// Waits until the folder should be looked at again. False when nobody listens any more.
    fn wait(&mut self, events: &Events, poll_at: Instant, batches: &tokio::sync::mpsc::Sender<Batch>) -> bool {
        /// How often to see whether somebody still listens.
        const ATTENTION: Duration = Duration::from_millis(250);
        while !batches.is_closed() {
            let now = Instant::now();
            if now >= poll_at {
                self.places = None;
                return true;
            }
            match events.recv_timeout((poll_at - now).min(ATTENTION)) {
                Ok(event) => {
                    if let Some(quiet) = self.weigh(event) {
                        self.settle(events, quiet);
                        return true;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Cannot be: `run` holds a sender.
                Err(RecvTimeoutError::Disconnected) => thread::sleep(ATTENTION),
            }
        }
        false
    }

    /// Waits until the folder is quiet and nobody is writing, or patience ends.
    fn settle(&mut self, events: &Events, quiet: Duration) {
        let started = Instant::now();
        let mut quiet_at = started + quiet;
        loop {
            let now = Instant::now();
            let until = if self.open.is_empty() {
                quiet_at.min(started + PATIENCE)
            } else {
                started + PATIENCE_WITH_WRITERS
            };
            if now >= until {
                self.open.clear();
                return;
            }
            if let Ok(event) = events.recv_timeout(until - now)
                && let Some(quiet) = self.weigh(event)
            {
                quiet_at = quiet_at.max(Instant::now() + quiet);
            }
        }
    }

    /// How long it must be quiet after this event; nothing if it does not matter.
    fn weigh(&mut self, event: notify::Result<Event>) -> Option<Duration> {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(folder = %self.loader.dir().display(), %error, "event from the file system lost");
                self.places = None;
                return Some(QUIET);
            }
        };
        let quiet = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                for path in &event.paths {
                    self.open.remove(path);
                }
                QUIET
            }
            // Reading, our own included.
            EventKind::Access(_) => return None,
            EventKind::Modify(ModifyKind::Data(_)) => {
                self.open
                    .extend(event.paths.iter().filter(|path| is_read(path)).cloned());
                QUIET
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From))
                if event.paths.iter().any(|path| is_read(path)) =>
            {
                for path in &event.paths {
                    self.open.remove(path);
                }
                QUIET_AFTER_REMOVAL
            }
            _ => QUIET,
        };
        if event.need_rescan() || event.paths.is_empty() {
            self.places = None;
        }
        if let Some(places) = &mut self.places {
            let (dir, watched) = (self.loader.dir(), &self.watched);
            // Events name paths below the folder as it was watched; the loader knows them as the user named it.
            places.extend(event.paths.iter().map(|path| match path.strip_prefix(watched) {
                Ok(below) => dir.join(below),
                Err(_) => path.clone(),
            }));
        }
        Some(quiet)
    }
}

/// Whether a file of this name is read, and not one that programs use on the way.
fn is_read(path: &Path) -> bool {
    let is_hidden = path
        .file_name()
        .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    notation_of(path).is_some() && !is_hidden
}

fn subscribe(dir: &Path, events: mpsc::Sender<notify::Result<Event>>) -> notify::Result<RecommendedWatcher> {
    // A closed channel means that the follower has ended; the watcher goes with it.
    let forward = move |event| drop(events.send(event));
    let mut watcher = notify::recommended_watcher(forward)?;
    watcher.watch(dir, RecursiveMode::Recursive)?;
    Ok(watcher)
}
