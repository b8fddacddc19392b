//! Notices when custom resources are defined, changed or removed, and of which version of Gateway API they are.
//!
//! A hint for whoever waits for a kind, who looks at once instead of some seconds later. Where we may not watch definitions,
//! everything still works, by asking now and then, and their versions are not known.

use std::{collections::BTreeMap, time::Duration};

use ::kube::{Client, api::ApiResource};
use gatewright_api::{GATEWAY_GROUP, Kind};
use tokio::sync::{mpsc, watch};

use super::gather::Message;
use crate::kube::{
    backoff::Backoff,
    failure,
    list_watch::{Event, Events, Selection},
    raw::Raw,
};

/// In which version of Gateway API a definition was published.
const BUNDLE_VERSION: &str = "gateway.networking.k8s.io/bundle-version";

/// So many refusals in a row, some seconds apart, are believed.
const MOST_REFUSALS: u32 = 3;

/// Counts up whenever the definition of a kind we read may have changed, and tells the versions of those of Gateway API.
pub(super) async fn follow(client: Client, changed: watch::Sender<u64>, messages: mpsc::Sender<Message>) {
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
    let mut refusals = 0_u32;
    let mut versions = Versions::default();
    loop {
        let (raw, is_there) = match events.next().await {
            Ok(Event::Applied(raw)) => (raw, true),
            Ok(Event::Deleted(raw)) => (raw, false),
            Ok(Event::ListBegins) => {
                versions.known.clear();
                continue;
            }
            Ok(Event::Listed(raw)) => {
                versions.take(&raw, true);
                continue;
            }
            Ok(Event::ListEnds) => {
                backoff.reset();
                refusals = 0;
                is_complaining = false;
                // Something may have happened since the kinds were looked for.
                changed.send_modify(|count| *count += 1);
                if !versions.tell(&messages).await || !versions.listed(&messages).await {
                    return;
                }
                continue;
            }
            Ok(Event::Watching) => continue,
            Err(error) => {
                if !is_complaining {
                    tracing::debug!(
                        message = failure::message(&error),
                        "definitions of custom resources are not watched"
                    );
                    is_complaining = true;
                }
                // A server that goes on refusing does so tomorrow. One that has just started may not know who we are yet, and
                // one that does not answer keeps everyone waiting.
                refusals = match failure::code(&error) {
                    Some(403 | 404) => refusals + 1,
                    _ => 0,
                };
                if refusals >= MOST_REFUSALS && !versions.listed(&messages).await {
                    return;
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
        versions.take(&raw, is_there);
        if !versions.tell(&messages).await {
            return;
        }
    }
}

/// The definitions of Gateway API, each with the version it says it is of.
#[derive(Default)]
struct Versions {
    known: BTreeMap<String, Option<String>>,
    told: Option<BTreeMap<String, Option<String>>>,
    has_listed: bool,
}

impl Versions {
    fn take(&mut self, raw: &Raw, is_there: bool) {
        let Some((_, group)) = raw.name().split_once('.') else {
            return;
        };
        if ![GATEWAY_GROUP, Kind::BackendTrafficPolicy.group()].contains(&group) {
            return;
        }
        if is_there {
            let annotations = raw.metadata.annotations.as_ref();
            let version = annotations.and_then(|annotations| annotations.get(BUNDLE_VERSION));
            self.known.insert(raw.name().to_owned(), version.cloned());
        } else {
            self.known.remove(raw.name());
        }
    }

    /// Tells what is new. Gives whether anybody listens.
    async fn tell(&mut self, messages: &mpsc::Sender<Message>) -> bool {
        if self.told.as_ref() == Some(&self.known) {
            return true;
        }
        self.told = Some(self.known.clone());
        messages.send(Message::Defined(self.known.clone())).await.is_ok()
    }

    /// Says once that everything is told that can be.
    async fn listed(&mut self, messages: &mpsc::Sender<Message>) -> bool {
        if self.has_listed {
            return true;
        }
        self.has_listed = true;
        messages.send(Message::Listed).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(name: &str, version: Option<&str>) -> Raw {
        let annotations = version.map(|version| json!({ BUNDLE_VERSION: version }));
        Raw::of(json!({ "metadata": { "name": name, "annotations": annotations } })).unwrap()
    }

    #[tokio::test]
    async fn versions_of_gateway_api_are_told_once_and_nothing_else_is() {
        let (sender, mut told) = mpsc::channel(8);
        let mut versions = Versions::default();
        versions.take(&definition("gateways.gateway.networking.k8s.io", Some("v1.6.1")), true);
        versions.take(&definition("xmeshes.gateway.networking.x-k8s.io", None), true);
        versions.take(&definition("gatewayconfigs.gatewright.dev", Some("v9")), true);
        assert!(versions.tell(&sender).await && versions.tell(&sender).await);
        let Ok(Message::Defined(first)) = told.try_recv() else {
            panic!("they are new");
        };
        let expected = [
            (
                "gateways.gateway.networking.k8s.io".to_owned(),
                Some("v1.6.1".to_owned()),
            ),
            ("xmeshes.gateway.networking.x-k8s.io".to_owned(), None),
        ];
        assert_eq!(first, expected.into());
        assert!(told.try_recv().is_err(), "said once");
        versions.take(&definition("xmeshes.gateway.networking.x-k8s.io", None), false);
        assert!(versions.tell(&sender).await);
        assert!(matches!(told.try_recv(), Ok(Message::Defined(now)) if now.len() == 1));
        assert!(versions.listed(&sender).await && versions.listed(&sender).await);
        assert!(matches!(told.try_recv(), Ok(Message::Listed)));
        assert!(told.try_recv().is_err());
    }
}
