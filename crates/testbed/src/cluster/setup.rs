//! Finds the programs of a control plane, and sets up those that are missing; what is set up is said first.
//!
//! They are kept in the user's cache folder, one folder per version, so that only the first start on a machine is slow.
//! Which mirrors they come from is the business of the machine's own settings.

mod etcd;
pub(super) mod gateway_api;
pub(super) mod gatewright;
mod kubernetes;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::ensure;

use super::Channel;
use crate::{process, programs, say};

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Programs {
    /// What an API server keeps its objects in.
    pub etcd: PathBuf,
    /// The API server.
    pub apiserver: PathBuf,
    /// The controllers.
    pub controller_manager: PathBuf,
    /// The command line, of the same version.
    pub kubectl: PathBuf,
}

impl Programs {
    /// Finds the programs, and sets up those that are missing, which on a fresh machine takes half an hour.
    ///
    /// Needs no root as long as Python and Go are there; a [`Cluster`](super::Cluster) needs more and calls this itself.
    pub fn set_up() -> anyhow::Result<Self> {
        let cache = programs::cache_folder()?;
        let etcd = etcd::find(&cache)?;
        let kubernetes = kubernetes::find(&cache)?;
        Ok(Self {
            etcd,
            apiserver: kubernetes.join("kube-apiserver"),
            controller_manager: kubernetes.join("kube-controller-manager"),
            kubectl: kubernetes.join("kubectl"),
        })
    }
}

/// Sets up everything that clusters need, so that those that start later find it, and says what there is.
pub fn set_up() -> anyhow::Result<()> {
    prepare_machine()?;
    Programs::set_up()?;
    gateway_api::manifests(Channel::Experimental)?;
    say(format_args!(
        "cached: etcd {} and Kubernetes {} in {}, Gateway API {} among the Go modules",
        etcd::VERSION,
        kubernetes::version()?,
        programs::cache_folder()?.display(),
        gateway_api::VERSION,
    ));
    Ok(())
}

/// Fails with a hint for whoever is not root.
pub(super) fn require_root() -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "a cluster needs root: it makes network namespaces and mounts\n\n\
         hint: run this as root, for example with `sudo --preserve-env=HOME,PATH`; `make test-quick` runs the tests that need none",
    );
    Ok(())
}

/// The right to make namespaces, and the tools that do.
pub(super) fn prepare_machine() -> anyhow::Result<()> {
    require_root()?;
    let needed = [
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("unshare", "util-linux"),
        ("setpriv", "util-linux"),
        ("mount", "mount"),
        ("xargs", "findutils"),
    ];
    for (program, package) in needed {
        programs::package(program, package)?;
    }
    Ok(())
}

/// The Go module that pins the version of Kubernetes.
fn go_module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes")
}

/// Runs Go in the module that pins the versions.
fn go(arguments: &[&str]) -> anyhow::Result<String> {
    programs::go::check()?;
    process::output(Command::new("go").args(arguments).current_dir(go_module()))
}
