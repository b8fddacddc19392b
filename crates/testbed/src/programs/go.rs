//! Programs that are built from Go modules, each pinned by a module of this repository.
//!
//! Called for Kubernetes, for the conformance suite and for h2spec. Where a program is kept, and who may build it at the same time,
//! is its caller's business.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, bail};

use crate::process;

/// What is built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// The program of a package.
    Package(&'a str),
    /// The tests of the module's own package, as a program.
    Tests,
}

/// Builds a program in a module. It appears at its place when it is finished, and not before.
pub(crate) fn build(module: &Path, target: Target<'_>, linker_flags: &str, program: &Path) -> anyhow::Result<()> {
    check()?;
    if let Some(folder) = program.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let part = program.with_extension("part");
    let (verb, package): (&[&str], _) = match target {
        Target::Package(package) => (&["build"], package),
        Target::Tests => (&["test", "-c"], "."),
    };
    let mut command = Command::new("go");
    command
        .args(verb)
        .args(["-buildvcs=false", "-trimpath", "-ldflags"])
        .arg(format!("-s -w {linker_flags}"))
        .arg("-o")
        .arg(&part)
        .arg(package)
        .env("CGO_ENABLED", "0")
        .current_dir(module);
    process::output(&command).with_context(|| format!("go could not build {}", program.display()))?;
    fs::rename(&part, program).with_context(|| format!("cannot write {}", program.display()))
}

/// The packages of most systems are too old to be installed from here: Kubernetes asks for a recent Go.
pub(crate) fn check() -> anyhow::Result<()> {
    if super::find("go").is_none() {
        bail!(
            "Go is not installed\n\nhint: install it from https://go.dev/dl; from version 1.21 on it gets a newer one itself"
        );
    }
    Ok(())
}
