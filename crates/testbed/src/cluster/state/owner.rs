//! The process that a cluster belongs to, told apart from a later process with the same id.
//!
//! An id alone says little: the system gives it out again. Together with the time at which the process started it names one
//! process for as long as the machine is up.

use std::{fs, path::Path, str::FromStr};

use anyhow::{Context, bail};
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

const FILE: &str = "owner";

/// What kind of process owns a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerKind {
    /// A process whose only work is the cluster, and which may be asked to end.
    Service,
    /// A program that uses a cluster, such as a test.
    Program,
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its id.
    pub pid: u32,
    /// What it is.
    pub kind: OwnerKind,
    /// In the kernel's ticks since the machine started.
    started: u64,
}

impl Owner {
    pub(super) fn this_process(kind: OwnerKind) -> anyhow::Result<Self> {
        let pid = std::process::id();
        let started = started(pid).context("cannot read when this process started")?;
        Ok(Self { pid, kind, started })
    }

    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let kind = match self.kind {
            OwnerKind::Service => "service",
            OwnerKind::Program => "program",
        };
        fs::write(folder.join(FILE), format!("{} {} {kind}\n", self.pid, self.started))?;
        Ok(())
    }

    /// What a folder says about its owner.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        fs::read_to_string(folder.join(FILE)).ok()?.parse().ok()
    }

    /// The owner of a cluster, if its folder names one.
    pub fn of(name: &str) -> Option<Self> {
        Self::read(&super::folder_of(name))
    }

    /// Whether this very process is still there.
    pub fn is_alive(&self) -> bool {
        started(self.pid) == Some(self.started)
    }

    /// Sends a signal to this very process, and to no other that has its id now. Returns whether it was there.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<bool> {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(Pid::from_raw)
            .context("the owner's id is no process id")?;
        let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(Errno::SRCH) => return Ok(false),
            Err(error) => return Err(error).context("cannot open the process"),
        };
        // The descriptor stands for one process; the id is looked at only while it does.
        if !self.is_alive() {
            return Ok(false);
        }
        match pidfd_send_signal(descriptor, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(error) => Err(error).context("cannot send a signal"),
        }
    }
}

impl FromStr for Owner {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut words = text.split_whitespace();
        let mut next = || words.next().context("the file of the owner is cut short");
        let pid = next()?.parse()?;
        let started = next()?.parse()?;
        let kind = match next()? {
            "service" => OwnerKind::Service,
            "program" => OwnerKind::Program,
            other => bail!("{other} is no kind of owner"),
        };
        Ok(Self { pid, kind, started })
    }
}

/// When a living process started.
fn started(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; what follows it does not.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    // A zombie has ended; nobody has looked yet.
    let is_zombie = fields.next()? == "Z";
    fields.nth(18)?.parse().ok().filter(|_| !is_zombie)
}

#[cfg(test)]
mod tests {
    use super::{Owner, OwnerKind};

    #[test]
    fn this_process_is_alive_and_one_with_its_id_and_another_start_is_not() {
        let owner = Owner::this_process(OwnerKind::Program).unwrap();
        assert!(owner.is_alive());
        let recycled = Owner {
            started: owner.started + 1,
            ..owner
        };
        assert!(!recycled.is_alive());
        assert!(
            !recycled.signal(rustix::process::Signal::KILL).unwrap(),
            "this test would be dead"
        );
    }

    #[test]
    fn an_owner_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::this_process(OwnerKind::Service).unwrap();
        owner.write(folder.path()).unwrap();
        assert_eq!(Owner::read(folder.path()), Some(owner));
    }
}
