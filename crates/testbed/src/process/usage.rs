//! What the kernel says about a process: processor time, resident memory, load of the machine.

use std::{fs, time::Duration};

use anyhow::Context;

/// The kernel's unit of processor time in `/proc`, on every Linux that Rust supports.
const TICKS_PER_SECOND: u64 = 100;
/// The unit of `/proc/PID/statm` is a page; `VmRSS` of `/proc/PID/status` is in KiB, whatever a page is.
const KIB: u64 = 1024;

/// The processor time, of user and system, that a process has used with all its threads.
pub fn processor_time(process: u32) -> anyhow::Result<Duration> {
    let text = read(process, "stat")?;
    let ticks = ticks(&text).with_context(|| format!("cannot understand /proc/{process}/stat"))?;
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// The resident memory of a process, in bytes.
pub fn resident(process: u32) -> anyhow::Result<u64> {
    let text = read(process, "status")?;
    resident_kib(&text)
        .map(|kib| kib * KIB)
        .with_context(|| format!("cannot understand /proc/{process}/status"))
}

/// The load averages over one, five and fifteen minutes.
pub fn load_averages() -> anyhow::Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("cannot read /proc/loadavg")?;
    Ok(text.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}

fn read(process: u32, file: &str) -> anyhow::Result<String> {
    let path = format!("/proc/{process}/{file}");
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

/// Fields 14 and 15 of `/proc/PID/stat`. The second field is a name in brackets that may itself hold spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn resident_kib(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{processor_time, resident, resident_kib, ticks};

    #[test]
    fn processor_time_is_read_past_a_name_with_spaces_and_brackets() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194304 1 2 3 4 150 50 7 8 20 0 1 0 99 1000 20";
        assert_eq!(ticks(stat), Some(200));
    }

    #[test]
    fn the_resident_set_is_found_among_the_lines_of_status() {
        assert_eq!(resident_kib("Name:\tx\nVmHWM:\t 99 kB\nVmRSS:\t  12 kB\n"), Some(12));
    }

    #[test]
    fn this_process_uses_memory_and_time() {
        assert!(resident(std::process::id()).unwrap() > 1 << 20);
        processor_time(std::process::id()).unwrap();
        assert!(processor_time(u32::MAX).is_err());
    }
}
