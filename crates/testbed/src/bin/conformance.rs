//! The conformance suite of Gateway API against Gatewright, in a cluster made for it; `make conformance` calls this.
//!
//! Progress goes to stderr, the sums to stdout. It fails if a test does.

use std::{
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use gatewright_testbed::{
    cluster,
    conformance::{self, Choice, DataPlane},
    say,
};

/// The conformance suite of Gateway API, against Gatewright in a cluster made for it
#[derive(Parser)]
#[command(name = "conformance", max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Cli {
    /// Which profiles to judge, separated by commas
    #[arg(long, value_name = "PROFILES", default_value = conformance::PROFILES)]
    profile: String,
    /// Run only these tests, separated by commas, whether their features are claimed or not; no report is written
    #[arg(long, value_name = "TESTS")]
    test: Option<String>,
    /// Run only a part: 2/3 is every third test from the second on; no report is written
    #[arg(long, value_name = "N/M", default_value = "1/1")]
    part: String,
    /// What serves the Gateways
    #[arg(long, value_enum, default_value_t = DataPlane::Builtin)]
    data_plane: DataPlane,
    /// Judge this program instead of building it now
    #[arg(long, value_name = "PROGRAM")]
    gatewright: Option<PathBuf>,
    #[command(subcommand)]
    order: Option<Order>,
}

#[derive(Subcommand)]
enum Order {
    /// Answer every question about a name with the same address
    #[command(hide = true)]
    Dns {
        #[arg(long, default_value = "0.0.0.0:53")]
        listen: SocketAddr,
        /// Settings of the server that this one stands for; not read
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        ignored: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all that was run passed.
fn run(cli: Cli) -> anyhow::Result<bool> {
    if let Some(Order::Dns { listen, ignored: _ }) = cli.order {
        cluster::dns::serve(listen)?;
        return Ok(true);
    }
    let gatewright = match cli.gatewright.as_deref().map(Path::canonicalize) {
        Some(program) => program?,
        None => cluster::build_gatewright()?,
    };
    let choice = Choice {
        profiles: cli.profile,
        tests: cli.test.filter(|tests| !tests.is_empty()),
        part: cli.part,
        data_plane: cli.data_plane,
    };
    let summary = conformance::run(&choice, &gatewright)?;
    write!(std::io::stdout(), "{summary}")?;
    Ok(summary.is_success())
}
