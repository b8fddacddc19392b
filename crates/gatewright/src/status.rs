//! `gatewright status`: asks a running gatewright what it serves, and prints it.
//!
//! A client of the admin API and nothing else: the table is made of the same document that `-o json` prints the objects of.

mod client;
mod table;

use std::{net::SocketAddr, process::ExitCode};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::{
    admin::document::{Document, Selection},
    failure::Failure,
    ui,
};

/// The arguments of `status`.
#[derive(Args)]
pub(crate) struct StatusArgs {
    /// What to show: a kind (gatewayclass, gateway, listenerset, httproute, …) or one object (gateway/NAME); else everything
    #[arg(value_name = "KIND[/NAME]")]
    object: Option<String>,
    /// Only objects of this namespace
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,
    /// The admin address of the running gatewright
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "GATEWRIGHT_ADMIN",
        default_value = "127.0.0.1:9870"
    )]
    admin: SocketAddr,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    Table,
    /// A List of the objects with their full status
    Json,
    /// The same as YAML
    Yaml,
}

/// Prints the status.
pub(crate) fn run(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let selection = selection(args)?;
    let document = client::fetch(args.admin, &selection)?;
    if let Some(name) = &selection.name
        && document.objects.is_empty()
    {
        let object = format!("{} {name}", selection.kind.as_deref().unwrap_or_default());
        return Err(Failure::new(format!("there is no {object}")).hint("`gatewright status` lists what there is"));
    }
    match args.output {
        Output::Table => ui::data(&table::render(&document, &selection)),
        Output::Json => {
            warn_of_files(&document);
            ui::data(&format!("{:#}\n", list(&document)));
        }
        Output::Yaml => {
            warn_of_files(&document);
            let text = serde_saphyr::to_string(&list(&document));
            ui::data(&text.map_err(|error| Failure::new(format!("cannot be written as YAML: {error}")))?);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn selection(args: &StatusArgs) -> Result<Selection, Failure> {
    let mut selection = Selection {
        namespace: args.namespace.clone(),
        ..Selection::default()
    };
    if let Some(object) = &args.object {
        let (kind, name) = match object.split_once('/') {
            Some((kind, name)) => (kind, Some(name)),
            None => (object.as_str(), None),
        };
        let kind = Selection::kind_of(kind).ok_or_else(|| {
            Failure::usage(format!("{kind:?} is not a kind that has a status"))
                .hint("write gatewayclass, gateway, listenerset, a kind of routes or of policies, or one object such as gateway/NAME")
        })?;
        selection.kind = Some(kind.as_str().to_owned());
        selection.name = name.map(str::to_owned);
    }
    Ok(selection)
}

fn list(document: &Document) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": document.objects })
}

/// Problems of files belong to no object, so a List cannot hold them.
fn warn_of_files(document: &Document) {
    for finding in document.problems.iter().filter(|finding| finding.place.is_some()) {
        ui::note(&format!("{finding:#}"));
    }
}
