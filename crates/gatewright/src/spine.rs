//! The spine: the one task that owns the world and the planner.
//!
//! What the folder says and what the proxy observed come in; plans go to the proxy, statuses to the board, and a view of it
//! all to whoever reads. Everything that waits is taken in before planning, so changes coalesce while it is busy, and only
//! then. Nothing is planned, served or published before the folder has been read once.

mod report;

use std::{path::PathBuf, sync::Arc, time::Instant};

use futures::FutureExt;
use gatewright_ir::Fact;
use gatewright_plan::{PlanSettings, Planner};
use gatewright_proxy::Proxy;
use gatewright_source::files::{Batch, Change, Watch};
use gatewright_world::World;
use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::{
    board::{Board, Statuses},
    readiness::Readiness,
    view::{Folder, SharedView, View},
};

/// Facts that follow from a plan are planned in before anything is shown; so many times, for they settle at once.
const MOST_ROUNDS: usize = 4;

/// The owner of world and planner.
pub(crate) struct Spine {
    world: World,
    planner: Planner,
    proxy: Arc<Proxy>,
    board: Board,
    view: View,
    shared: SharedView,
    readiness: Readiness,
    has_loaded: bool,
}

impl Spine {
    pub(crate) fn new(
        settings: PlanSettings,
        proxy: Arc<Proxy>,
        directory: PathBuf,
        shared: SharedView,
        readiness: Readiness,
    ) -> Self {
        let files = Folder {
            directory,
            ..Folder::default()
        };
        Self {
            world: World::default(),
            planner: Planner::new(settings),
            proxy,
            board: Board::default(),
            view: View {
                files,
                ..View::default()
            },
            shared,
            readiness,
            has_loaded: false,
        }
    }

    /// Runs until stopped.
    pub(crate) async fn run(mut self, mut watch: Watch, mut facts: UnboundedReceiver<Fact>, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                Some(fact) = facts.recv() => self.observe(fact),
                Some(batch) = watch.next() => self.take(batch),
                // Neither the proxy nor the folder can say anything any more.
                else => return,
            }
            while let Some(Some(batch)) = watch.next().now_or_never() {
                self.take(batch);
            }
            self.observe_all(&mut facts);
            if self.has_loaded {
                self.turn(&mut facts).await;
            }
        }
    }

    /// Takes in what the folder says.
    fn take(&mut self, batch: Batch) {
        let Batch {
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
            match change {
                Change::Apply(object) => self.world.apply(&object),
                Change::Delete(name) => self.world.delete(&name),
                Change::Invalid { name, salvaged, .. } => match salvaged {
                    Some(object) => self.world.apply(&object),
                    None => self.world.delete(&name),
                },
            }
        }
        let known = &mut self.view.files;
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
        let mut statuses = Statuses::new();
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
        let fresh = self.board.show(statuses, &format!("{:.0}", Timestamp::now()));
        report::conditions(&fresh);
        self.publish(is_first);
    }

    fn publish(&mut self, is_first: bool) {
        self.view.objects.clone_from(self.board.objects());
        self.view.gateways.clone_from(self.planner.gateways());
        self.view.counts = self.world.counts().to_vec();
        self.shared.store(Arc::new(self.view.clone()));
        if is_first {
            report::loaded(&self.view);
        }
        match report::unready(&self.world, &self.view) {
            None => self.readiness.ready(),
            Some(reason) => self.readiness.starting(reason),
        }
    }
}
