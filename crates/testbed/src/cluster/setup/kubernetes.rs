//! The programs of Kubernetes, built from its published Go modules once per version.
//!
//! `crates/testbed/kubernetes` is the Go module that pins them. Building takes about twenty minutes on two processors.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;

use crate::{locks, programs::go, say};

const PROGRAMS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kubectl"];

/// What pins the version.
const GO_MOD: &str = include_str!("../../../kubernetes/go.mod");

/// Longer than any build takes, also by somebody else.
const BUILD: Duration = Duration::from_hours(2);

/// The folder with the programs.
pub(super) fn find(cache: &Path) -> anyhow::Result<PathBuf> {
    let version = version()?;
    let folder = cache.join(format!("kubernetes-{version}"));
    if PROGRAMS.iter().all(|program| folder.join(program).is_file()) {
        return Ok(folder);
    }
    go::check()?;
    say(format_args!(
        "setting up: Kubernetes {version}, built into {} (once, about twenty minutes on two processors)",
        folder.display()
    ));
    let _lock = locks::wait_for_lock(&cache.join(format!("kubernetes-{version}.lock")), BUILD)?;
    for program in PROGRAMS {
        if !folder.join(program).is_file() {
            build(program, version, &folder)?;
        }
    }
    Ok(folder)
}

fn build(program: &str, version: &str, folder: &Path) -> anyhow::Result<()> {
    say(format_args!("setting up: building {program} {version}"));
    let started = Instant::now();
    let package = format!("k8s.io/kubernetes/cmd/{program}");
    go::build(
        &super::go_module(),
        go::Target::Package(&package),
        &linker_flags(version),
        &folder.join(program),
    )?;
    say(format_args!(
        "setting up: built {program} in {} s",
        started.elapsed().as_secs()
    ));
    Ok(())
}

/// Without these the programs would say that they are of no version, and the API server would refuse to serve.
fn linker_flags(version: &str) -> String {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let base = "k8s.io/component-base/version";
    format!(
        "-X {base}.gitVersion=v{version} -X k8s.io/client-go/pkg/version.gitVersion=v{version} \
         -X {base}.gitMajor={major} -X {base}.gitMinor={minor}"
    )
}

/// The version of the programs.
pub(super) fn version() -> anyhow::Result<&'static str> {
    version_in(GO_MOD).context("go.mod names no version of Kubernetes")
}

/// The version that a go.mod requires.
fn version_in(go_mod: &str) -> Option<&str> {
    go_mod
        .lines()
        .find_map(|line| line.trim().strip_prefix("require k8s.io/kubernetes v").map(str::trim))
}

#[cfg(test)]
mod tests {
    use super::{linker_flags, version};

    #[test]
    fn the_module_pins_a_version() {
        let version = version().unwrap();
        assert_eq!(version.split('.').count(), 3, "{version}");
    }

    #[test]
    fn programs_are_told_their_version() {
        let flags = linker_flags("1.36.3");
        assert!(flags.contains("version.gitVersion=v1.36.3 "), "{flags}");
        assert!(flags.ends_with("version.gitMinor=36"), "{flags}");
    }
}
