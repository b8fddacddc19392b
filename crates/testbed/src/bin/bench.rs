//! The benchmarks' command line; see `docs/benchmarks.md` for what is measured and how.

use clap::{Parser, Subcommand};
use gatewright_testbed::{bench::{self, Effort}, memory::Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Compares the proxy with its peers and measures the planner
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    Plan,
    Resident { routes: usize },
}

fn main() -> anyhow::Result<()> {
    use std::io::Write;
    match Cli::parse().part {
        Part::Plan => {
            let f = bench::plan::run(Effort { rounds: 5, is_quick: false })?;
            for (name, figure) in f.iter() {
                writeln!(std::io::stdout(), "{name} {:.2} {} {:?}", figure.value, figure.unit, figure.rounds)?;
            }
        }
        Part::Resident { routes } => writeln!(std::io::stdout(), "{}", bench::plan::resident(routes)?)?,
    }
    Ok(())
}
