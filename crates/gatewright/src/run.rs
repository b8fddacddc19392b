//! `gatewright run`: serves a folder or a cluster until a signal ends it.
//!
//! Reads the arguments, starts the [`App`] on a small runtime of its own, and answers to signals. SIGINT and SIGTERM
//! drain, a second one forces the end; SIGHUP looks at the files again.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;

use crate::{
    addresses::Bind,
    app::{App, AppSettings, SourceSettings},
    cluster::ClusterArgs,
    failure::Failure,
    logs::{self, LogSettings},
    signals::{Request, Signals},
};

/// How the process serves; shared by `run` and `demo`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Where to answer `gatewright status`; keep it on loopback
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9870")]
    pub(crate) admin: Bind,
    /// Where to answer /healthz and /readyz
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9871")]
    pub(crate) health_probe_bind_address: Bind,
    /// Where to answer /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9871")]
    pub(crate) metrics_bind_address: Bind,
    /// GatewayClasses of this controller name are served
    #[arg(long, value_name = "NAME", env = "GATEWAY_CONTROLLER_NAME", default_value = DEFAULT_CONTROLLER)]
    pub(crate) controller_name: String,
    /// Threads that carry traffic; 0 for one per processor
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) workers: usize,
    /// How long open requests may take to end after a signal to stop
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(crate) drain_timeout: Duration,
    #[command(flatten)]
    pub(crate) log: LogSettings,
}

/// The arguments of `run`.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Serve the YAML and JSON files of this folder, and follow their changes; without it a cluster is served
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Addresses of this host on which Gateways listen when neither they nor a GatewayConfig name one
    #[arg(long = "host-address", value_name = "IP", default_value = "0.0.0.0")]
    host_addresses: Vec<IpAddr>,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// The controller name when none is given.
pub(crate) const DEFAULT_CONTROLLER: &str = "gatewright.dev/gateway-controller";

/// The addresses that a folder is checked with when none are given.
pub(crate) const DEFAULT_HOST_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Serves.
pub(crate) fn run(args: RunArgs) -> Result<ExitCode, Failure> {
    let source = match args.files {
        Some(directory) => SourceSettings::Folder(directory),
        None => SourceSettings::Cluster(args.cluster.into()),
    };
    let settings = AppSettings::new(source, args.host_addresses, &args.serve);
    let log = logs::start(args.serve.log);
    block_on(async {
        let signals = Signals::catch()?;
        let app = App::start(settings, log).await?;
        serve(app, signals, args.serve.drain_timeout).await
    })
}

/// Runs a command on a runtime of its own. What is still under way when it returns does not hold up the end.
pub(crate) fn block_on(command: impl Future<Output = Result<ExitCode, Failure>>) -> Result<ExitCode, Failure> {
    let runtime = control_runtime()?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}

/// The runtime of everything that is neither traffic nor planning.
pub(crate) fn control_runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))
}

/// Serves until a signal ends it.
pub(crate) async fn serve(app: App, mut signals: Signals, grace: Duration) -> Result<ExitCode, Failure> {
    while signals.next().await == Request::Rescan {
        app.rescan();
    }
    tracing::info!(?grace, "stopping: open requests may end, a second signal cuts them off");
    tokio::select! {
        () = app.stop(grace) => {
            tracing::info!("stopped");
            Ok(ExitCode::SUCCESS)
        }
        () = signals.stop() => {
            tracing::warn!("stopped by force: open requests were cut off");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Gateway API's own notation of durations.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration: gatewright_api::Duration = text
        .parse()
        .map_err(|_| "write a duration such as 30s, 500ms or 1m30s".to_owned())?;
    Ok(Duration::new(duration.as_secs(), duration.subsec_nanos()))
}
