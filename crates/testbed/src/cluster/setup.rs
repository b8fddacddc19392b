//! Finds the programs of a control plane, and sets up those that are missing; what is set up is said first.
//!
//! They are kept in the user's cache folder, one folder per version, so that only the first start on a machine is slow.
//! Which mirrors they come from is the business of the machine's own settings.

mod etcd;
pub(super) mod gateway_api;
pub(super) mod gatewright;
mod kubernetes;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

use crate::process;

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) etcd: PathBuf,
    pub(super) apiserver: PathBuf,
    pub(super) controller_manager: PathBuf,
    pub(super) kubectl: PathBuf,
}

/// Finds all programs and sets up what is missing.
pub(super) fn programs() -> anyhow::Result<Programs> {
    check_machine()?;
    let cache = cache_folder()?;
    let kubernetes = kubernetes::find(&cache)?;
    Ok(Programs {
        etcd: etcd::find(&cache)?,
        apiserver: kubernetes.join("kube-apiserver"),
        controller_manager: kubernetes.join("kube-controller-manager"),
        kubectl: kubernetes.join("kubectl"),
    })
}

/// What cannot be set up from here must be there: the right to make namespaces, and the tools that do.
fn check_machine() -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "a cluster needs root: it makes network namespaces and mounts\n\nhint: run this as root, on a machine made for tests",
    );
    let needed = [
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("unshare", "util-linux"),
        ("setpriv", "util-linux"),
        ("mount", "mount"),
        ("xargs", "findutils"),
        ("python3", "python3"),
        ("go", "golang"),
    ];
    for (program, package) in needed {
        if !is_in_path(program) {
            bail!("{program} is not installed\n\nhint: install it, for example with `apt-get install {package}`");
        }
    }
    Ok(())
}

fn is_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
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

/// The Go module that pins the version of Kubernetes.
fn go_module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes")
}

fn go(arguments: &[&str]) -> anyhow::Result<String> {
    process::output(Command::new("go").args(arguments).current_dir(go_module()))
}
