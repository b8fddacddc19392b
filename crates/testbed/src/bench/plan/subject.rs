//! A world with its plan, whose objects can be changed one at a time.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::ensure;
use gatewright_api::Object;
use gatewright_ir::{Gateway, Origin};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_world::{ChangeSet, World};
use imbl::OrdMap;

use crate::worlds::{self, Layout};

/// Successive changes go to objects far apart, so that none is found in the processor's caches because its neighbour was
/// just touched. A prime, so that every object of a world of round size has its turn.
const STRIDE: usize = 7_919;

/// A planned world.
#[derive(Debug)]
pub struct Subject {
    world: World,
    planner: Planner,
    layout: Layout,
    routes: usize,
    changes: usize,
}

/// A world that has just been built.
#[derive(Debug)]
pub struct Loaded {
    /// The world and its plan.
    pub subject: Subject,
    /// How long it took to take in all objects, without planning.
    pub load: Duration,
    /// Everything, as a set of changes: what a first plan starts from.
    pub all: ChangeSet,
}

impl Subject {
    /// Builds and plans a world of so many routes on a listener with this port.
    pub fn load(layout: Layout, routes: usize, port: u16) -> Loaded {
        let mut world = World::default();
        let mut load = Duration::ZERO;
        let mut take = |objects: &[Object]| {
            let started = Instant::now();
            for object in objects {
                world.apply(object);
            }
            load += started.elapsed();
        };
        take(&worlds::frame(port));
        for index in 0..routes {
            take(&worlds::application(layout, index, 0));
        }
        let all = world.take_changes();
        let mut planner = Planner::new(settings());
        drop(planner.update(&world, &all));
        let subject = Self {
            world,
            planner,
            layout,
            routes,
            changes: 0,
        };
        Loaded { subject, load, all }
    }

    /// What is planned now.
    pub fn gateways(&self) -> OrdMap<Origin, Arc<Gateway>> {
        self.planner.gateways().clone()
    }

    /// Plans everything anew, beside the plan that is kept, and tells how long it took.
    pub fn plan_from_scratch(&self, all: &ChangeSet) -> anyhow::Result<Duration> {
        let mut planner = Planner::new(settings());
        let started = Instant::now();
        let delta = planner.update(&self.world, all);
        let time = started.elapsed();
        ensure!(delta.statuses.len() >= self.routes, "not every route was planned");
        Ok(time)
    }

    /// Declares another version of a route; tells how long it took until it was planned.
    pub fn change_route(&mut self) -> anyhow::Result<Duration> {
        let (index, version) = self.next();
        let object = worlds::route(self.layout, index, version);
        self.change(&object)
    }

    /// Moves the endpoints of a Service; tells how long it took until that was planned.
    pub fn change_endpoints(&mut self) -> anyhow::Result<Duration> {
        let (index, version) = self.next();
        let object = worlds::moved_endpoints(index, version);
        self.change(&object)
    }

    fn change(&mut self, object: &Object) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.world.apply(object);
        let changes = self.world.take_changes();
        let delta = self.planner.update(&self.world, &changes);
        let time = started.elapsed();
        ensure!(
            delta.gateways_changed,
            "{} changed, and its Gateway did not",
            object.name()
        );
        Ok(time)
    }

    /// What to change next: an object, and its version, which it did not have before.
    fn next(&mut self) -> (usize, usize) {
        self.changes += 1;
        (self.changes * STRIDE % self.routes, self.changes)
    }
}

/// Everything stays on this machine.
fn settings() -> PlanSettings {
    PlanSettings {
        host_addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        ..PlanSettings::default()
    }
}
