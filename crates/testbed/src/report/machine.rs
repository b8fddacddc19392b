//! The machine that a run took place on, and the programs that took part.

use std::fs;

use crate::{process::usage, programs::Programs};

/// What a reader needs to know to compare figures with their own.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of them.
    pub cores: usize,
    /// Memory in GiB.
    pub memory: u64,
    /// The kernel's version.
    pub kernel: String,
    /// Load averages before the run.
    pub load_before: String,
    /// Load averages after it.
    pub load_after: String,
    /// Programs and their versions.
    pub versions: Vec<(&'static str, String)>,
    /// Rounds that were made.
    pub rounds: usize,
}

impl Machine {
    /// Looks around. Called before the run; [`Machine::finish`] completes it.
    pub fn survey(programs: Option<&Programs>, rounds: usize) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_once(':'))
                .map(|(_, value)| value.trim().to_owned())
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
        Self {
            processor: value(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown processor".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kib.div_ceil(1 << 20),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_before: usage::load_averages().unwrap_or_default(),
            load_after: String::new(),
            versions: programs.map(Programs::versions).unwrap_or_default(),
            rounds,
        }
    }

    /// Notes the load at the end.
    pub fn finish(&mut self) {
        self.load_after = usage::load_averages().unwrap_or_default();
    }

    /// The machine in lines.
    pub fn lines(&self) -> Vec<String> {
        let versions: Vec<String> = self
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let mut lines = vec![
            format!(
                "{}, {} processors, {} GiB, Linux {}",
                self.processor, self.cores, self.memory, self.kernel
            ),
            format!("load averages before {}, after {}", self.load_before, self.load_after),
            format!("{} rounds", self.rounds),
        ];
        if !versions.is_empty() {
            lines.push(versions.join(", "));
        }
        lines
    }
}
