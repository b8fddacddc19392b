//! How the watch of each kind stands, for logs, metrics and the status page.
//!
//! The watches write, anyone may read. What changes is said in the log once; an API server that is away is one line, not
//! one per kind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright_api::Kind;

/// How the watch of a kind stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Being listed for the first time.
    Listing,
    /// Listed and followed.
    Watching,
    /// The API server does not know the kind: its definition is not installed. Counts as listed and empty.
    Absent,
    /// We may not list or watch it. Counts as listed; what is known stays.
    Forbidden,
    /// The API server does not answer. What is known stays.
    Unreachable,
}

impl Standing {
    /// One word, for a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Listing => "listing",
            Self::Watching => "watching",
            Self::Absent => "absent",
            Self::Forbidden => "forbidden",
            Self::Unreachable => "unreachable",
        }
    }
}

/// The watch of one kind.
#[derive(Clone, Debug)]
pub struct KindState {
    /// The kind.
    pub kind: Kind,
    /// The namespace, if it is watched namespace by namespace.
    pub namespace: Option<String>,
    /// How it stands.
    pub standing: Standing,
    /// The version that is read, once known.
    pub version: Option<&'static str>,
    /// How many objects there are.
    pub objects: usize,
    /// How many of them cannot be read.
    pub invalid: usize,
    /// How often all of them were listed.
    pub lists: u64,
    /// How often something went wrong.
    pub errors: u64,
    /// What went wrong last.
    pub last_error: Option<String>,
}

/// The watches of all kinds. Cheap to clone; all clones show the same.
#[derive(Clone, Debug)]
pub struct States {
    server: Arc<str>,
    slots: Arc<Mutex<Slots>>,
}

#[derive(Debug, Default)]
struct Slots {
    states: Vec<Option<KindState>>,
    is_away: bool,
}

/// One watch among the states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot(usize);

impl States {
    pub(super) fn new(server: &str) -> Self {
        Self {
            server: server.into(),
            slots: Arc::default(),
        }
    }

    /// All watches, as they are now.
    pub fn get(&self) -> Vec<KindState> {
        self.lock().states.iter().flatten().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        // Nothing that holds the lock can leave it half-written.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, kind: Kind, namespace: Option<String>) -> Slot {
        let mut slots = self.lock();
        slots.states.push(Some(KindState {
            kind,
            namespace,
            standing: Standing::Listing,
            version: None,
            objects: 0,
            invalid: 0,
            lists: 0,
            errors: 0,
            last_error: None,
        }));
        Slot(slots.states.len() - 1)
    }

    pub(super) fn remove(&self, slot: Slot) {
        if let Some(state) = self.lock().states.get_mut(slot.0) {
            *state = None;
        }
    }

    pub(super) fn update(&self, slot: Slot, update: impl FnOnce(&mut KindState)) {
        if let Some(Some(state)) = self.lock().states.get_mut(slot.0) {
            update(state);
        }
    }

    /// Takes note of how a watch stands now, and says so if it is news.
    pub(super) fn stand(&self, slot: Slot, standing: Standing, error: Option<String>) {
        let mut slots = self.lock();
        let Slots { states, is_away } = &mut *slots;
        let Some(Some(state)) = states.get_mut(slot.0) else {
            return;
        };
        let before = state.standing;
        state.standing = standing;
        if let Some(error) = error {
            state.errors += 1;
            state.last_error = Some(error);
        }
        if before != standing {
            self.tell(state, before, is_away);
        }
        if *is_away
            && !states
                .iter()
                .flatten()
                .any(|state| state.standing == Standing::Unreachable)
        {
            *is_away = false;
            tracing::info!(server = %self.server, "the API server answers again");
        }
    }

    fn tell(&self, state: &KindState, before: Standing, is_away: &mut bool) {
        let KindState {
            kind,
            namespace,
            standing,
            version,
            objects,
            last_error,
            ..
        } = state;
        let namespace = namespace.as_deref().unwrap_or("*");
        let error = last_error.as_deref().unwrap_or_default();
        match standing {
            Standing::Watching if before == Standing::Unreachable => {}
            Standing::Watching => tracing::debug!(%kind, namespace, version, objects, "watching"),
            Standing::Absent => tracing::warn!(
                %kind,
                group = kind.group(),
                "the cluster does not know this kind; it counts as empty until it is installed"
            ),
            Standing::Forbidden => tracing::warn!(
                %kind, namespace, error,
                "this kind may not be listed and watched; what is not known of it counts as empty"
            ),
            Standing::Unreachable if !*is_away => {
                *is_away = true;
                tracing::warn!(
                    server = %self.server, %kind, error,
                    "the API server does not answer; everything goes on with what is known"
                );
            }
            Standing::Unreachable | Standing::Listing => {}
        }
    }
}
