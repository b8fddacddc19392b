//! The benchmarks' command line; see `docs/benchmarks.md` for what is measured and how.
//!
//! Progress goes to stderr, the table to stdout, the figures to `target/bench/results.json`.

use std::{
    io::Write,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::ensure;
use clap::{Parser, Subcommand};
use gatewright_testbed::{
    bench::{self, Effort},
    figures::Figures,
    load::{
        paced,
        streams::{self, Carried},
        tls::{self, Asked},
    },
    memory::Counting,
    peers,
    programs::{self, Programs},
    report::{self, Machine},
    say,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Compares the proxy with its peers and measures the planner
#[derive(Parser)]
#[command(name = "bench", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    part: Part,
    /// How often everything takes its turn
    #[arg(long, value_name = "N", default_value_t = 5, global = true, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Measure only as much as shows that everything works; the figures mean little
    #[arg(long, global = true)]
    quick: bool,
    /// Measure this program instead of building it now
    #[arg(long, value_name = "PROGRAM", global = true)]
    gatewright: Option<PathBuf>,
    /// Write docs/benchmarks.md and its charts, after a whole run
    #[arg(long, global = true)]
    write_docs: bool,
}

#[derive(Subcommand, Clone, PartialEq, Eq)]
enum Part {
    /// Everything
    All,
    /// The proxy beside nginx, HAProxy and Envoy
    Proxy,
    /// Connections, passed on and ended with TLS, beside HAProxy and nginx
    Connections,
    /// World, plan and the proxy's tables at 1,000, 10,000 and 100,000 routes
    Plan,
    /// A cluster: how soon a thousand routes are accepted; needs root
    Kube,
    /// Print the resident memory of a planned world of so many routes
    #[command(hide = true)]
    Resident {
        /// How many
        routes: usize,
    },
    /// Send by itself over every connection: without end on one address, a line on another
    #[command(hide = true)]
    Source {
        /// Where connections have no end
        bulk: SocketAddrV4,
        /// Where they carry a line
        line: SocketAddrV4,
    },
    /// Make connections to what sends by itself, and print what came as JSON
    #[command(hide = true)]
    Stream {
        /// Where to
        address: SocketAddrV4,
        /// What they carry
        carried: Carried,
        /// For so many milliseconds
        milliseconds: u64,
        /// Open with a client's first message of TLS that asks for this name
        #[arg(long)]
        name: Option<String>,
    },
    /// Ask over TLS, and print what came as JSON
    #[command(hide = true)]
    Secured {
        /// Where
        address: SocketAddrV4,
        /// What for
        asked: Asked,
        /// Which path
        path: String,
        /// For so many milliseconds
        milliseconds: u64,
        /// The file of the authority that is trusted
        authority: PathBuf,
    },
    /// Send requests at a fixed rate and print the latencies as JSON
    #[command(hide = true)]
    Paced {
        /// Where to
        address: SocketAddrV4,
        /// Requests per second
        rate: u32,
        /// For so many milliseconds
        milliseconds: u64,
    },
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let effort = Effort {
        rounds: cli.rounds.into(),
        is_quick: cli.quick,
    };
    match cli.part {
        Part::Resident { routes } => print(&bench::plan::resident(routes)?.to_string()),
        Part::Paced {
            address,
            rate,
            milliseconds,
        } => {
            let plan = paced::Plan {
                address,
                host: peers::HOST.to_owned(),
                path: "/".to_owned(),
                rate: rate.into(),
                time: Duration::from_millis(milliseconds),
            };
            print(&serde_json::to_string(&paced::run(&plan)?)?)
        }
        Part::Source { bulk, line } => streams::backend::serve(bulk, line),
        Part::Stream {
            address,
            carried,
            milliseconds,
            name,
        } => {
            let plan = streams::Plan {
                address,
                name,
                carried,
                time: Duration::from_millis(milliseconds),
            };
            print(&serde_json::to_string(&streams::run(&plan)?)?)
        }
        Part::Secured {
            address,
            asked,
            path,
            milliseconds,
            authority,
        } => {
            let plan = tls::Plan {
                address,
                authority,
                asked,
                path,
                time: Duration::from_millis(milliseconds),
            };
            print(&serde_json::to_string(&tls::run(&plan)?)?)
        }
        part => {
            let is_whole = part == Part::All && !cli.quick;
            ensure!(
                is_whole || !cli.write_docs,
                "--write-docs needs a whole run: `all` without `--quick`"
            );
            let programs = if part == Part::Plan {
                None
            } else {
                // Pods run elsewhere: a path that counts from here would lead them nowhere.
                let program = cli.gatewright.as_deref().map(Path::canonicalize).transpose()?;
                Some(Programs::set_up(program)?)
            };
            measure(&part, programs.as_ref(), effort, cli.write_docs)
        }
    }
}

fn measure(part: &Part, programs: Option<&Programs>, effort: Effort, writes_documentation: bool) -> anyhow::Result<()> {
    let mut machine = Machine::survey(programs, effort.rounds);
    let mut figures = Figures::default();
    if let Some(programs) = programs {
        if matches!(part, Part::All | Part::Proxy) {
            figures.extend(bench::proxy::run(programs, effort)?);
        }
        if matches!(part, Part::All | Part::Connections) {
            figures.extend(bench::connections::run(programs, effort)?);
        }
        if matches!(part, Part::All | Part::Kube) {
            figures.extend(bench::kube::run(programs, effort)?);
        }
    }
    if matches!(part, Part::All | Part::Plan) {
        figures.extend(bench::plan::run(effort)?);
        figures.extend(bench::apply::run(effort)?);
    }
    machine.finish();
    let path = programs::target_folder().join("bench/results.json");
    figures.write(&path)?;
    print(&format!("{}\n{}", machine.lines().join("\n"), report::table(&figures)))?;
    say(format_args!("the figures are in {}", path.display()));
    if writes_documentation {
        let folder = programs::workspace().join("docs");
        report::write_documentation(&folder, &figures, &machine)?;
        say(format_args!("the page is {}", folder.join("benchmarks.md").display()));
    }
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}
