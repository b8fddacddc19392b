//! The program, from its Python package, installed once per version.

use std::{path::PathBuf, time::Duration};

use anyhow::ensure;

use crate::{
    locks,
    programs::{self, python},
    say,
};

/// Its copy of Mozilla's configurations is of version 5.7.
const VERSION: &str = "6.3.1";

/// Finds the program, and installs it if it is missing.
pub(super) fn find() -> anyhow::Result<PathBuf> {
    let cache = programs::cache_folder()?;
    let folder = cache.join(format!("sslyze-{VERSION}"));
    // What the package needs is installed before it, and its own program last.
    let program = folder.join("bin/sslyze");
    let _lock = locks::wait_for_lock(&cache.join("sslyze.lock"), Duration::from_mins(10))?;
    if !program.is_file() {
        say(format_args!(
            "setting up: installing sslyze {VERSION} from PyPI into {}",
            folder.display()
        ));
        python::install(&folder, "sslyze", VERSION)?;
        ensure!(program.is_file(), "the package sslyze {VERSION} brought no sslyze");
    }
    Ok(program)
}
