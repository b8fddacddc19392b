//! Follows one kind, everywhere or in one namespace, for as long as the process runs.
//!
//! Listing, paging and resumption are [`Events`]. Around them stands what a watch does not know: which version is offered,
//! what to do when the kind is absent or forbidden, and what is really different after a list.

use std::{sync::Arc, time::Duration};

use ::kube::Error;
use futures::future;
use gatewright_api::Kind;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    gather::Message,
    states::{Slot, Standing, States},
};
use crate::kube::{
    Cluster,
    backoff::Backoff,
    discovery, failure,
    list_watch::{Event, Events, Selection},
    reach::reach,
};

mod known;

use known::Known;

/// While the API server is away it is asked this rarely, by each watch.
const LONGEST_AWAY: Duration = Duration::from_secs(10);
/// A kind that is absent or forbidden is looked for this rarely.
const LONGEST_ABSENT: Duration = Duration::from_secs(30);
/// A kind that had objects is believed to be gone only when it still is after so long: a server that starts may not
/// know all its kinds yet.
const DOUBT: Duration = Duration::from_secs(2);
/// Defined is not yet served: it takes the API server a moment.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// What the watch of one kind needs.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) cluster: Cluster,
    pub(super) controller: Arc<str>,
    pub(super) kind: Kind,
    pub(super) namespace: Option<String>,
    pub(super) messages: mpsc::Sender<Message>,
    pub(super) states: States,
    pub(super) definitions: watch::Receiver<u64>,
}

/// Nobody listens any more.
struct Deaf;

/// Why a stream of events ended.
enum End {
    /// The kind is not there in this version.
    Missing,
    /// We may not list it.
    Forbidden,
    /// It must be listed again, or in another version.
    Anew,
}

impl Task {
    /// Runs until nobody listens.
    pub(super) async fn run(self) {
        let _ = self.follow(false).await;
    }

    /// The same, but where the kind may not be listed everywhere, it is followed in these namespaces.
    pub(super) async fn run_or_fall_back(self, namespaces: Vec<String>) {
        let resource = self.cluster.served(self.kind);
        let is_everywhere = reach(&self.cluster.client(), &resource, &namespaces).await == [None];
        // What is said of rights is not always so: a list that is refused counts, too.
        if is_everywhere && self.clone().follow(!namespaces.is_empty()).await.is_err() {
            return;
        }
        if self.messages.send(Message::Split(namespaces.len())).await.is_err() {
            return;
        }
        let each = namespaces.into_iter().map(|namespace| {
            let part = Self {
                namespace: Some(namespace),
                ..self.clone()
            };
            part.run()
        });
        future::join_all(each).await;
    }

    /// Returns when the kind is forbidden and that is not to be waited out.
    async fn follow(self, gives_up: bool) -> Result<(), Deaf> {
        let slot = self.states.add(self.kind, self.namespace.clone());
        let known = Known::new(self.kind, self.controller.clone());
        let mut follower = Follower {
            task: self,
            slot,
            known,
            has_listed: false,
            absence: Backoff::new(Duration::from_secs(1), LONGEST_ABSENT),
            trouble: Backoff::new(Duration::from_millis(500), LONGEST_AWAY),
        };
        loop {
            let end = match follower.discover().await? {
                Some(version) => follower.stream(version).await?,
                None => End::Missing,
            };
            match end {
                End::Anew => {}
                End::Missing => follower.miss().await?,
                End::Forbidden if gives_up && !follower.has_listed => {
                    follower.task.states.remove(slot);
                    return Ok(());
                }
                End::Forbidden => {
                    follower.listed().await?;
                    follower.wait_for_definition().await;
                }
            }
        }
    }
}

struct Follower {
    task: Task,
    slot: Slot,
    known: Known,
    has_listed: bool,
    absence: Backoff,
    trouble: Backoff,
}

impl Follower {
    /// The version to read; asks until there is an answer.
    async fn discover(&mut self) -> Result<Option<&'static str>, Deaf> {
        let kind = self.task.kind;
        loop {
            if self.task.messages.is_closed() {
                return Err(Deaf);
            }
            match discovery::offered(&self.task.cluster.client(), kind).await {
                Ok(version) => return Ok(version),
                // Whoever may not ask for versions may still be allowed to list.
                Err(error) if failure::code(&error) == Some(403) => return Ok(kind.versions().first().copied()),
                Err(error) => self.trouble(&error).await,
            }
        }
    }

    /// Follows the kind in one version.
    async fn stream(&mut self, version: &'static str) -> Result<End, Deaf> {
        let kind = self.task.kind;
        self.task.cluster.set_served(kind, version);
        self.task
            .states
            .update(self.slot, |state| state.version = Some(version));
        let selection = Selection {
            namespace: self.task.namespace.clone(),
            // The history of Helm releases: large, many, and never a certificate.
            fields: (kind == Kind::Secret).then(|| "type!=helm.sh/release.v1".to_owned()),
            ..Selection::default()
        };
        let resource = discovery::resource(kind, version);
        let mut events = Events::new(self.task.cluster.client(), &resource, selection);
        let is_best = kind.versions().first().is_none_or(|best| *best == version);
        let mut outlook = Backoff::new(LONGEST_ABSENT, LONGEST_ABSENT);
        let mut look_at = Instant::now() + outlook.next();
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                Ok(()) = self.task.definitions.changed(), if !is_best => {
                    outlook = Backoff::new(FIRST_LOOK, LONGEST_ABSENT);
                    look_at = Instant::now() + outlook.next();
                    continue;
                }
                () = tokio::time::sleep_until(look_at), if !is_best => {
                    if self.is_outdated(version).await {
                        return Ok(End::Anew);
                    }
                    look_at = Instant::now() + outlook.next();
                    continue;
                }
            };
            match event {
                Ok(event) => self.take(event).await?,
                Err(error) => {
                    if let Some(end) = self.fail(&error).await {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Whether a version that we prefer is offered now.
    async fn is_outdated(&self, version: &str) -> bool {
        let offered = discovery::offered(&self.task.cluster.client(), self.task.kind).await;
        matches!(offered, Ok(Some(best)) if best != version)
    }

    async fn take(&mut self, event: Event) -> Result<(), Deaf> {
        let message = match event {
            Event::ListBegins => {
                self.known.begin_list();
                None
            }
            Event::Watching => {
                self.healthy();
                None
            }
            Event::Listed(raw) | Event::Applied(raw) => self.known.apply(raw),
            Event::Deleted(raw) => self.known.delete(&raw),
            Event::ListEnds => {
                self.task.states.update(self.slot, |state| state.lists += 1);
                self.healthy();
                for message in self.known.end_list() {
                    self.send(message).await?;
                }
                self.count();
                return self.listed().await;
            }
        };
        if let Some(message) = message {
            self.count();
            self.send(message).await?;
        }
        Ok(())
    }

    fn healthy(&mut self) {
        self.trouble.reset();
        self.absence = Backoff::new(Duration::from_secs(1), LONGEST_ABSENT);
        self.task.states.stand(self.slot, Standing::Watching, None);
    }

    fn count(&self) {
        let (objects, invalid) = self.known.count();
        self.task.states.update(self.slot, |state| {
            state.objects = objects;
            state.invalid = invalid;
        });
    }

    async fn send(&self, message: Message) -> Result<(), Deaf> {
        self.task.messages.send(message).await.map_err(|_| Deaf)
    }

    async fn listed(&mut self) -> Result<(), Deaf> {
        if self.has_listed {
            return Ok(());
        }
        self.has_listed = true;
        self.send(Message::Listed).await
    }

    /// What to do about an error: wait and go on, or end this stream.
    async fn fail(&mut self, error: &Error) -> Option<End> {
        match failure::code(error) {
            Some(404) => Some(End::Missing),
            Some(403) => {
                let message = failure::message(error);
                self.task.states.stand(self.slot, Standing::Forbidden, Some(message));
                Some(End::Forbidden)
            }
            _ => {
                self.trouble(error).await;
                None
            }
        }
    }

    async fn trouble(&mut self, error: &Error) {
        self.task
            .states
            .stand(self.slot, Standing::Unreachable, Some(failure::message(error)));
        let wait = self.trouble.next();
        tokio::time::sleep(failure::retry_after(error).unwrap_or_default().max(wait)).await;
    }

    /// The kind is not there: it counts as listed and empty, and is looked for again.
    async fn miss(&mut self) -> Result<(), Deaf> {
        if !self.known.is_empty() {
            tokio::time::sleep(DOUBT).await;
            if self.discover().await?.is_some() {
                return Ok(());
            }
            self.known.begin_list();
            for message in self.known.end_list() {
                self.send(message).await?;
            }
            self.count();
        }
        self.task.states.stand(self.slot, Standing::Absent, None);
        self.listed().await?;
        self.wait_for_definition().await;
        Ok(())
    }

    /// Waits until the kind may be there: a definition has changed, or some time has passed.
    async fn wait_for_definition(&mut self) {
        let wait = self.absence.next();
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Ok(()) = self.task.definitions.changed() => {
                self.absence = Backoff::new(FIRST_LOOK, LONGEST_ABSENT);
            }
        }
    }
}
