//! `gatewright demo`: the quickstart example with its backends, in one process, with two lines to try.
//!
//! Serves `examples/quickstart` of the current folder if it is there, so that it can be edited while it is served; else
//! the copy inside the binary, written to a folder that ends with the process. Every backend on this host that the routes
//! use is served by an echo. Listens on loopback only.

mod example;

use std::fmt::Write as _;
use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use gatewright_echo::{EchoMode, EchoSettings};
use gatewright_ir::Endpoints;
use gatewright_world::origin;

use crate::{
    admin::document::GatewaySummary,
    app::{App, AppSettings, SourceSettings},
    echo,
    failure::Failure,
    logs,
    run::{self, ServeArgs, block_on},
    signals::Signals,
    ui,
    view::View,
};
use example::Example;

/// A start takes milliseconds; whatever is not there by then is shown as missing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The arguments of `demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// A folder to serve instead of the quickstart example; its backends on this host are served too
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// Serves until a signal ends it.
pub(crate) fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
    let example = Example::find(args.files)?;
    let settings = AppSettings::new(
        SourceSettings::Folder(example.directory().to_owned()),
        vec![Ipv4Addr::LOCALHOST.into()],
        &args.serve,
    );
    let log = logs::start(args.serve.log);
    block_on(async {
        let mut signals = Signals::catch()?;
        let app = App::start(settings, log).await?;
        tokio::select! {
            _ = tokio::time::timeout(PATIENCE, app.started()) => {}
            () = signals.stop() => return Ok(ExitCode::SUCCESS),
        }
        let view = app.view();
        let mut servers = Vec::new();
        for (service, address) in backends(&view) {
            let settings = EchoSettings::local(EchoMode::Http)
                .with_service(&service)
                .with_address(address.ip(), address.port())
                .with_h2c_port(None);
            servers.push(echo::start(settings).await?);
        }
        ui::data(&introduction(&view, &example));
        let result = run::serve(app, signals, args.serve.drain_timeout).await;
        for server in servers {
            server.stop().await;
        }
        result
    })
}

/// The backends on this host that routes use, with the names of their Services.
fn backends(view: &View) -> BTreeSet<(String, SocketAddr)> {
    let mut backends = BTreeSet::new();
    for cluster in view.gateways.values().flat_map(|gateway| gateway.clusters.values()) {
        let Endpoints::Known(endpoints) = &cluster.endpoints else {
            continue;
        };
        let service = origin::parse(&cluster.origin)
            .map(|(object, _)| object.name)
            .unwrap_or_default();
        for endpoint in endpoints.iter().filter(|endpoint| endpoint.address.ip().is_loopback()) {
            backends.insert((service.clone(), endpoint.address));
        }
    }
    backends
}

/// What listens where, and what to try.
fn introduction(view: &View, example: &Example) -> String {
    let directory = example.directory().display();
    let mut text = String::new();
    let mut plain = None;
    let mut tls = None;
    let gateways = view
        .objects
        .iter()
        .filter_map(|(id, shown)| GatewaySummary::of(id, shown));
    for gateway in gateways {
        for listener in &gateway.listeners {
            let name = format!(
                "gateway {}/{}, listener {}",
                gateway.namespace, gateway.name, listener.name
            );
            if !listener.programmed.as_ref().is_some_and(|verdict| verdict.holds) {
                let _ = writeln!(text, "{name} does not listen; `gatewright status` says why");
                continue;
            }
            let (scheme, first) = match listener.protocol.as_str() {
                "HTTPS" => ("https", &mut tls),
                _ => ("http", &mut plain),
            };
            let url = format!("{scheme}://localhost:{}", listener.port);
            let _ = writeln!(text, "{name} listens on {url}");
            first.get_or_insert(url);
        }
    }
    if plain.is_some() || tls.is_some() {
        text.push_str("\ntry:\n");
    }
    if let Some(url) = plain {
        let _ = writeln!(text, "  curl {url}/hello");
    }
    if let Some(url) = tls {
        let _ = writeln!(text, "  curl -k -H 'x-colour: green' {url}/hello");
    }
    let _ = write!(
        text,
        "\nedit a file in {directory} and try again: a saved file is live at once\n`gatewright status` shows what is served; Ctrl-C stops\n"
    );
    text
}
