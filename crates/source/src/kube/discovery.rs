//! Which version of a kind the API server offers.
//!
//! Asked when a watch starts and again whenever it finds nothing there, because custom resources come, go and change
//! their versions while we run.

use std::time::Duration;

use ::kube::{Client, Error, api::ApiResource};
use gatewright_api::Kind;

use super::failure;

/// An answer about versions takes no longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The resource that a kind is in one version.
pub(crate) fn resource(kind: Kind, version: &str) -> ApiResource {
    let api_version = if kind.group().is_empty() {
        version.to_owned()
    } else {
        format!("{}/{version}", kind.group())
    };
    ApiResource {
        group: kind.group().to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}

/// The version to read: the newest of ours that is offered, or none if the kind is not there at all.
pub(crate) async fn offered(client: &Client, kind: Kind) -> Result<Option<&'static str>, Error> {
    for version in kind.versions() {
        let asked = async {
            if kind.group().is_empty() {
                client.list_core_api_resources(version).await
            } else {
                let group_version = format!("{}/{version}", kind.group());
                client.list_api_group_resources(&group_version).await
            }
        };
        match failure::within(PATIENCE, asked).await {
            Ok(list) if list.resources.iter().any(|resource| resource.name == kind.plural()) => {
                return Ok(Some(version));
            }
            Ok(_) => {}
            Err(Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
