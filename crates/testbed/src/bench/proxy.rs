//! The proxy beside its peers: requests per second of the proxy's processor time, and latency at a fixed rate.
//!
//! The proxy has one processor to itself; generator and backend share another. All proxies run all the time, and take
//! turns in every round, so that figures are compared only with those of the same minute. Processor time is that of the
//! whole process over the window in which requests were sent.

mod ours;
mod turns;

use std::{path::Path, process::Command, time::Duration};

use anyhow::ensure;

use super::Effort;
use crate::{
    figures::Figures,
    load::{paced::Latencies, wrk},
    peers::{HOST, Peer, Server},
    process::{self, usage},
    programs::{self, Programs},
    say,
    statistics::{median, number, ratios},
};
use turns::Turns;

/// Where generator and backend run.
pub const GENERATOR_CORE: usize = 0;
/// Where the proxy runs.
pub const PROXY_CORE: usize = 1;

/// One turn of one proxy under as much load as goes.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Requests per second of the proxy's processor time.
    efficiency: f64,
    load: wrk::Load,
    /// Resident memory after it, in MB.
    resident: f64,
}

/// Measures everything about the proxy.
pub fn run(programs: &Programs, effort: Effort) -> anyhow::Result<Figures> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        cores > PROXY_CORE,
        "this machine lets us use one processor; the comparison needs two"
    );
    // Below cargo's own folder, so that a run that is cut short leaves nothing elsewhere.
    let parent = programs::target_folder().join("bench");
    std::fs::create_dir_all(&parent)?;
    let folder = tempfile::tempdir_in(parent)?;
    let backend = Server::backend(programs, GENERATOR_CORE, folder.path())?;
    let mut figures = Figures::default();
    compare(programs, &backend, folder.path(), effort, &mut figures)?;
    ours::many_paths(programs, &backend, folder.path(), effort, &mut figures)?;
    ours::large_folder(programs, &backend, folder.path(), effort, &mut figures)?;
    ours::idle(programs, folder.path(), effort, &mut figures)?;
    Ok(figures)
}

fn compare(
    programs: &Programs,
    backend: &Server,
    folder: &Path,
    effort: Effort,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let mut servers = Vec::new();
    for peer in Peer::ALL {
        servers.push((peer, peer.start(programs, backend.address, PROXY_CORE, folder)?));
    }
    for (_, server) in &servers {
        closed_loop(programs, server, "/", Duration::from_secs(1))?;
    }
    let mut turns = Turns::default();
    for round in 1..=effort.rounds {
        for (peer, server) in &servers {
            let turn = closed_loop(programs, server, "/", effort.window())?;
            say(format_args!(
                "proxy: round {round} of {}, {:<10} {:>7.0} requests per CPU-second, {:>6.0}/s, p99 {:.2} ms",
                effort.rounds,
                peer.name(),
                turn.efficiency,
                turn.load.rate,
                turn.load.p99
            ));
            turns.efficiency.add(*peer, turn.efficiency);
            turns.rate.add(*peer, turn.load.rate);
            turns.p50.add(*peer, turn.load.p50);
            turns.p99.add(*peer, turn.load.p99);
            turns.resident.add(*peer, turn.resident);
        }
    }
    let rate = median(turns.rate.of(Peer::Envoy)) / 2.0;
    for round in 1..=effort.rounds {
        for (peer, server) in &servers {
            let latencies = fixed_rate(server, rate, effort.window())?;
            say(format_args!(
                "proxy: round {round} of {}, {:<10} at {rate:.0}/s: p50 {:.0} µs, p99 {:.0} µs",
                effort.rounds,
                peer.name(),
                latencies.p50,
                latencies.p99
            ));
            turns.paced_p50.add(*peer, latencies.p50);
            turns.paced_p99.add(*peer, latencies.p99);
        }
    }
    turns.record(figures);
    figures.add("proxy.h1.fixed_rate", "requests/s", vec![rate]);
    for peer in [Peer::Envoy, Peer::Nginx, Peer::Haproxy] {
        let ours = turns.efficiency.of(Peer::Gatewright);
        let name = format!("proxy.h1.vs_{}", peer.label());
        figures.add(name, "ratio", ratios(ours, turns.efficiency.of(peer)));
        let ours = turns.paced_p99.of(Peer::Gatewright);
        let name = format!("proxy.h1.p99_vs_{}", peer.label());
        figures.add(name, "ratio", ratios(ours, turns.paced_p99.of(peer)));
    }
    Ok(())
}

/// As much load as goes, for so long.
fn closed_loop(programs: &Programs, server: &Server, path: &str, time: Duration) -> anyhow::Result<Turn> {
    let before = usage::processor_time(server.id())?;
    let load = wrk::run(&programs.wrk, GENERATOR_CORE, server.address, HOST, path, time)?;
    let used = usage::processor_time(server.id())?.saturating_sub(before);
    Ok(Turn {
        efficiency: load.requests / used.as_secs_f64(),
        load,
        resident: number(usage::resident(server.id())?) / 1e6,
    })
}

/// So many requests per second, for so long; by a process of its own, to have it on the generator's processor.
fn fixed_rate(server: &Server, rate: f64, time: Duration) -> anyhow::Result<Latencies> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["paced", &server.address.to_string()]);
    command.arg(format!("{rate:.0}")).arg(time.as_millis().to_string());
    let text = process::output_on(GENERATOR_CORE, &command, time + Duration::from_secs(30))?;
    Ok(serde_json::from_str(&text)?)
}
