//! `gatewright check DIR`: everything that `run` would complain about, without serving.
//!
//! Loads and validates the folder, plans it as if every listener had opened, and prints each finding with its place, code
//! and hint. Made for people and for CI: 0 is fine, 1 means findings, 2 that it was called wrongly.

mod folder;
mod render;

use std::{net::IpAddr, path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use gatewright_plan::PlanSettings;

use crate::{
    failure::Failure,
    run::{DEFAULT_CONTROLLER, DEFAULT_HOST_ADDRESS},
    ui,
};

/// The arguments of `check`.
#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The folder to check
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// How to print what was found
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// Exit with 1 for warnings too
    #[arg(long)]
    strict: bool,
    /// GatewayClasses of this controller name are checked as ours
    #[arg(long, value_name = "NAME", env = "GATEWAY_CONTROLLER_NAME", default_value = DEFAULT_CONTROLLER)]
    controller_name: String,
    /// Addresses on which Gateways listen when neither they nor a GatewayConfig name one
    #[arg(long = "host-address", value_name = "IP", default_values_t = [DEFAULT_HOST_ADDRESS])]
    host_addresses: Vec<IpAddr>,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Text,
    /// For machines
    Json,
}

/// Checks a folder.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let settings = PlanSettings {
        controller_name: args.controller_name.as_str().into(),
        host_addresses: args.host_addresses.clone(),
        allow_local_backends: true,
        ..PlanSettings::default()
    };
    let report = folder::check(&args.directory, settings)?;
    ui::data(&match args.output {
        Output::Text => render::text(&report),
        Output::Json => render::json(&report),
    });
    let fails = report.errors() > 0 || (args.strict && report.warnings() > 0);
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
