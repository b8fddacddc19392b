//! The proxy beside its peers where connections are what matters: passed on by port, passed on by the name in TLS, and ended with
//! TLS.
//!
//! As with requests, the proxy has a processor to itself, generator and backend share another, and what is compared takes turns
//! in every round. In each of the three contests two things are measured, for few long connections cost something else than many
//! short ones; the figure with a target is the worse of both, round by round.

use std::{
    fs,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::ensure;

use super::{
    Effort,
    proxy::{GENERATOR_CORE, PROXY_CORE},
};
use crate::{
    certificates::{Authority, KeyKind},
    figures::Figures,
    load::{
        streams::{self, Carried, Load},
        tls::{self, Asked},
    },
    peers::{HOST, Peer, Server, Streams, gatewright, haproxy, nginx},
    process::{self, Running, free_address, usage},
    programs::{self, Programs},
    say,
    statistics::{number, ratios},
};

/// What is measured of a proxy: something per second of its processor time.
struct Measure<'a> {
    /// Its name in figures.
    name: &'static str,
    unit: &'static str,
    /// Runs for so long, and returns how much came of it.
    run: Box<Turn<'a>>,
}

type Turn<'a> = dyn Fn(&Contender, Duration) -> anyhow::Result<f64> + 'a;

/// A proxy that takes part.
struct Contender {
    server: Server,
    /// Where it listens for connections with a line, if not where for the others.
    line: SocketAddrV4,
}

/// Ours and another, who are asked for the same.
struct Contest {
    /// Its name in figures.
    name: &'static str,
    rival: Peer,
    ours: Contender,
    theirs: Contender,
}

/// Measures everything about connections.
pub fn run(programs: &Programs, effort: Effort) -> anyhow::Result<Figures> {
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        cores > PROXY_CORE,
        "this machine lets us use one processor; the comparison needs two"
    );
    let parent = programs::target_folder().join("bench");
    fs::create_dir_all(&parent)?;
    let folder = tempfile::tempdir_in(parent)?;
    let mut figures = Figures::default();
    let (_source, backend) = source(folder.path())?;
    by_port(programs, backend, folder.path(), effort, &mut figures)?;
    by_name(programs, backend, folder.path(), effort, &mut figures)?;
    terminating(programs, folder.path(), effort, &mut figures)?;
    Ok(figures)
}

/// The other end of connections that are passed on.
fn source(folder: &Path) -> anyhow::Result<(Running, Streams)> {
    let backend = Streams {
        bulk: free_address()?,
        line: free_address()?,
    };
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["source", &backend.bulk.to_string(), &backend.line.to_string()]);
    let mut running = Running::start("source", &command, Some(GENERATOR_CORE), folder)?;
    running.wait_until("its first line", Duration::from_secs(20), || {
        streams::is_served(backend.line, None)
    })?;
    Ok((running, backend))
}

/// TCP connections, which a port chooses a backend for.
fn by_port(
    programs: &Programs,
    backend: Streams,
    folder: &Path,
    effort: Effort,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let start = |peer: Peer| -> anyhow::Result<Contender> {
        let (bulk, line) = (free_address()?, free_address()?);
        let label = format!("tcp-{}", peer.label());
        let command = if peer == Peer::Gatewright {
            let objects = gatewright::connections::tcp(bulk, line, backend).to_string();
            gatewright::command_of(&programs.gatewright, &objects, &folder.join(&label))?
        } else {
            let text = haproxy::Tcp { bulk, line, backend }.to_string();
            haproxy::command(&programs.haproxy, &text, folder, "tcp.cfg")?
        };
        let is_served = || streams::is_served(line, None) && std::net::TcpStream::connect(bulk).is_ok();
        let server = Server::start_until(&label, &command, PROXY_CORE, bulk, folder, is_served)?;
        Ok(Contender { server, line })
    };
    let contest = Contest {
        name: "tcp",
        rival: Peer::Haproxy,
        ours: start(Peer::Gatewright)?,
        theirs: start(Peer::Haproxy)?,
    };
    let measures = [
        bytes(|contender, time| stream(contender.server.address, None, Carried::Bulk, time)),
        connections(|contender, time| stream(contender.line, None, Carried::Line, time)),
    ];
    contest.measure(&measures, effort, figures)
}

/// TLS connections that are passed on, which the name in their first message chooses a backend for.
fn by_name(
    programs: &Programs,
    backend: Streams,
    folder: &Path,
    effort: Effort,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let start = |peer: Peer| -> anyhow::Result<Contender> {
        let address = free_address()?;
        let label = format!("passthrough-{}", peer.label());
        let command = if peer == Peer::Gatewright {
            let objects = gatewright::connections::passthrough(address, backend).to_string();
            gatewright::command_of(&programs.gatewright, &objects, &folder.join(&label))?
        } else {
            let text = haproxy::Passthrough { address, backend }.to_string();
            haproxy::command(&programs.haproxy, &text, folder, "passthrough.cfg")?
        };
        let is_served = || streams::is_served(address, Some(Streams::LINE_NAME));
        let server = Server::start_until(&label, &command, PROXY_CORE, address, folder, is_served)?;
        Ok(Contender { server, line: address })
    };
    let contest = Contest {
        name: "passthrough",
        rival: Peer::Haproxy,
        ours: start(Peer::Gatewright)?,
        theirs: start(Peer::Haproxy)?,
    };
    let measures = [
        bytes(|contender, time| stream(contender.line, Some(Streams::BULK_NAME), Carried::Bulk, time)),
        connections(|contender, time| stream(contender.line, Some(Streams::LINE_NAME), Carried::Line, time)),
    ];
    contest.measure(&measures, effort, figures)
}

/// HTTPS, whose TLS ends at the proxy.
fn terminating(programs: &Programs, folder: &Path, effort: Effort, figures: &mut Figures) -> anyhow::Result<()> {
    let backend = Server::backend(programs, GENERATOR_CORE, folder)?;
    let authority = Authority::make()?;
    let identity = authority.issue(HOST, KeyKind::Ecdsa, 90)?;
    let write = |name: &str, text: &str| -> anyhow::Result<PathBuf> {
        let file = folder.join(name);
        fs::write(&file, text)?;
        Ok(file)
    };
    let trusted = write("authority.pem", &authority.pem())?;
    let (certificate, key) = (
        write("certificate.pem", &identity.certificate)?,
        write("key.pem", &identity.key)?,
    );
    let start = |peer: Peer| -> anyhow::Result<Contender> {
        let address = free_address()?;
        let label = format!("tls-{}", peer.label());
        let command = if peer == Peer::Gatewright {
            let objects = gatewright::connections::terminating(address, backend.address, &identity).to_string();
            gatewright::command_of(&programs.gatewright, &objects, &folder.join(&label))?
        } else {
            let proxy = nginx::Terminating {
                address,
                backend: backend.address,
                certificate: certificate.clone(),
                key: key.clone(),
            };
            nginx::command(&programs.nginx, &proxy.to_string(), &folder.join(&label))?
        };
        let is_served = || tls::is_served(address, &trusted);
        let server = Server::start_until(&label, &command, PROXY_CORE, address, folder, is_served)?;
        Ok(Contender { server, line: address })
    };
    let contest = Contest {
        name: "tls",
        rival: Peer::Nginx,
        ours: start(Peer::Gatewright)?,
        theirs: start(Peer::Nginx)?,
    };
    let measures = [
        bytes(|contender, time| secured(contender.line, &trusted, Asked::Bulk, nginx::LARGE, time)),
        Measure {
            name: "handshakes",
            unit: "handshakes/CPU-s",
            run: Box::new(|contender, time| {
                let load = secured(contender.line, &trusted, Asked::Handshakes, "/", time)?;
                Ok(number(load.connections))
            }),
        },
    ];
    contest.measure(&measures, effort, figures)
}

fn bytes<'a>(run: impl Fn(&Contender, Duration) -> anyhow::Result<Load> + 'a) -> Measure<'a> {
    Measure {
        name: "megabytes",
        unit: "MB/CPU-s",
        run: Box::new(move |contender, time| Ok(number(run(contender, time)?.bytes) / 1e6)),
    }
}

fn connections<'a>(run: impl Fn(&Contender, Duration) -> anyhow::Result<Load> + 'a) -> Measure<'a> {
    Measure {
        name: "connections",
        unit: "connections/CPU-s",
        run: Box::new(move |contender, time| Ok(number(run(contender, time)?.connections))),
    }
}

impl Contest {
    /// Lets both take turns, and records what came of it, and how ours compares.
    fn measure(&self, measures: &[Measure<'_>], effort: Effort, figures: &mut Figures) -> anyhow::Result<()> {
        let Self {
            name,
            rival,
            ours,
            theirs,
        } = self;
        let mut worst = vec![f64::INFINITY; effort.rounds];
        for measure in measures {
            let (mut our_rounds, mut their_rounds) = (Vec::new(), Vec::new());
            for contender in [ours, theirs] {
                efficiency(measure, contender, Duration::from_secs(1))?;
            }
            for round in 1..=effort.rounds {
                let turns = [
                    (Peer::Gatewright, ours, &mut our_rounds),
                    (*rival, theirs, &mut their_rounds),
                ];
                for (peer, contender, rounds) in turns {
                    let value = efficiency(measure, contender, effort.window())?;
                    say(format_args!(
                        "{name}: round {round} of {}, {:<10} {value:>9.0} {} per CPU-second",
                        effort.rounds,
                        peer.name(),
                        measure.name
                    ));
                    rounds.push(value);
                }
            }
            let compared = ratios(&our_rounds, &their_rounds);
            for (worst, ratio) in worst.iter_mut().zip(&compared) {
                *worst = worst.min(*ratio);
            }
            let rival = rival.label();
            figures.add(format!("proxy.{name}.{}_vs_{rival}", measure.name), "ratio", compared);
            for (label, rounds) in [(Peer::Gatewright.label(), our_rounds), (rival, their_rounds)] {
                let figure = format!("proxy.{name}.{}_per_cpu_second.{label}", measure.name);
                figures.add(figure, measure.unit, rounds);
            }
        }
        figures.add(format!("proxy.{name}.vs_{}", rival.label()), "ratio", worst);
        Ok(())
    }
}

/// How much of something a second of the proxy's processor time brings.
fn efficiency(measure: &Measure<'_>, contender: &Contender, time: Duration) -> anyhow::Result<f64> {
    let process = contender.server.id();
    let before = usage::processor_time(process)?;
    let amount = (measure.run)(contender, time)?;
    let used = usage::processor_time(process)?.saturating_sub(before);
    Ok(amount / used.as_secs_f64())
}

/// Connections for so long; by a process of its own, to have it on the generator's processor.
fn stream(address: SocketAddrV4, name: Option<&str>, carried: Carried, time: Duration) -> anyhow::Result<Load> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["stream", &address.to_string(), carried.label()]);
    command.arg(time.as_millis().to_string());
    if let Some(name) = name {
        command.args(["--name", name]);
    }
    generated(&command, time)
}

/// Requests over TLS for so long; by a process of its own, too.
fn secured(address: SocketAddrV4, authority: &Path, asked: Asked, path: &str, time: Duration) -> anyhow::Result<Load> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["secured", &address.to_string(), asked.label(), path]);
    command.arg(time.as_millis().to_string()).arg(authority);
    generated(&command, time)
}

fn generated(command: &Command, time: Duration) -> anyhow::Result<Load> {
    let text = process::output_on(GENERATOR_CORE, command, time + Duration::from_secs(30))?;
    Ok(serde_json::from_str(&text)?)
}
