//! A kind that is watched as a whole: its objects in a store, and a counter that moves with every change.

use std::{fmt::Debug, hash::Hash, sync::Arc};

use futures::StreamExt;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        reflector::{self, Store},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};

/// Starts to watch a kind.
pub(in crate::cluster) fn watched<K>(
    api: Api<K>,
    changed: &Arc<watch::Sender<u64>>,
    tasks: &mut JoinSet<()>,
) -> Store<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Default + Eq + Hash + Clone + Send + Sync,
{
    let (store, writer) = reflector::store();
    let changed = Arc::clone(changed);
    let stream = watcher(api, watcher::Config::default())
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer);
    tasks.spawn(stream.for_each(move |_| {
        changed.send_modify(|count| *count += 1);
        futures::future::ready(())
    }));
    store
}
