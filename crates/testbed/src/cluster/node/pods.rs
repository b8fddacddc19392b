//! All pods: every pending one is taken, and every taken one has a worker.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use kube::{
    Api, ResourceExt,
    api::PostParams,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    NODE_NAME, Node,
    events::{self, Tone},
    pod,
};

/// Watches all pods for as long as the node lives.
pub(super) async fn run(node: Arc<Node>) {
    let mut events = watcher(Api::<Pod>::all(node.client.clone()), watcher::Config::default())
        .default_backoff()
        .modify(|pod| pod.managed_fields_mut().clear())
        .boxed();
    let mut crew = Crew {
        node,
        workers: HashMap::new(),
        tasks: JoinSet::new(),
    };
    let mut listed = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(pod)) => crew.see(pod),
            Ok(Event::Delete(pod)) => crew.lose(&pod.uid().unwrap_or_default()),
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => {
                listed.extend(pod.uid());
                crew.see(pod);
            }
            Ok(Event::InitDone) => crew.keep_only(&listed),
            // The watch is tried again, and pods go on meanwhile.
            Err(_) => {}
        }
        crew.forget_finished();
    }
}

struct Crew {
    node: Arc<Node>,
    /// What each worker is told: the newest version of its pod, or that it is gone.
    workers: HashMap<String, watch::Sender<Option<Arc<Pod>>>>,
    tasks: JoinSet<()>,
}

impl Crew {
    fn see(&mut self, pod: Pod) {
        let Some(uid) = pod.uid() else { return };
        if let Some(worker) = self.workers.get(&uid) {
            worker.send_replace(Some(Arc::new(pod)));
            return;
        }
        let spec = pod.spec.as_ref();
        let node_name = spec.and_then(|spec| spec.node_name.as_deref());
        let is_held_back = spec
            .and_then(|spec| spec.scheduling_gates.as_ref())
            .is_some_and(|gates| !gates.is_empty());
        match node_name {
            None if !is_held_back && pod.metadata.deletion_timestamp.is_none() => {
                self.tasks.spawn(take(Arc::clone(&self.node), pod));
            }
            Some(NODE_NAME) => {
                let (sender, receiver) = watch::channel(Some(Arc::new(pod)));
                self.workers.insert(uid, sender);
                self.tasks.spawn(pod::run(Arc::clone(&self.node), receiver));
            }
            _ => {}
        }
    }

    fn lose(&mut self, uid: &str) {
        if let Some(worker) = self.workers.remove(uid) {
            worker.send_replace(None);
        }
    }

    fn keep_only(&mut self, listed: &HashSet<String>) {
        let lost: Vec<String> = self
            .workers
            .keys()
            .filter(|uid| !listed.contains(*uid))
            .cloned()
            .collect();
        for uid in lost {
            self.lose(&uid);
        }
    }

    fn forget_finished(&mut self) {
        // The sender stays until the pod is gone, so that a late version of the pod does not start another worker.
        while self.tasks.try_join_next().is_some() {}
    }
}

/// Says that a pod is this node's to run.
async fn take(node: Arc<Node>, pod: Pod) {
    let pods: Api<Pod> = Api::namespaced(node.client.clone(), &pod.namespace().unwrap_or_default());
    let name = pod.name_any();
    let mut binding = Binding {
        target: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(NODE_NAME.to_owned()),
            ..ObjectReference::default()
        },
        ..Binding::default()
    };
    binding.metadata.name = Some(name.clone());
    binding.metadata.uid = pod.uid();
    loop {
        let parameters = PostParams::default();
        match pods
            .create_subresource::<_, Value>("binding", &name, &parameters, &binding)
            .await
        {
            Ok(_) => break,
            // The pod is gone, or taken already.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
            Err(_) => sleep(Duration::from_secs(1)).await,
        }
    }
    let message = format!("assigned {}/{name} to {NODE_NAME}", pod.namespace().unwrap_or_default());
    events::tell(&node.client, &pod, Tone::Normal, "Scheduled", &message).await;
}
