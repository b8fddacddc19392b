//! The conformance suite of Gateway API, run against Gatewright in a cluster of the testbed.
//!
//! The binary `conformance`, behind `make conformance`, calls [`run`]. The suite is the published one: `conformance/` of this
//! repository is the Go module that builds it. Its backends are our own echo program, as everywhere in the testbed.
//! `docs/conformance.md` says how to use it and what is judged.

mod bed;
mod claims;
mod log;
mod suite;
mod summary;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use anyhow::{Context, ensure};

use self::{
    bed::Bed,
    log::Outcome,
    suite::{Judged, Suite},
};
use crate::{
    programs::{target_folder, workspace},
    say,
};

pub use bed::DataPlane;
pub use summary::Summary;

/// What is judged unless something else is asked for: what the report in the repository is about.
pub const PROFILES: &str = "GATEWAY-HTTP,GATEWAY-GRPC";

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

    /// Where the report goes: into the repository if it is about everything that is claimed.
    fn report(&self, folder: &Path) -> Option<PathBuf> {
        if !self.is_whole() {
            return None;
        }
        let name = format!("gateway-api-{}-{}.yaml", suite::version(), self.data_plane.name());
        let folder = if self.profiles == PROFILES {
            module().join("reports")
        } else {
            folder.to_owned()
        };
        Some(folder.join(name))
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
    let judged = judge(&suite, &bed, choice, &folder, &sums);
    let time = started.elapsed();
    let kept = bed.keep_logs(&folder);
    bed.stop()?;
    let outcomes = judged?;
    kept?;
    ensure!(!outcomes.is_empty(), "no test was run");
    Ok(Summary {
        profiles: summary::read(&sums)?,
        outcomes,
        time,
        report: choice.report(&folder),
        folder,
    })
}

fn judge(
    suite: &Suite,
    bed: &Bed,
    choice: &Choice,
    folder: &Path,
    sums: &Path,
) -> anyhow::Result<BTreeMap<String, Outcome>> {
    let claimed = bed.claimed_features()?;
    let features = if claimed.is_empty() {
        Some(claims::read(&module())?)
    } else {
        say(format_args!("the GatewayClass claims {} features", claimed.len()));
        None
    };
    suite.run(&Judged {
        bed,
        choice,
        features: features.as_deref(),
        report: choice.report(folder).as_deref(),
        sums,
        log: &folder.join("suite.log"),
    })
}

/// The Go module.
fn module() -> PathBuf {
    workspace().join("conformance")
}
