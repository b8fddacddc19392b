//! Starting programs and ending them, whatever happens.
//!
//! A program is started to die with the thread that started it: the kernel kills it when this process ends, be it by a
//! signal or by a panic. It can be pinned to one processor. Both are done by the system's own small tools, so that no
//! unsafe code is needed.

pub mod usage;

use std::{
    fs::File,
    io::Read,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

/// How often a condition is looked at while waiting for it.
const PAUSE: Duration = Duration::from_millis(5);

/// Building from nothing on a busy machine takes longest of all.
const LONGEST: Duration = Duration::from_hours(1);

/// A program that runs until this value is dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Running {
    /// Starts a command on a processor (any, if none is given), with what it prints going to a file in `folder`.
    ///
    /// The thread that calls this must outlive the program.
    pub fn start(name: &str, command: &Command, core: Option<usize>, folder: &Path) -> anyhow::Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = tied(command, core);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
        })
    }

    /// The process. The tools in front of the program have become it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a condition holds; fails when the program ends before, or the time is up, with what it printed.
    pub fn wait_until(
        &mut self,
        what: &str,
        deadline: Duration,
        mut holds: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let started = Instant::now();
        while !holds() {
            let said = || std::fs::read_to_string(&self.log).unwrap_or_default();
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended ({status}) before {what}:\n{}", self.name, said());
            }
            if started.elapsed() > deadline {
                bail!("{}: {what} did not come within {deadline:?}:\n{}", self.name, said());
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Either fails only if the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command to its end and returns what it printed; fails if it fails.
pub fn output(command: &Command) -> anyhow::Result<String> {
    finish(tied(command, None), LONGEST)
}

/// Runs a command on a processor to its end, which must come in time, and returns what it printed.
pub fn output_on(core: usize, command: &Command, deadline: Duration) -> anyhow::Result<String> {
    finish(tied(command, Some(core)), deadline)
}

fn finish(mut command: Command, deadline: Duration) -> anyhow::Result<String> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    // Read while it runs: a program that prints more than a pipe holds would wait for its reader for ever.
    let reader = child.stdout.take().map(|mut output| {
        thread::spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        })
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("{command:?} did not end within {deadline:?}");
        }
        thread::sleep(PAUSE);
    };
    let text = reader.map(thread::JoinHandle::join);
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    match text {
        Some(Ok(text)) => Ok(text?),
        Some(Err(_)) | None => bail!("what {command:?} printed could not be read"),
    }
}

/// The same command, killed with its parent and on one processor.
pub(crate) fn tied(command: &Command, core: Option<usize>) -> Command {
    let mut tied = Command::new("setpriv");
    tied.args(["--pdeathsig", "KILL", "--"]);
    if let Some(core) = core {
        tied.args(["taskset", "--cpu-list", &core.to_string()]);
    }
    tied.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => tied.env(name, value),
            None => tied.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        tied.current_dir(folder);
    }
    tied
}

/// A loopback address with a port that nobody listens on.
pub fn free_address() -> anyhow::Result<SocketAddrV4> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr()?.port()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::output;

    #[test]
    fn a_program_may_print_more_than_a_pipe_holds() {
        let mut command = Command::new("head");
        command.args(["-c", "1000000", "/dev/zero"]);
        assert_eq!(output(&command).unwrap().len(), 1_000_000);
    }
}
