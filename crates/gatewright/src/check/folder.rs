//! Loads a folder, plans it as if it were served, and collects what is wrong.

use std::{collections::HashMap, path::Path};

use gatewright_api::ObjectName;
use gatewright_ir::{Fact, ListenerState};
use gatewright_plan::{PlanSettings, Planner};
use gatewright_source::files::{Change, FileLoader, Timestamp};
use gatewright_world::World;
use std::net::SocketAddr;

use crate::{
    app::folder_failure,
    board::Board,
    diagnose,
    failure::Failure,
    finding::{Finding, Place},
};

/// What was found in a folder.
pub(super) struct Report {
    pub(super) findings: Vec<Finding>,
    pub(super) files: usize,
    pub(super) objects: usize,
    /// `apiVersion` and `kind` of what is not read.
    pub(super) passed_over: Vec<String>,
}

impl Report {
    pub(super) fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.is_error()).count()
    }

    pub(super) fn warnings(&self) -> usize {
        self.findings.len() - self.errors()
    }
}

/// Checks a folder.
pub(super) fn check(directory: &Path, settings: PlanSettings) -> Result<Report, Failure> {
    let mut loader = FileLoader::new(directory, Box::new(Timestamp::now)).map_err(|error| folder_failure(&error))?;
    let batch = loader.scan();
    let mut world = World::default();
    let mut names: HashMap<String, ObjectName> = HashMap::new();
    for change in &batch.changes {
        if let Change::Apply(object) = change {
            names.insert(object.name().to_string(), object.name());
            world.apply(object);
        }
    }
    let mut findings: Vec<Finding> = batch.problems.iter().map(Finding::from).collect();
    for mut finding in plan(&mut world, settings) {
        let name = finding.object.as_ref().and_then(|object| names.get(object));
        let place = name.and_then(|name| loader.place_of(name));
        finding.place = place.map(|place| Place {
            file: place.file.display().to_string(),
            line: place.line,
            column: place.column,
            excerpt: place.excerpt,
        });
        findings.push(finding);
    }
    // By place, so that a file is mended from top to bottom; what has no place comes last.
    findings.sort_by_key(|finding| {
        let place = finding.place.as_ref();
        (
            place.is_none(),
            place.map(|place| (place.file.clone(), place.line, place.column)),
        )
    });
    Ok(Report {
        findings,
        files: batch.files,
        objects: batch.objects,
        passed_over: loader.passed_over().iter().cloned().collect(),
    })
}

/// Plans the world as if every listener had opened, and says what is wrong with it.
fn plan(world: &mut World, settings: PlanSettings) -> Vec<Finding> {
    let controller = settings.controller_name.clone();
    let mut planner = Planner::new(settings);
    let mut board = Board::default();
    let changes = world.take_changes();
    planner.update(world, &changes);
    board.declare(world, &changes);
    for gateway in planner.gateways().values() {
        for listener in &gateway.listeners {
            let addresses = listener
                .addresses
                .iter()
                .map(|address| SocketAddr::new(*address, listener.bind));
            world.observe(Fact::Listener {
                origin: listener.origin.clone(),
                generation: gateway.generation,
                state: ListenerState::Listening(addresses.collect()),
            });
        }
    }
    let changes = world.take_changes();
    planner.update(world, &changes);
    let statuses = planner.statuses().into_iter().map(|(key, status)| (key, Some(status)));
    board.show(statuses.collect(), "");
    diagnose::everything(board.objects(), planner.gateways(), &controller, true)
}
