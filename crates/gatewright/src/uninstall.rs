//! `gatewright uninstall`: removes what an installation leaves in a cluster, with the rights of whoever calls it.
//!
//! Always the finalizers on GatewayClasses, which nobody else would ever remove; with `--objects` also the Services and
//! EndpointSlices of Gateways. Refuses while a replica still writes, for it would put everything back.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use gatewright_source::kube::{self, ConnectSettings, LeftoverError, Search};

use crate::{
    cluster::writer_lease,
    failure::Failure,
    run::{DEFAULT_CONTROLLER, block_on},
    ui,
};

/// The arguments of `uninstall`.
#[derive(Args)]
pub(crate) struct UninstallArgs {
    /// Remove the Services and EndpointSlices that were made for Gateways, too
    #[arg(long)]
    objects: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// The controller name of the installation
    #[arg(long, value_name = "NAME", env = "GATEWAY_CONTROLLER_NAME", default_value = DEFAULT_CONTROLLER)]
    controller_name: String,
    /// The namespace of its replicas
    #[arg(long, value_name = "NAMESPACE", default_value = "gatewright-system")]
    system_namespace: String,
    /// The kubeconfig, if not KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Removes it.
pub(crate) fn run(args: UninstallArgs) -> Result<ExitCode, Failure> {
    block_on(uninstall(args))
}

async fn uninstall(args: UninstallArgs) -> Result<ExitCode, Failure> {
    let connect = ConnectSettings {
        kubeconfig: args.kubeconfig,
        context: args.context,
    };
    let cluster = kube::connect(&connect)
        .await
        .map_err(|error| Failure::new(error.to_string()).hint(error.hint()))?;
    let asked = |error: LeftoverError| {
        Failure::new(format!("cannot ask {}: {error}", cluster.server()))
            .hint("`kubectl auth whoami` shows as whom you are known; listing and patching need the rights of an administrator")
    };
    let lease = writer_lease(&args.controller_name);
    let writer = kube::current_writer(&cluster, &args.system_namespace, &lease)
        .await
        .map_err(asked)?;
    if let Some(writer) = writer.filter(|_| !args.dry_run) {
        let namespace = &args.system_namespace;
        return Err(Failure::new(format!("replica {writer} is still at work, and would put everything back"))
            .hint(format!("delete its Deployment first: `kubectl --namespace {namespace} delete deployment gatewright`; then wait 15 seconds if it was killed")));
    }
    let search = Search {
        controller: args.controller_name,
        has_objects: args.objects,
    };
    let found = kube::leftovers(&cluster, &search).await.map_err(asked)?;
    let mut failures = 0;
    for leftover in &found {
        if args.dry_run {
            ui::data(&format!("would remove {leftover}"));
            continue;
        }
        match kube::remove(&cluster, leftover).await {
            Ok(()) => ui::data(&format!("removed {leftover}")),
            Err(error) => {
                failures += 1;
                ui::error(&error.to_string(), None);
            }
        }
    }
    if found.is_empty() {
        ui::data("nothing is left");
    }
    if failures == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    Err(
        Failure::new(format!("{} could not be removed", ui::count(failures, "thing")))
            .hint("call it again: what somebody changed meanwhile is then read anew"),
    )
}
