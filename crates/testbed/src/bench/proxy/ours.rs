//! What is asked of our program alone: ten thousand paths on one host, a large folder, and memory when idle.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use super::{GENERATOR_CORE, PROXY_CORE, closed_loop};
use crate::{
    bench::Effort,
    figures::Figures,
    peers::{HOST, Server, gatewright},
    process::{Running, free_address, usage},
    programs::{Programs, workspace},
    say,
    statistics::{number, ratios},
    worlds::{self, Layout, PathKind},
};

/// Paths on one host.
const PATHS: usize = 10_000;
/// Routes in a large folder.
const FOLDER: usize = 10_000;

/// What the last of many paths costs, relative to the first.
pub(super) fn many_paths(
    programs: &Programs,
    backend: &Server,
    folder: &Path,
    effort: Effort,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    for (kind, label, figure) in [
        (PathKind::Exact, "exact-paths", "proxy.h1.last_path_vs_first"),
        (PathKind::Prefix, "prefix-paths", "proxy.h1.last_prefix_vs_first"),
    ] {
        let address = free_address()?;
        let mut objects = worlds::frame(address.port());
        objects.extend(worlds::paths(kind, HOST, PATHS, backend.address));
        let command = gatewright::command(&programs.gatewright, &objects, &folder.join(label))?;
        let (first, last) = (worlds::path(0), worlds::path(PATHS - 1));
        let server = Server::start_for(label, &command, PROXY_CORE, address, &last, folder)?;
        closed_loop(programs, &server, &first, Duration::from_secs(1))?;
        let (mut firsts, mut lasts) = (Vec::new(), Vec::new());
        for round in 1..=effort.rounds {
            firsts.push(closed_loop(programs, &server, &first, effort.window())?.efficiency);
            lasts.push(closed_loop(programs, &server, &last, effort.window())?.efficiency);
            say(format_args!(
                "proxy: round {round} of {}, first and last of {PATHS} {label}",
                effort.rounds
            ));
        }
        // A cost is the inverse of how many requests a second of processor time serves.
        figures.add(figure, "ratio", ratios(&firsts, &lasts));
    }
    Ok(())
}

/// What the whole program costs when it serves many routes from a folder: the time from its start until it serves, and
/// its memory then, which still includes what reading the folder took for a moment.
pub(super) fn large_folder(
    programs: &Programs,
    backend: &Server,
    folder: &Path,
    effort: Effort,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let (mut starts, mut memory) = (Vec::new(), Vec::new());
    for round in 1..=effort.rounds {
        say(format_args!(
            "proxy: round {round} of {}, a folder of {FOLDER} routes",
            effort.rounds
        ));
        let address = free_address()?;
        let mut objects = gatewright::objects(address, backend.address);
        objects.extend((0..FOLDER).flat_map(|index| worlds::application(Layout::OwnHosts, index, 0)));
        let command = gatewright::command(&programs.gatewright, &objects, &folder.join("large"))?;
        let started = Instant::now();
        let server = Server::start("large", &command, PROXY_CORE, address, folder)?;
        starts.push(started.elapsed().as_secs_f64() * 1e3);
        memory.push(number(usage::resident(server.id())?) / 1e6);
    }
    figures.add("run.start_ms.10k", "ms", starts);
    figures.add("run.rss_mb.10k", "MB", memory);
    Ok(())
}

/// The memory of the program that serves the quickstart while nobody asks it for anything.
pub(super) fn idle(programs: &Programs, folder: &Path, effort: Effort, figures: &mut Figures) -> anyhow::Result<()> {
    let mut rounds = Vec::new();
    for round in 0..effort.rounds {
        let served = folder.join(format!("idle-{round}"));
        std::fs::create_dir_all(&served)?;
        let (http, https) = (free_address()?, free_address()?);
        for entry in std::fs::read_dir(workspace().join("examples/quickstart"))? {
            let entry = entry?;
            let text = std::fs::read_to_string(entry.path())?;
            // The example's ports may be taken on this machine.
            let text = text.replace("port: 8080", &format!("port: {}", http.port()));
            let text = text.replace("port: 8443", &format!("port: {}", https.port()));
            std::fs::write(served.join(entry.file_name()), text)?;
        }
        let command = gatewright::serve(&programs.gatewright, &served);
        let mut running = Running::start("idle", &command, Some(GENERATOR_CORE), folder)?;
        // The redirect of the example needs no backend.
        running.wait_until("its first answer", Duration::from_secs(20), || {
            crate::load::request(http, HOST, "/secure").is_ok_and(|code| code == 301)
        })?;
        rounds.push(number(usage::resident(running.id())?) / 1e6);
    }
    figures.add("proxy.idle_rss_mb", "MB", rounds);
    Ok(())
}
