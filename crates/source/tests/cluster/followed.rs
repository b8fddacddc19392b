//! A watch that is followed, alone and together with a writer.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gatewright_api::{Kind, Object, ObjectName};
use gatewright_source::{
    Change,
    kube::{Batch, Cluster, Observed, Standing, Watch, WatchSettings, Writer, WriterSettings, watch, writer},
};
use gatewright_world::desired::Status;
use kube::Client;

use crate::support::{SOON, create, delete, gateway, listener_set, name, route, tls_policy};

/// A watch, and everything it has said so far.
pub(crate) struct Followed {
    pub(crate) watch: Watch,
    pub(crate) objects: BTreeMap<ObjectName, Object>,
    pub(crate) invalid: BTreeMap<ObjectName, (Option<Object>, String)>,
    pub(crate) observed: Vec<Observed>,
    pub(crate) is_synced: bool,
    /// Changes since somebody asked last.
    pub(crate) changes: usize,
}

impl Followed {
    pub(crate) fn start(cluster: &Cluster, controller: &str, namespaces: &[&str]) -> Self {
        let settings = WatchSettings {
            controller: controller.to_owned(),
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
        };
        Self {
            watch: watch(cluster, settings),
            objects: BTreeMap::new(),
            invalid: BTreeMap::new(),
            observed: Vec::new(),
            is_synced: false,
            changes: 0,
        }
    }

    pub(crate) async fn synced(cluster: &Cluster, controller: &str, namespaces: &[&str]) -> Self {
        let mut followed = Self::start(cluster, controller, namespaces);
        followed
            .until("everything is listed", |followed| followed.is_synced)
            .await;
        followed
    }

    fn take(&mut self, batch: Batch) {
        assert!(!self.is_synced || batch.is_synced, "synced stays synced");
        self.is_synced = batch.is_synced;
        self.observed.extend(batch.observed);
        self.changes += batch.changes.len();
        for change in batch.changes {
            match change {
                Change::Apply(object) => {
                    self.invalid.remove(&object.name());
                    self.objects.insert(object.name(), *object);
                }
                Change::Delete(name) => {
                    let was = self.objects.remove(&name).is_some() | self.invalid.remove(&name).is_some();
                    assert!(was, "{name} was deleted and not there");
                }
                Change::Invalid { name, salvaged, error } => {
                    self.objects.remove(&name);
                    self.invalid.insert(name, (salvaged.map(|object| *object), error));
                }
            }
        }
    }

    /// Follows until something holds.
    pub(crate) async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + SOON;
        while !holds(self) {
            let batch = tokio::time::timeout_at(deadline, self.watch.next()).await;
            let batch = batch.unwrap_or_else(|_| panic!("not in time: {what}; {:#?}", self.watch.states().get()));
            self.take(batch.unwrap());
        }
    }

    /// Takes what is there, for a while.
    pub(crate) async fn linger(&mut self, time: Duration) {
        let deadline = tokio::time::Instant::now() + time;
        while let Ok(batch) = tokio::time::timeout_at(deadline, self.watch.next()).await {
            self.take(batch.unwrap());
        }
    }

    pub(crate) fn standing(&self, kind: Kind) -> Vec<Standing> {
        let states = self.watch.states().get();
        states
            .iter()
            .filter(|state| state.kind == kind)
            .map(|state| state.standing)
            .collect()
    }

    pub(crate) fn has(&self, name: &ObjectName) -> bool {
        self.objects.contains_key(name)
    }

    pub(crate) fn in_namespace(&self, kind: Kind, namespace: &str) -> usize {
        let names = self.objects.keys();
        names
            .filter(|name| name.kind == kind && name.namespace == namespace)
            .count()
    }
}

/// A watch and a writer, wired as the binary wires them.
pub(crate) struct Wired {
    pub(crate) followed: Followed,
    pub(crate) writer: Writer,
}

impl Wired {
    pub(crate) async fn start(cluster: &Cluster, settings: WriterSettings) -> Self {
        let namespaces: Vec<&str> = settings.namespaces.iter().map(String::as_str).collect();
        let mut followed = Followed::synced(cluster, &settings.controller, &namespaces).await;
        let writer = writer(cluster, settings);
        writer.observe(std::mem::take(&mut followed.observed));
        Self { followed, writer }
    }

    /// Wants the status of routes and says that this was the plan.
    pub(crate) fn want(&self, wishes: impl IntoIterator<Item = (ObjectName, Option<Status>)>) {
        for (name, status) in wishes {
            self.writer.want(name, status.map(Arc::new));
        }
        self.writer.planned();
    }

    /// Takes in what the watch says until something holds.
    pub(crate) async fn until(&mut self, what: &str, mut holds: impl FnMut(&Followed) -> bool) {
        let deadline = tokio::time::Instant::now() + SOON;
        while !holds(&self.followed) {
            let batch = tokio::time::timeout_at(deadline, self.followed.watch.next()).await;
            self.take(batch.unwrap_or_else(|_| panic!("not in time: {what}")).unwrap());
        }
    }

    pub(crate) fn take(&mut self, batch: Batch) {
        self.writer.observe(batch.observed.clone());
        self.followed.take(batch);
        self.writer.planned();
    }

    /// Takes in what comes, for a while.
    pub(crate) async fn linger(&mut self, time: Duration) {
        let deadline = tokio::time::Instant::now() + time;
        while let Ok(batch) = tokio::time::timeout_at(deadline, self.followed.watch.next()).await {
            self.take(batch.unwrap());
        }
    }

    /// Takes in everything that has happened to objects of a kind by now, and lets the writer act on it: what is made last is
    /// told last.
    pub(crate) async fn caught_up(&mut self, client: &Client, kind: Kind, namespace: &str) {
        let object = match kind {
            Kind::HttpRoute => route(namespace, "last"),
            Kind::Gateway => gateway(namespace, "last", "nobodys"),
            Kind::ListenerSet => listener_set(namespace, "last"),
            Kind::BackendTlsPolicy => tls_policy(namespace, "last"),
            other => panic!("{other} is not needed so far"),
        };
        create(client, kind, object).await;
        let last = name(kind, namespace, "last");
        self.until("what was made last", |followed| followed.has(&last)).await;
        self.settled().await;
        delete(client, &last).await;
        self.until("its end", |followed| !followed.has(&last)).await;
    }

    pub(crate) async fn settled(&self) {
        tokio::time::timeout(SOON, self.writer.settled())
            .await
            .unwrap_or_else(|_| panic!("not settled: {:#?}", self.writer.report()));
    }
}
