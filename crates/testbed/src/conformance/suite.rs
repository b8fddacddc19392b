//! The suite's program: built from its published Go modules once per version and per change of our own part, and run.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    hash::{DefaultHasher, Hasher},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

use super::{
    Choice,
    bed::Bed,
    log::{Log, Outcome, Verdict},
    module,
};
use crate::{
    locks, process,
    programs::{self, go},
    say,
};

/// What pins the version.
const GO_MOD: &str = include_str!("../../../../conformance/go.mod");
/// Longer than any build takes, also by somebody else.
const BUILD: Duration = Duration::from_hours(1);
/// What no cluster of ours has: addresses that are reserved for documents.
const UNUSABLE: &str = "203.0.113.1";

/// The version of the suite, and with it of Gateway API.
pub(super) fn version() -> &'static str {
    let mut lines = GO_MOD.lines();
    let line = lines.find_map(|line| line.trim().strip_prefix("sigs.k8s.io/gateway-api/conformance "));
    line.and_then(|rest| rest.split_whitespace().next())
        .unwrap_or("unknown")
}

/// The program.
pub(super) struct Suite {
    program: PathBuf,
}

/// What a run needs to know.
pub(super) struct Judged<'a> {
    pub(super) bed: &'a Bed,
    pub(super) choice: &'a Choice,
    pub(super) report: Option<&'a Path>,
    /// Where the suite is to write its sums.
    pub(super) sums: &'a Path,
    pub(super) log: &'a Path,
}

impl Suite {
    /// Finds the program, and builds it if it is missing.
    pub(super) fn find() -> anyhow::Result<Self> {
        let cache = programs::cache_folder()?;
        let folder = cache.join(format!("conformance-{}", version()));
        let program = folder.join(format!("{:016x}.test", fingerprint(&module())?));
        let _lock = locks::wait_for_lock(&cache.join("conformance.lock"), BUILD)?;
        if !program.is_file() {
            build(&folder, &program)?;
        }
        Ok(Self { program })
    }

    /// Runs it, and says how each test ends when it does.
    pub(super) fn run(&self, judged: &Judged<'_>) -> anyhow::Result<BTreeMap<String, Outcome>> {
        let mut file = File::create(judged.log).with_context(|| format!("cannot write {}", judged.log.display()))?;
        let mut command = process::tied(&self.command(judged)?, None);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        // What is written there comes from the same test, and belongs into the same file.
        command.stderr(file.try_clone()?);
        let started = Instant::now();
        let mut child = command.spawn().context("cannot start the suite")?;
        let output = child.stdout.take().context("the suite has no output")?;
        let mut log = Log::default();
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            file.write_all(&line)?;
            file.write_all(b"\n")?;
            let ended = log.read(&String::from_utf8_lossy(&line));
            if let Some((name, outcome)) = ended.and_then(|name| log.outcomes.get_key_value(&name)) {
                announce(name, outcome, started);
            }
        }
        let status = child.wait()?;
        if let Some(complaint) = log.setup_complaint {
            bail!("the suite did not run: {complaint}");
        }
        let has_failed = log.outcomes.values().any(|outcome| outcome.verdict == Verdict::Failed);
        ensure!(
            status.success() || has_failed,
            "the suite ended with {status}; see {}",
            judged.log.display()
        );
        Ok(log.outcomes)
    }

    fn command(&self, judged: &Judged<'_>) -> anyhow::Result<Command> {
        let Judged {
            bed,
            choice,
            report,
            sums,
            log: _,
        } = judged;
        let kubectl = bed.cluster().kubectl();
        let mut command = Command::new(&self.program);
        // The same cluster, and no proxy in between.
        for (name, value) in kubectl.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .args(["-test.run=^TestConformance$", "-test.v=test2json", "-test.timeout=3h"])
            // The cluster goes as a whole.
            .arg("--cleanup-base-resources=false")
            .arg(format!("--conformance-profiles={}", choice.profiles))
            .arg(format!("--part={}", choice.part))
            .arg(format!("--sums={}", sums.display()))
            .arg(format!("--usable-address={}", bed.usable_address()?))
            .arg(format!("--unusable-address={UNUSABLE}"));
        if let Some(tests) = &choice.tests {
            command.arg(format!("--only={tests}"));
        }
        if let Some(report) = report {
            command
                .arg(format!("--report-output={}", report.display()))
                .args(["--organization=gatewright", "--project=gatewright"])
                .args(["--url=https://gatewright.dev", "--contact=https://gatewright.dev"])
                .arg(format!("--version={}", env!("CARGO_PKG_VERSION")))
                .arg("--mode=default");
        }
        Ok(command)
    }
}

fn announce(name: &str, outcome: &Outcome, started: Instant) {
    let word = match outcome.verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "FAILED",
        Verdict::Skipped => "skipped",
    };
    say(format_args!(
        "{:>5.0} s  {word:<7}  {name} ({:.1} s)",
        started.elapsed().as_secs_f64(),
        outcome.time.as_secs_f64()
    ));
}

/// Differs whenever the program would.
fn fingerprint(module: &Path) -> anyhow::Result<u64> {
    let entries = fs::read_dir(module).with_context(|| format!("cannot read {}", module.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is_source = |path: &Path| {
        path.extension()
            .is_some_and(|kind| ["go", "mod", "sum"].iter().any(|name| kind == *name))
    };
    files.retain(|path| is_source(path));
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.file_name().unwrap_or_default().as_encoded_bytes());
        hasher.write(&fs::read(&file)?);
    }
    Ok(hasher.finish())
}

fn build(folder: &Path, program: &Path) -> anyhow::Result<()> {
    go::check()?;
    say(format_args!(
        "setting up: building the conformance suite {} into {} (the first time, some minutes)",
        version(),
        folder.display()
    ));
    // Earlier builds of the same version would never be used again.
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    go::build(&module(), go::Target::Tests, "", program).context("the conformance suite could not be built")
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_suite_is_of_the_version_that_clusters_have() {
        assert_eq!(version(), crate::cluster::GATEWAY_API_VERSION);
    }
}
