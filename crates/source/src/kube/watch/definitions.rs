//! Notices when custom resources are defined, changed or removed.
//!
//! A hint only: whoever waits for a kind looks at once instead of some seconds later. Where we may not watch definitions,
//! everything still works, by asking now and then.

use std::time::Duration;

use ::kube::{Client, api::ApiResource};
use gatewright_api::Kind;
use tokio::sync::watch;

use crate::kube::{
    backoff::Backoff,
    failure,
    list_watch::{Event, Events, Selection},
};

/// Counts up whenever the definition of a kind we read may have changed.
pub(super) async fn follow(client: Client, changed: watch::Sender<u64>) {
    let resource = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let selection = Selection {
        is_metadata_only: true,
        ..Selection::default()
    };
    let mut events = Events::new(client, &resource, selection);
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(5));
    let mut is_complaining = false;
    loop {
        let raw = match events.next().await {
            Ok(Event::Applied(raw) | Event::Deleted(raw)) => raw,
            Ok(Event::ListEnds) => {
                backoff.reset();
                is_complaining = false;
                // Something may have happened since the kinds were looked for.
                changed.send_modify(|count| *count += 1);
                continue;
            }
            Ok(Event::ListBegins | Event::Listed(_) | Event::Watching) => continue,
            Err(error) => {
                if !is_complaining {
                    tracing::debug!(
                        message = failure::message(&error),
                        "definitions of custom resources are not watched"
                    );
                    is_complaining = true;
                }
                tokio::time::sleep(backoff.next()).await;
                continue;
            }
        };
        let name = raw.name();
        let is_of_ours = |kind: &&Kind| {
            let rest = name.strip_prefix(kind.plural());
            rest.and_then(|rest| rest.strip_prefix('.')) == Some(kind.group())
        };
        if Kind::ALL.iter().any(|kind| is_of_ours(&kind)) {
            changed.send_modify(|count| *count += 1);
        }
    }
}
