//! The program, built from its published Go module once per version.
//!
//! The module's own go.mod forbids its tags of version 2, so a commit pins it: the one of v2.6.0.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;

use crate::{
    locks,
    programs::{self, go, workspace},
    say,
};

/// What pins the version.
const GO_MOD: &str = include_str!("../../../../conformance/h2spec/go.mod");
const PACKAGE: &str = "github.com/summerwind/h2spec";
/// Longer than the build takes, also by somebody else.
const BUILD: Duration = Duration::from_mins(30);

/// Finds the program, and builds it if it is missing.
pub(super) fn find() -> anyhow::Result<PathBuf> {
    let version = version().context("go.mod names no version of h2spec")?;
    let cache = programs::cache_folder()?;
    let program = cache.join(format!("h2spec-{version}")).join("h2spec");
    let _lock = locks::wait_for_lock(&cache.join("h2spec.lock"), BUILD)?;
    if !program.is_file() {
        say(format_args!(
            "setting up: building h2spec {version} into {}",
            program.display()
        ));
        let package = format!("{PACKAGE}/cmd/h2spec");
        go::build(
            &workspace().join("conformance/h2spec"),
            go::Target::Package(&package),
            "",
            &program,
        )?;
    }
    Ok(program)
}

fn version() -> Option<&'static str> {
    let mut lines = GO_MOD.lines();
    let rest = lines.find_map(|line| line.trim().trim_start_matches("require ").strip_prefix(PACKAGE))?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_module_pins_a_version() {
        let version = version().unwrap();
        assert!(version.starts_with('v') && version.len() > 2, "{version}");
    }
}
