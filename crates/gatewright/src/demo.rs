//! `gatewright demo`: the quickstart example with its two backends, in one process, with two lines to try.
//!
//! Serves `examples/quickstart` of the current folder if it is there, so that it can be edited while it is served; else
//! the copy inside the binary, written to a folder that ends with the process. Listens on loopback only.

mod example;

use std::{net::Ipv4Addr, path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use gatewright_echo::{EchoMode, EchoSettings};
use gatewright_ir::Protocol;

use crate::{
    app::{App, AppSettings},
    echo,
    failure::Failure,
    logs,
    run::{self, ServeArgs, block_on},
    signals::Signals,
    ui,
    view::View,
};
use example::Example;

/// The backends that the example's EndpointSlices name.
const SERVICES: [(&str, u16); 2] = [("blue", 9101), ("green", 9102)];

/// A start takes milliseconds; whatever is not there by then is shown as missing.
const PATIENCE: Duration = Duration::from_secs(5);

/// The arguments of `demo`.
#[derive(Args)]
pub(crate) struct DemoArgs {
    /// A folder to serve instead of the quickstart example
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
}

/// Serves until a signal ends it.
pub(crate) fn run(args: DemoArgs) -> Result<ExitCode, Failure> {
    let example = Example::find(args.files)?;
    let settings = AppSettings::new(
        example.directory().to_owned(),
        vec![Ipv4Addr::LOCALHOST.into()],
        &args.serve,
    );
    let log = logs::start(args.serve.log);
    block_on(async {
        let mut signals = Signals::catch()?;
        let mut backends = Vec::new();
        for (name, port) in SERVICES {
            let settings = EchoSettings::local(EchoMode::Http)
                .with_service(name)
                .with_address(Ipv4Addr::LOCALHOST.into(), port)
                .with_h2c_port(None);
            backends.push(echo::start(settings).await?);
        }
        let app = App::start(settings, log).await?;
        tokio::select! {
            _ = tokio::time::timeout(PATIENCE, app.started()) => {}
            () = signals.stop() => return Ok(ExitCode::SUCCESS),
        }
        ui::data(&introduction(&app.view(), &example));
        let result = run::serve(app, signals, args.serve.drain_timeout).await;
        for backend in backends {
            backend.stop().await;
        }
        result
    })
}

/// What listens where, and what to try.
fn introduction(view: &View, example: &Example) -> String {
    let directory = example.directory().display();
    let mut text = String::new();
    let mut plain = None;
    let mut tls = None;
    for gateway in view.gateways.values() {
        for listener in &gateway.listeners {
            let (scheme, first) = match listener.protocol {
                Protocol::Http => ("http", &mut plain),
                Protocol::Https { .. } => ("https", &mut tls),
            };
            let url = format!("{scheme}://localhost:{}", listener.port);
            text.push_str(&format!("{} listens on {url}\n", listener.origin));
            first.get_or_insert(url);
        }
    }
    if plain.is_some() || tls.is_some() {
        text.push_str("\ntry:\n");
    } else {
        text.push_str("nothing can be served; `gatewright status` says why\n");
    }
    if let Some(url) = plain {
        text.push_str(&format!("  curl {url}/hello\n"));
    }
    if let Some(url) = tls {
        text.push_str(&format!("  curl -k -H 'x-colour: green' {url}/hello\n"));
    }
    text.push_str(&format!(
        "\nedit a file in {directory} and try again: a saved file is live at once\n`gatewright status` shows what is served; Ctrl-C stops\n"
    ));
    text
}
