//! A program of the control plane: started, watched, ended.
//!
//! What it prints goes to a file in the cluster's folder, and into the error when it ends before its time. It is started
//! from the thread that lives in the cluster's namespace, and so lives there too.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How much of what a program printed goes into an error.
const LINES: usize = 20;

/// A running program.
#[derive(Debug)]
pub(super) struct Daemon {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts it, with an environment of its own.
    pub(super) fn start(name: &'static str, program: &Path, flags: &[String], folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let log = folder.join(format!("{name}.log"));
        let output = OpenOptions::new().create(true).append(true).open(&log)?;
        let mut command = Command::new(program);
        // Of the machine's environment only what finds programs: a proxy for the Internet must not be asked for pods.
        command
            .args(flags)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .current_dir("/");
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { name, child, log })
    }

    /// Fails if it has ended, with the last it said.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("{} ended ({status}):\n{}", self.name, self.last_words());
        }
        Ok(())
    }

    /// The end of what it printed.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines
            .get(lines.len().saturating_sub(LINES)..)
            .unwrap_or_default()
            .join("\n")
    }

    /// Sends it a signal.
    pub(super) fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        // A child that nobody has waited for keeps its id.
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)
            .context("no process id")?;
        kill_process(pid, signal).with_context(|| format!("cannot send a signal to {}", self.name))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Either fails only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
