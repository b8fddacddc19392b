//! Our own program, as it is now.

use std::{env, path::PathBuf, process::Command};

use anyhow::{Context, ensure};

use crate::{
    process,
    programs::{target_folder, workspace},
    say,
};

/// Names a program that is to be used instead of building one.
const VARIABLE: &str = "GATEWRIGHT_PROGRAM";

/// Builds `gatewright` as developers do, which is quick if little has changed, and returns the program.
pub fn build_gatewright() -> anyhow::Result<PathBuf> {
    if let Some(program) = env::var_os(VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
    {
        ensure!(
            program.is_file(),
            "{VARIABLE} names {}, which is no program",
            program.display()
        );
        return Ok(program);
    }
    say("setting up: building gatewright");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "gatewright",
            "--bin",
            "gatewright",
        ])
        .current_dir(workspace());
    process::output(&command).context("gatewright could not be built")?;
    let program = target_folder().join("debug/gatewright");
    ensure!(program.is_file(), "cargo made no {}", program.display());
    Ok(program)
}
