//! The spine: the one task that owns the world and the planner.
//!
//! What the source says and what the proxy observed come in; plans go to the proxy, statuses to the board and to the
//! cluster, and a view of it all to whoever reads. Everything that waits is taken in before planning, so changes coalesce
//! while it is busy, and only then. Nothing is planned, served or published before the source has been read once.

mod feed;
mod report;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gatewright_ir::Fact;
use gatewright_plan::{PlanSettings, Planner};
use gatewright_proxy::Proxy;
use gatewright_source::{Change, files};
use gatewright_world::World;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::document::ReplicaSummary,
    board::{Board, Statuses},
    cluster::{Leave, News, Wishes},
    readiness::Readiness,
    view::{Folder, SharedView, View},
};
pub(crate) use feed::Feed;
use feed::Input;

/// Facts that follow from a plan are planned in before anything is shown; so many times, for they settle at once.
const MOST_ROUNDS: usize = 4;

/// How long the world goes without being told the time.
const LONGEST_HOUR: Duration = Duration::from_hours(1);

/// The owner of world and planner.
pub(crate) struct Spine {
    world: World,
    settings: PlanSettings,
    planner: Planner,
    proxy: Arc<Proxy>,
    feed: Feed,
    board: Board,
    view: View,
    shared: SharedView,
    readiness: Readiness,
    has_loaded: bool,
}

/// When the spine changes course.
pub(crate) struct Course {
    pub(crate) leave: Leave,
    pub(crate) stop: CancellationToken,
}

impl Spine {
    /// A spine that has read nothing yet; `folder` where its objects come from one.
    pub(crate) fn new(
        settings: PlanSettings,
        proxy: Arc<Proxy>,
        mut feed: Feed,
        folder: Option<Folder>,
        shared: SharedView,
        readiness: Readiness,
    ) -> Self {
        Self {
            world: feed.link().map_or_else(World::default, |link| link.world()),
            planner: Planner::new(settings.clone()),
            settings,
            proxy,
            feed,
            board: Board::default(),
            view: View {
                files: folder,
                ..View::default()
            },
            shared,
            readiness,
            has_loaded: false,
        }
    }

    /// Runs until stopped.
    pub(crate) async fn run(mut self, mut facts: UnboundedReceiver<Fact>, course: Course) {
        let Course { leave, stop } = course;
        loop {
            let boundary = self.tell_time();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = leave.asked.cancelled(), if !leave.told.is_cancelled() => self.world.set_leaving(),
                Some(fact) = facts.recv() => self.observe(fact),
                Some(input) = self.feed.next() => self.take(input),
                // A certificate begins or ceases to be valid.
                () = tokio::time::sleep(boundary) => {}
            }
            while let Some(input) = self.feed.waiting() {
                self.take(input);
            }
            self.observe_all(&mut facts);
            if self.has_loaded {
                self.turn(&mut facts).await;
            }
            if leave.asked.is_cancelled() {
                leave.told.cancel();
            }
        }
        if let Feed::Cluster(link) = self.feed {
            link.close().await;
        }
    }

    /// Tells the world what time it is, and says how long that answer will do.
    fn tell_time(&mut self) -> Duration {
        let now = Timestamp::now();
        let boundary = self.world.set_time(now.as_second());
        let left = boundary.map(|at| u64::try_from(at.saturating_sub(now.as_second())).unwrap_or(0));
        // Clocks are set, so it is asked now and then in any case.
        Duration::from_secs(left.unwrap_or(u64::MAX)).min(LONGEST_HOUR)
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Folder(batch) => self.take_files(batch),
            Input::Cluster(news) => {
                if let News::Secret(Some(key)) = &news {
                    self.settings.session_key = key.clone();
                    // It comes before the first plan, so that nothing is forgotten.
                    self.planner = Planner::new(self.settings.clone());
                }
                if let Some(link) = self.feed.link() {
                    self.has_loaded |= link.take(news, &mut self.world);
                }
            }
        }
    }

    /// Takes in what the folder says.
    fn take_files(&mut self, batch: files::Batch) {
        let files::Batch {
            changes,
            problems,
            problems_changed,
            is_first: _,
            files,
            objects,
        } = batch;
        if self.has_loaded && !changes.is_empty() {
            tracing::info!(changes = changes.len(), "files changed");
        }
        self.has_loaded = true;
        for change in changes {
            apply(&mut self.world, change);
        }
        let known = self.view.files.get_or_insert_default();
        if problems_changed {
            known.errors += report::problems(&known.problems, &problems);
        }
        known.files = files;
        known.objects = objects;
        known.problems = problems;
        known.reloads += 1;
    }

    fn observe(&mut self, fact: Fact) {
        report::fact(&self.world, &fact);
        self.world.observe(fact);
    }

    fn observe_all(&mut self, facts: &mut UnboundedReceiver<Fact>) {
        while let Ok(fact) = facts.try_recv() {
            self.observe(fact);
        }
    }

    /// Plans what changed, serves it and shows it.
    async fn turn(&mut self, facts: &mut UnboundedReceiver<Fact>) {
        let is_first = self.view.revision == 0;
        let revision = self.view.revision;
        let mut statuses = Statuses::new();
        let mut wishes = Wishes {
            has_replica_news: is_first,
            ..Wishes::default()
        };
        for round in 0..MOST_ROUNDS {
            let changes = self.world.take_changes();
            if changes.is_empty() && !(is_first && round == 0) {
                break;
            }
            let started = Instant::now();
            let delta = self.planner.update(&self.world, &changes);
            let took = started.elapsed();
            self.view.plan_times.count(took);
            self.view.revision += 1;
            self.board.declare(&self.world, &changes);
            statuses.extend(delta.statuses);
            wishes.has_replica_news |= !changes.facts.is_empty() || !changes.replicas.is_empty();
            wishes.owned.extend(delta.owned);
            wishes.classes_in_use.extend(delta.classes_in_use);
            tracing::debug!(
                revision = self.view.revision,
                ?took,
                gateways_changed = delta.gateways_changed,
                "planned"
            );
            if delta.gateways_changed {
                self.proxy.apply(self.planner.gateways().clone()).await;
            }
            self.observe_all(facts);
        }
        if let Some(link) = self.feed.link() {
            if wishes.has_replica_news {
                self.view.replicas = self.world.replicas().map(ReplicaSummary::from).collect();
            }
            link.tell(&statuses, wishes, &self.world);
        }
        // A folder that was read again without a difference may still have other problems than before.
        if revision == self.view.revision && self.feed.link().is_some() {
            return;
        }
        let fresh = self.board.show(statuses, &format!("{:.0}", Timestamp::now()));
        report::conditions(&fresh);
        self.publish(is_first);
    }

    fn publish(&mut self, is_first: bool) {
        self.view.objects.clone_from(self.board.objects());
        self.view.gateways.clone_from(self.planner.gateways());
        self.view.counts = self.world.counts();
        self.shared.store(Arc::new(self.view.clone()));
        if is_first {
            report::loaded(&self.view);
        }
        // Looks at every listener, so only as long as the answer counts.
        if self.readiness.is_starting() {
            match report::unready(&self.world, &self.view) {
                None => self.readiness.ready(),
                Some(reason) => self.readiness.starting(reason),
            }
        }
    }
}

/// Takes a change into the world.
pub(crate) fn apply(world: &mut World, change: Change) {
    match change {
        Change::Apply(object) => world.apply(&object),
        Change::Delete(name) => world.delete(&name),
        Change::Invalid { name, salvaged, error } => world.apply_invalid(&name, salvaged.as_deref(), &error),
    }
}
