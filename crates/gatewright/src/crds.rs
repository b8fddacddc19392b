//! `gatewright crds`: the definitions of our own kinds, for `gatewright crds | kubectl apply --server-side -f -`.
//!
//! They are those of `deploy/crds`; a test holds the two equal.

use std::process::ExitCode;

use crate::{failure::Failure, ui};

/// Prints them, one YAML document each.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let definitions = gatewright_api::definitions().map_err(|error| unreadable(&error))?;
    let mut documents = Vec::new();
    for definition in definitions {
        documents.push(serde_saphyr::to_string(&definition).map_err(|error| unreadable(&error))?);
    }
    ui::data(&documents.join("---\n"));
    Ok(ExitCode::SUCCESS)
}

/// Cannot be, because the definitions are the same in every run and a test prints them.
fn unreadable(error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("the definitions cannot be written: {error}"))
}
