//! Builds the program that is measured, as users get it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use serde_json::Value;

use crate::{process, say};

/// Builds `gatewright` with the release profile and returns the program.
pub(super) fn gatewright() -> anyhow::Result<PathBuf> {
    say("setting up: building gatewright with the release profile");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args([
            "build",
            "--profile",
            "release",
            "--package",
            "gatewright",
            "--bin",
            "gatewright",
        ])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(workspace());
    let messages = process::output(&command)?;
    executable(&messages).context("cargo built no program")
}

/// The program that cargo's messages name.
fn executable(messages: &str) -> Option<PathBuf> {
    let values = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = values.filter_map(|value| {
        let is_ours = value.pointer("/target/name")? == "gatewright";
        value.get("executable")?.as_str().filter(|_| is_ours).map(PathBuf::from)
    });
    programs.next_back()
}

/// The root of the source tree.
pub fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Where cargo puts what it makes.
pub fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), |folder| workspace().join(folder))
}

#[cfg(test)]
mod tests {
    use super::executable;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"other\"},\"executable\":\"/t/other\"}\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"gatewright\"},\"executable\":null}\n",
            "not json\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"gatewright\"},\"executable\":\"/t/gatewright\"}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(executable(messages).unwrap().to_str(), Some("/t/gatewright"));
    }
}
