//! The conformance suite of Gateway API, run against Gatewright in a cluster of the testbed.
//!
//! The binary `conformance`, behind `make conformance`, calls [`run`]. The suite is the published one: `conformance/` of this
//! repository is the Go module that builds it. Its backends are our own echo program, as everywhere in the testbed.
//! `docs/conformance.md` says how to use it and what is judged.

mod bed;
mod log;
mod report;
mod suite;
mod summary;
mod whole;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, ensure};

use self::{
    bed::Bed,
    suite::{Judged, Suite},
};
use crate::programs::{target_folder, workspace};

pub use bed::DataPlane;
pub use summary::Summary;

/// What is judged unless something else is asked for: what the report in the repository is about.
pub const PROFILES: &str = "GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS,GATEWAY-TCP,GATEWAY-UDP";

/// What to run.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Which profiles, separated by commas.
    pub profiles: String,
    /// Only these tests, separated by commas; then there is no report.
    pub tests: Option<String>,
    /// One part of several, as in `2/3`; unless it is the whole, there is no report.
    pub part: String,
    /// What serves the Gateways.
    pub data_plane: DataPlane,
}

impl Choice {
    /// Whether the outcome may stand in the repository.
    fn is_whole(&self) -> bool {
        self.tests.is_none() && self.part == "1/1"
    }

    /// What the report's file is called.
    fn report_name(&self) -> String {
        format!("gateway-api-{}-{}.yaml", suite::version(), self.data_plane.name())
    }
}

/// Runs tests of the suite in a cluster made for them, and returns what came of it.
pub fn run(choice: &Choice, gatewright: &Path) -> anyhow::Result<Summary> {
    let suite = Suite::find()?;
    let folder = target_folder().join("conformance");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let sums = folder.join("sums.json");
    // Nobody may take an earlier run's for this one's.
    let _ = fs::remove_file(&sums);
    let bed = Bed::start(gatewright, choice.data_plane)?;
    let started = Instant::now();
    let report = folder.join(choice.report_name());
    let judged = suite.run(&Judged {
        bed: &bed,
        choice,
        report: choice.is_whole().then_some(report.as_path()),
        sums: &sums,
        log: &folder.join("suite.log"),
    });
    let time = started.elapsed();
    let kept = bed.keep_logs(&folder);
    bed.stop()?;
    let outcomes = judged?;
    kept?;
    ensure!(!outcomes.is_empty(), "no test was run");
    let mut summary = Summary {
        profiles: summary::read(&sums)?,
        outcomes,
        shortfalls: Vec::new(),
        time,
        report: None,
        folder,
    };
    if choice.is_whole() {
        if choice.profiles == PROFILES {
            summary.shortfalls = whole::shortfalls(&summary.profiles);
        }
        summary.report = Some(if choice.profiles == PROFILES && summary.is_success() {
            report::publish(&report, &module().join("reports").join(choice.report_name()))?
        } else {
            report.display().to_string()
        });
    }
    Ok(summary)
}

/// The Go module.
fn module() -> PathBuf {
    workspace().join("conformance")
}
