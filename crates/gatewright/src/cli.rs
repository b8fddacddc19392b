//! The command line: which commands exist, and how their results become exit codes.
//!
//! 0 means fine, 1 that something failed or was found, 2 that the command was called wrongly.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{check, crds, demo, docs, echo, failure::Failure, run, status, ui, uninstall};

/// Makes every way into a set of services, from declared Gateway API objects
#[derive(Parser)]
#[command(name = "gatewright", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve what is declared
    Run(Box<run::RunArgs>),
    /// Validate and plan a folder of YAML without serving it
    Check(check::CheckArgs),
    /// Show what a running gatewright serves, and what keeps it from serving the rest
    Status(status::StatusArgs),
    /// Serve the quickstart example and its backends, all in this process
    Demo(demo::DemoArgs),
    /// Serve backends that answer every request with what they received
    Echo(echo::EchoArgs),
    /// Remove what an installation leaves in a cluster: finalizers, and objects when asked
    Uninstall(uninstall::UninstallArgs),
    /// Print the definitions of our own kinds (CRDs) as YAML
    Crds,
    /// Print the version
    Version,
    /// Print a page of the documentation that is made from code
    #[command(hide = true)]
    Docs {
        /// The page
        page: docs::Page,
    },
}

/// Runs the command that the process was called with.
pub fn parse_and_run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors; the kind decides about stream and exit code.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Check(args) => check::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Demo(args) => demo::run(args),
        Command::Echo(args) => echo::run(&args),
        Command::Uninstall(args) => uninstall::run(args),
        Command::Crds => crds::run(),
        Command::Version => {
            ui::data(concat!("gatewright ", env!("CARGO_PKG_VERSION")));
            Ok(ExitCode::SUCCESS)
        }
        Command::Docs { page } => {
            ui::data(&docs::markdown(page));
            Ok(ExitCode::SUCCESS)
        }
    };
    result.unwrap_or_else(|failure: Failure| {
        ui::error(&failure.message, failure.hint.as_deref());
        failure.exit_code()
    })
}
