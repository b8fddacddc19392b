//! Helm, built from its published Go module once per version and kept in the user's cache folder.
//!
//! `deploy/tools` is the Go module that pins it.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::LazyLock,
};

use super::files::root;

static HELM: LazyLock<PathBuf> = LazyLock::new(find);

/// What Helm says of these arguments.
pub(super) fn helm(arguments: &[&str]) -> Output {
    // Nothing of the user's own settings, repositories and plug-ins.
    let home = tempfile::tempdir().unwrap();
    Command::new(&*HELM)
        .args(arguments)
        .current_dir(root().join("deploy"))
        .env_clear()
        .env("HOME", home.path())
        .output()
        .unwrap()
}

fn find() -> PathBuf {
    let version = version();
    let folder = cache().join(format!("helm-{version}"));
    let program = folder.join("helm");
    if program.is_file() {
        return program;
    }
    say(&format!(
        "setting up: Helm {version}, built into {} (once, some minutes)",
        folder.display()
    ));
    fs::create_dir_all(&folder).unwrap();
    // Whoever builds at the same time puts the same program there.
    let part = folder.join(format!("helm.{}.part", std::process::id()));
    let flags = format!("-s -w -X helm.sh/helm/v4/internal/version.version=v{version}");
    let status = Command::new("go")
        .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
        .arg(&part)
        .arg("helm.sh/helm/v4/cmd/helm")
        .env("CGO_ENABLED", "0")
        .current_dir(root().join("deploy/tools"))
        .status()
        .unwrap_or_else(|error| panic!("Helm is built with Go, which cannot be started: {error}"));
    assert!(status.success(), "go could not build Helm: {status}");
    fs::rename(&part, &program).unwrap();
    program
}

fn version() -> String {
    let module = fs::read_to_string(root().join("deploy/tools/go.mod")).unwrap();
    let pinned = |line: &str| Some(line.strip_prefix("require helm.sh/helm/v4 v")?.trim().to_owned());
    module.lines().find_map(pinned).unwrap()
}

fn cache() -> PathBuf {
    let of_user = || Path::new(&env::var_os("HOME").unwrap()).join(".cache");
    let folder = env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    folder.map_or_else(of_user, PathBuf::from).join("gatewright")
}

/// To the terminal even while the output of tests is kept back: a build of minutes must not look like a hang.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
