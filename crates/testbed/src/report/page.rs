//! The page `docs/benchmarks.md` with its charts.

use std::{fmt::Write, fs, path::Path};

use anyhow::Context;

use super::{Bar, Chart, Machine, TARGETS, number::with_spread};
use crate::{
    bench::plan::SIZES,
    figures::{Figure, Figures},
    peers::Peer,
};

/// Writes the page and its charts below the folder of the documentation.
pub fn write_documentation(folder: &Path, figures: &Figures, machine: &Machine) -> anyhow::Result<()> {
    let charts = folder.join("benchmarks");
    fs::create_dir_all(&charts).with_context(|| format!("cannot make {}", charts.display()))?;
    let mut files = vec![(folder.join("benchmarks.md"), page(figures, machine)?)];
    for (name, chart) in self::charts(figures)? {
        files.push((charts.join(name), chart.svg()));
    }
    for (path, text) in files {
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn figure<'a>(figures: &'a Figures, name: &str) -> anyhow::Result<&'a Figure> {
    figures
        .get(name)
        .with_context(|| format!("{name} was not measured; the page needs a whole run (`make bench`)"))
}

fn cell(figures: &Figures, name: &str) -> anyhow::Result<String> {
    let figure = figure(figures, name)?;
    Ok(with_spread(figure.value, figure.spread()))
}

fn page(figures: &Figures, machine: &Machine) -> anyhow::Result<String> {
    let mut out = String::from(INTRODUCTION);
    out.push_str("\n## Machine\n\n");
    for line in machine.lines() {
        writeln!(out, "- {line}")?;
    }
    out.push_str("\n## Targets\n\n| figure | meaning | target | measured |\n|---|---|---|---|\n");
    for target in TARGETS {
        let value = figure(figures, target.figure)?.value;
        let verdict = if target.is_met(value) { "" } else { " **missed**" };
        let measured = cell(figures, target.figure)?;
        writeln!(
            out,
            "| `{}` | {} | {target} | {measured}{verdict} |",
            target.figure, target.meaning
        )?;
    }
    out.push_str(PROXY);
    proxies(figures, &mut out)?;
    out.push_str(CONNECTIONS);
    for (name, meaning) in CONNECTION_FIGURES {
        writeln!(out, "| {meaning} | {} |", connections(figures, name)?.join(" | "))?;
    }
    out.push_str(PLAN);
    sizes(figures, &mut out)?;
    out.push_str(MEMORY);
    for (name, meaning) in MEMORY_FIGURES {
        writeln!(out, "| {meaning} | {} |", cell(figures, name)?)?;
    }
    let (start, memory) = (cell(figures, "run.start_ms.10k")?, cell(figures, "run.rss_mb.10k")?);
    writeln!(
        out,
        "\nThe whole program with a folder of 10,000 routes, on one processor: {start} ms from its start until it serves, \
         {memory} MB resident then."
    )?;
    let (write, accept) = (cell(figures, "kube.write_1k_s")?, cell(figures, "kube.accept_1k_s")?);
    writeln!(
        out,
        "\n## A cluster\n\nWritten to a cluster as fast as its API server takes them, 1,000 HTTPRoutes are all `Accepted` {accept} s after the \
         last write; writing took {write} s. API server, etcd, controllers, two replicas and the client share the machine."
    )?;
    out.push_str(METHOD);
    Ok(out)
}

fn proxies(figures: &Figures, out: &mut String) -> anyhow::Result<()> {
    writeln!(out, "| | {} |", Peer::ALL.map(Peer::name).join(" | "))?;
    writeln!(out, "|---{}|", "|---".repeat(Peer::ALL.len()))?;
    let rate = cell(figures, "proxy.h1.fixed_rate")?;
    let rows = [
        ("requests per CPU-second".to_owned(), "requests_per_cpu_second"),
        ("requests per second".to_owned(), "requests_per_second"),
        ("p50 at that rate, ms".to_owned(), "p50_ms"),
        ("p99 at that rate, ms".to_owned(), "p99_ms"),
        (format!("p50 at {rate} requests/s, µs"), "fixed_rate_p50_us"),
        (format!("p99 at {rate} requests/s, µs"), "fixed_rate_p99_us"),
        ("resident memory after it, MB".to_owned(), "rss_mb"),
    ];
    for (meaning, measure) in rows {
        let cells = Peer::ALL.map(|peer| cell(figures, &format!("proxy.h1.{measure}.{}", peer.label())));
        let cells = cells.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        writeln!(out, "| {meaning} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// What ours, what the other and what their quotient was.
fn connections(figures: &Figures, name: &str) -> anyhow::Result<[String; 3]> {
    let (contest, measure) = name.split_once('.').unwrap_or_default();
    let rival = if contest == "tls" { Peer::Nginx } else { Peer::Haproxy };
    let of = |peer: Peer| cell(figures, &format!("proxy.{name}_per_cpu_second.{}", peer.label()));
    let ratio = format!("proxy.{contest}.{measure}_vs_{}", rival.label());
    Ok([
        of(Peer::Gatewright)?,
        format!("{}: {}", rival.name(), of(rival)?),
        cell(figures, &ratio)?,
    ])
}

fn sizes(figures: &Figures, out: &mut String) -> anyhow::Result<()> {
    writeln!(
        out,
        "| | {} |",
        SIZES.map(|size| format!("{} routes", size.name)).join(" | ")
    )?;
    writeln!(out, "|---{}|", "|---".repeat(SIZES.len()))?;
    for (measure, meaning) in SIZE_FIGURES {
        let cells = SIZES.map(|size| cell(figures, &format!("{measure}.{}", size.name)));
        let cells = cells.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        writeln!(out, "| {meaning} | {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// The charts, by file name.
fn charts(figures: &Figures) -> anyhow::Result<Vec<(&'static str, Chart)>> {
    let bar = |label: &str, name: &str, is_ours: bool| -> anyhow::Result<Bar> {
        let figure = figure(figures, name)?;
        Ok(Bar {
            label: label.to_owned(),
            value: figure.value,
            spread: figure.spread(),
            is_ours,
        })
    };
    let peers = |measure: &str, title: &str, subtitle: &str| -> anyhow::Result<Chart> {
        let bars = Peer::ALL.map(|peer| {
            let name = format!("proxy.h1.{measure}.{}", peer.label());
            bar(peer.name(), &name, peer == Peer::Gatewright)
        });
        Ok(Chart {
            title: title.to_owned(),
            subtitle: subtitle.to_owned(),
            bars: bars.into_iter().collect::<anyhow::Result<_>>()?,
        })
    };
    let rate = cell(figures, "proxy.h1.fixed_rate")?;
    let mut changes = Vec::new();
    for size in SIZES {
        for (measure, label, is_ours) in [
            ("plan.change_us", "planned", true),
            ("proxy.apply_change_us", "in the proxy's tables", false),
        ] {
            let label = format!("{} routes, {label}", size.name);
            changes.push(bar(&label, &format!("{measure}.{}", size.name), is_ours)?);
        }
    }
    Ok(vec![
        (
            "proxy-efficiency.svg",
            peers(
                "requests_per_cpu_second",
                "Requests per second of the proxy's processor time",
                "HTTP/1.1, 64 connections, 200-byte answers; more is better",
            )?,
        ),
        (
            "proxy-latency.svg",
            peers(
                "fixed_rate_p99_us",
                "99th percentile of latency, µs",
                &format!("at {rate} requests per second, half of what Envoy can do here; less is better"),
            )?,
        ),
        (
            "proxy-memory.svg",
            peers(
                "rss_mb",
                "Resident memory under load, MB",
                "one worker, 64 connections; less is better",
            )?,
        ),
        (
            "plan-change.svg",
            Chart {
                title: "One changed route, µs".to_owned(),
                subtitle: "from the declared object to the finished plan, and from there into the proxy".to_owned(),
                bars: changes,
            },
        ),
    ])
}

const INTRODUCTION: &str = "\
# Benchmarks

This page is written by the benchmarks themselves:

```
make bench                                                                                 # runs all, prints a table
cargo run --profile release -p gatewright-testbed --bin bench -- all --write-docs          # and writes this page
```

Every run also writes `target/bench/results.json`, an object from the name of a figure to `{value, unit, rounds}`: `rounds`
has every round's value, `value` is their median. Here a figure is shown as its median, with the least and the greatest round
in brackets. Ratios are taken within a round and never between runs. A single part is run by `bench -- proxy`, `bench -- connections`
or `bench -- plan`, a short trial by `--quick`, more rounds by `--rounds N`.
";

const PROXY: &str = "
## The proxy beside nginx, HAProxy and Envoy

![Requests per second of the proxy's processor time](benchmarks/proxy-efficiency.svg)

![99th percentile of latency at a fixed rate](benchmarks/proxy-latency.svg)

![Resident memory under load](benchmarks/proxy-memory.svg)

";

const CONNECTIONS: &str = "
## Connections

Connections that are passed on by port (a TCPRoute, HAProxy in its TCP mode) or by the name in a client's first message of TLS (a TLSRoute
that passes through, HAProxy by `req.ssl_sni`), and HTTPS whose TLS ends at the proxy (beside nginx). All per second of the proxy's processor
time.

| | Gatewright | the other | ours over theirs |
|---|---|---|---|
";

const CONNECTION_FIGURES: &[(&str, &str)] = &[
    ("tcp.megabytes", "by port: MB received, 8 connections"),
    ("tcp.connections", "by port: connections with one line, 32 at once"),
    ("passthrough.megabytes", "by name: MB received, 8 connections"),
    (
        "passthrough.connections",
        "by name: connections with one line, 32 at once",
    ),
    ("tls.megabytes", "TLS ended: MB of large answers, 4 connections"),
    (
        "tls.handshakes",
        "TLS ended: full handshakes with one small answer, 16 at once",
    ),
];

const PLAN: &str = "
## Planning

A route stands for an HTTPRoute, its own Service and its own EndpointSlice with two endpoints.

![One changed route](benchmarks/plan-change.svg)

";

const SIZE_FIGURES: &[(&str, &str)] = &[
    ("plan.load_ms", "all objects taken into the world, ms"),
    ("plan.full_ms", "everything planned from scratch, ms"),
    ("plan.change_us", "one changed route planned, µs"),
    ("plan.change_endpoints_us", "one changed EndpointSlice planned, µs"),
    ("proxy.apply_change_us", "one changed route in the proxy's tables, µs"),
    ("plan.full_one_host_ms", "from scratch, all routes on one host, ms"),
    ("plan.change_one_host_us", "one changed route, all on one host, µs"),
    (
        "proxy.apply_change_one_host_us",
        "in the proxy's tables, all on one host, µs",
    ),
];

const MEMORY: &str = "
| memory per route | bytes |
|---|---|
";

const MEMORY_FIGURES: &[(&str, &str)] = &[
    ("plan.bytes_per_route", "world and plan, counted by the allocator"),
    ("plan.bytes_per_route_one_host", "the same with all routes on one host"),
    (
        "plan.rss_bytes_per_route",
        "growth of the resident set from half of the routes to all of them",
    ),
    (
        "proxy.bytes_per_route",
        "the proxy's compiled tables, counted by the allocator",
    ),
];

const METHOD: &str = "
## Method

- **Interleaved.** All proxies run all the time and take turns in every round, four seconds each, so that a disturbance of the
  machine meets all of them. Each is warmed up once before.
- **Per processor time.** Requests are divided by the user and system time that the proxy's process used while they were
  sent. That is what a proxy costs; requests per second also depend on what is left of the machine for it.
- **Pinned.** The proxy has processor 1 to itself. The load generator and the backend (an nginx that answers 200 bytes from
  memory) share processor 0.
- **Equal.** One worker each, connections to the backend kept open, no access log, routing by host and path prefix, and
  `X-Forwarded-For`, `-Proto` and `-Host` for the backend. Envoy makes no request ids. Gatewright is the program users get,
  with its metrics on. The exact configurations are in `crates/testbed/src/peers`.
- **Greatest rate** is found with `wrk`, one thread, 64 connections, each sending the next request when the last is answered.
- **Fixed rate** is half of the rate that Envoy reached in this run. Requests come at random instants, the same for every
  proxy; the latency of a request that waits for an earlier answer counts from when it was due.
- **Connections** are made by a generator of our own to a backend of our own, which sends by itself: 256 KiB at a time without end, or 32 bytes and
  the end. The client's first message of TLS is a real one with a post-quantum key share, 1.5 KB long; nobody answers it, since a proxy that passes it
  on does not see that. HAProxy is told to let the kernel move bytes in both directions, through pipes as large as ours.
- **TLS** is 1.3 with AES-128-GCM, X25519 and an ECDSA certificate on P-256, over HTTP/1.1; nothing is resumed. Large answers are files of 8 MiB, which
  nginx may not put on its disk on the way.
- **A changed route** is timed from the declared object to the finished plan, 200 changes per round, spread over all routes.
  The median of the round is shown.

## What these figures do not say

- A virtual machine with few processors is noisy: trust ratios more than absolute numbers, and spreads more than digits.
- Generator and backend share a processor, and at the greatest rate that processor may be the limit; latencies at that rate say
  little. Requests per CPU-second are not affected much.
- HTTP/2, UDP, thousands of connections, resumed sessions and more than one worker are not measured, yet.
- Where bytes are passed on, generator and backend copy them and the proxy hardly does: its processor is idle for much of the time, and what it
  uses is measured to a hundredth of a second.
- Envoy keeps many more statistics by default than the others, and they are on.
- The first plan of a process is slower than the median of five, because its memory comes fresh from the kernel.
";

#[cfg(test)]
mod tests;
