//! A generator that sends at a fixed rate, whatever the answers do.
//!
//! Requests arrive as independent clients would send them, at random instants of a given mean rate (a Poisson process),
//! drawn from a fixed seed so that every proxy meets the same ones. The latency of a request that had to wait for the answer
//! before it counts from the instant at which it was due, so that a slow answer cannot hide what it held up. Each connection is a thread that sleeps
//! and blocks: spinning would take the processor from the backend beside it.

use std::{
    io::{Read, Write},
    net::{SocketAddrV4, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Connections that are open at once.
const CONNECTIONS: u32 = 64;
/// What is sent before this is not counted: connections are new, and caches cold.
const WARM_UP: Duration = Duration::from_millis(500);
/// Latencies are kept in microseconds with three digits.
const DIGITS: u8 = 3;

/// What to send.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where to.
    pub address: SocketAddrV4,
    /// The host to ask for.
    pub host: String,
    /// The path to ask for.
    pub path: String,
    /// Requests per second, on average.
    pub rate: f64,
    /// For how long.
    pub time: Duration,
}

/// What came of it, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// How many requests were counted.
    pub requests: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The mean rate at which answers came, per second.
    pub rate: f64,
}

/// Sends, and measures. Fails if any answer is not 200.
pub fn run(plan: &Plan) -> anyhow::Result<Latencies> {
    // Threads sleep to within a microsecond instead of fifty. What is left of the imprecision is not counted anyhow, so
    // a kernel that does not offer this is no error.
    let _ = std::fs::write("/proc/self/timerslack_ns", "1000");
    // Everybody starts together, once all connections stand.
    let streams = (0..CONNECTIONS)
        .map(|_| connect(plan.address))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let start = Instant::now() + Duration::from_millis(50);
    let mut all = Histogram::<u64>::new(DIGITS)?;
    thread::scope(|scope| {
        let sending = streams
            .into_iter()
            .enumerate()
            .map(|(index, stream)| scope.spawn(move || send(plan, stream, index as u64, start)));
        // All must be started before the first is waited for.
        let sending: Vec<_> = sending.collect();
        for thread in sending {
            let Ok(latencies) = thread.join() else {
                bail!("a connection's thread panicked")
            };
            all.add(latencies?)?;
        }
        Ok(())
    })?;
    let at = |quantile: f64| crate::statistics::number(all.value_at_quantile(quantile));
    let seconds = (plan.time.saturating_sub(WARM_UP)).as_secs_f64();
    Ok(Latencies {
        requests: all.len(),
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        rate: crate::statistics::number(all.len()) / seconds,
    })
}

fn connect(address: SocketAddrV4) -> anyhow::Result<TcpStream> {
    let limit = Duration::from_secs(5);
    let stream = TcpStream::connect_timeout(&address.into(), limit)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Sends one connection's share.
fn send(plan: &Plan, mut stream: TcpStream, seed: u64, start: Instant) -> anyhow::Result<Histogram<u64>> {
    let mut latencies = Histogram::<u64>::new(DIGITS)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mean = f64::from(CONNECTIONS) / plan.rate;
    let request = format!("GET {} HTTP/1.1\r\nhost: {}\r\n\r\n", plan.path, plan.host);
    let mut buffer = vec![0; 16 * 1024];
    let mut due = Duration::ZERO;
    loop {
        // Gaps between independent events are exponentially distributed.
        due += Duration::from_secs_f64(-mean * (1.0 - random.f64()).ln());
        if due >= plan.time {
            return Ok(latencies);
        }
        let mut sent = start + due;
        let early = sent.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            thread::sleep(early);
            // Waking late is this generator's own doing. Having been busy with the answer before is not.
            sent = Instant::now();
        }
        stream.write_all(request.as_bytes())?;
        receive(&mut stream, &mut buffer)?;
        let latency = sent.elapsed();
        if due >= WARM_UP {
            latencies.record(u64::try_from(latency.as_micros())?)?;
        }
    }
}

/// Reads one answer, which must be 200 and of a declared length.
fn receive(stream: &mut TcpStream, buffer: &mut [u8]) -> anyhow::Result<()> {
    let mut filled = 0;
    loop {
        let rest = buffer
            .get_mut(filled..)
            .filter(|rest| !rest.is_empty())
            .context("an answer is too long")?;
        let count = stream.read(rest)?;
        ensure!(count > 0, "a connection was closed");
        filled += count;
        let received = buffer.get(..filled).unwrap_or_default();
        if let Some((head, body)) = super::head(received)?
            && filled >= head + body
        {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;
