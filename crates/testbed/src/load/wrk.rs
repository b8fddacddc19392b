//! wrk: sixty-four connections that each send the next request when the last is answered.

use std::{net::SocketAddrV4, path::Path, process::Command, time::Duration};

use anyhow::{Context, ensure};

use crate::process;

/// Connections that are open at once.
pub const CONNECTIONS: u32 = 64;

/// What wrk saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Requests that were answered.
    pub requests: f64,
    /// Per second.
    pub rate: f64,
    /// The median latency in milliseconds.
    pub p50: f64,
    /// The 99th percentile of latency in milliseconds.
    pub p99: f64,
}

/// Sends as much as goes for so long. Fails if any request does.
pub fn run(
    program: &Path,
    core: usize,
    address: SocketAddrV4,
    host: &str,
    path: &str,
    time: Duration,
) -> anyhow::Result<Load> {
    let mut command = Command::new(program);
    command.args(["--threads", "1", "--connections", &CONNECTIONS.to_string(), "--latency"]);
    command.arg("--duration").arg(format!("{}s", time.as_secs().max(1)));
    command.arg("--header").arg(format!("Host: {host}"));
    command.arg(format!("http://{address}{path}"));
    let text = process::output_on(core, &command, time + Duration::from_secs(30))?;
    read(&text).with_context(|| format!("wrk said:\n{text}"))
}

/// Reads what wrk printed.
fn read(text: &str) -> anyhow::Result<Load> {
    for trouble in ["Socket errors", "Non-2xx"] {
        let line = text.lines().find(|line| line.contains(trouble));
        ensure!(line.is_none(), "requests failed: {}", line.unwrap_or_default().trim());
    }
    let words = |start: &str| {
        let line = text.lines().map(str::trim).find_map(|line| line.strip_prefix(start));
        line.and_then(|line| line.split_whitespace().next())
            .with_context(|| format!("no line starts with {start}"))
    };
    let requests = text
        .lines()
        .find(|line| line.contains(" requests in "))
        .context("no number of requests")?;
    let requests = requests.split_whitespace().next().context("no number of requests")?;
    Ok(Load {
        requests: requests.parse()?,
        rate: words("Requests/sec:")?.parse()?,
        p50: milliseconds(words("50%")?)?,
        p99: milliseconds(words("99%")?)?,
    })
}

/// A time as wrk writes it: `812.00us`, `1.42ms`, `2.01s`, `1.10m`.
fn milliseconds(text: &str) -> anyhow::Result<f64> {
    let (number, scale) = if let Some(number) = text.strip_suffix("us") {
        (number, 1e-3)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1e3)
    } else {
        (text.strip_suffix('m').context("no unit of time")?, 6e4)
    };
    Ok(number.parse::<f64>()? * scale)
}

#[cfg(test)]
mod tests {
    use super::{Load, read};

    const OUTPUT: &str = "\
Running 4s test @ http://127.0.0.1:8080/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.05ms  200.00us   9.00ms   90.00%
    Req/Sec    60.10k     1.50k   62.00k    70.00%
  Latency Distribution
     50%  980.00us
     75%    1.10ms
     90%    1.20ms
     99%    1.62ms
  240404 requests in 4.00s, 80.00MB read
Requests/sec:  60101.00
Transfer/sec:     20.00MB
";

    #[test]
    fn what_wrk_prints_is_read() {
        let expected = Load {
            requests: 240_404.0,
            rate: 60_101.0,
            p50: 0.98,
            p99: 1.62,
        };
        assert_eq!(read(OUTPUT).unwrap(), expected);
    }

    #[test]
    fn a_run_with_failed_requests_is_no_measurement() {
        for trouble in [
            "  Non-2xx or 3xx responses: 7\n",
            "  Socket errors: connect 0, read 1, write 0, timeout 0\n",
        ] {
            assert!(read(&format!("{OUTPUT}{trouble}")).is_err(), "{trouble}");
        }
    }
}
