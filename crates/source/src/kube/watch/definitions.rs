//! Notices when custom resources are defined, changed or removed.
//!
//! A hint only: whoever waits for a kind looks at once instead of some seconds later. Where we may not watch definitions,
//! everything still works, by asking now and then.

use std::{pin::pin, time::Duration};

use ::kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::watcher,
};
use futures::StreamExt;
use gatewright_api::Kind;
use tokio::sync::watch;

use crate::kube::{backoff::Backoff, resume::TIMEOUT};

/// Counts up whenever the definition of a kind we read may have changed.
pub(super) async fn follow(client: Client, changed: watch::Sender<u64>) {
    let resource = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client, &resource);
    let mut events = pin!(watcher(api, watcher::Config::default().timeout(TIMEOUT)));
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
    let mut is_complaining = false;
    while let Some(event) = events.next().await {
        let object = match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::Delete(object)) => object,
            Ok(watcher::Event::InitDone) => {
                backoff.reset();
                is_complaining = false;
                // Something may have happened since the kinds were looked for.
                changed.send_modify(|count| *count += 1);
                continue;
            }
            Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => continue,
            Err(error) => {
                if !is_complaining {
                    tracing::debug!(%error, "definitions of custom resources are not watched");
                    is_complaining = true;
                }
                tokio::time::sleep(backoff.next()).await;
                continue;
            }
        };
        let name = object.metadata.name.unwrap_or_default();
        let is_of_ours = |kind: &&Kind| {
            let rest = name.strip_prefix(kind.plural());
            rest.and_then(|rest| rest.strip_prefix('.')) == Some(kind.group())
        };
        if Kind::ALL.iter().any(|kind| is_of_ours(&kind)) {
            changed.send_modify(|count| *count += 1);
        }
    }
}
