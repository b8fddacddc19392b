//! One pod: its network, its volumes, its containers, and what is reported about it, from the moment the node takes it
//! until it is gone.

mod container;
mod contents;
mod environment;
mod expansion;
mod fields;
mod logs;
mod probes;
mod sandbox;
mod view;
mod volumes;

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, PodStatus};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;
use tokio::{
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::sleep,
};

pub(super) use logs::{ContainerKey, Line, Log, LogBook};

use self::{
    container::{Deadline, RestartPolicy, is_ending, supervise},
    fields::Addresses,
    view::{ContainerView, End, PodView, State, Termination},
    volumes::Volumes,
};
use super::{
    Node,
    events::{self, Tone},
};
use crate::cluster::network::{Network, PodNetwork};

/// How often something that failed is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// How often volumes are looked at without a reason, so that tokens are replaced before they expire.
const ROUND: Duration = Duration::from_mins(1);

/// Changes of Secrets and ConfigMaps come in bursts.
const BURST: Duration = Duration::from_millis(200);

/// Why something cannot be done yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    /// As kubelets call it.
    reason: &'static str,
    message: String,
}

impl Problem {
    fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message }
    }
}

/// Which container of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Init(usize),
    Main(usize),
}

/// What the parts of a pod share.
struct PodContext {
    node: Arc<Node>,
    namespace: String,
    name: String,
    uid: String,
    network: PodNetwork,
    folder: PathBuf,
    started: Timestamp,
    /// The newest version that was seen.
    object: watch::Receiver<Option<Arc<Pod>>>,
    /// The version it began with, for the time after it is gone.
    first: Arc<Pod>,
    view: watch::Sender<PodView>,
}

impl PodContext {
    fn object(&self) -> Arc<Pod> {
        self.object.borrow().clone().unwrap_or_else(|| Arc::clone(&self.first))
    }

    fn addresses(&self) -> Addresses {
        Addresses {
            pod: self.network.address,
            node: self.node.address(),
        }
    }

    fn view_of(&self, slot: Slot) -> ContainerView {
        let view = self.view.borrow();
        let found = match slot {
            Slot::Init(index) => view.init_containers.get(index),
            Slot::Main(index) => view.containers.get(index),
        };
        found
            .cloned()
            .unwrap_or_else(|| ContainerView::of(&Container::default(), "Unknown"))
    }

    fn change(&self, slot: Slot, change: impl FnOnce(&mut ContainerView)) {
        self.view.send_modify(|view| {
            let found = match slot {
                Slot::Init(index) => view.init_containers.get_mut(index),
                Slot::Main(index) => view.containers.get_mut(index),
            };
            if let Some(found) = found {
                change(found);
            }
        });
    }

    /// Says what a container waits for.
    fn wait(&self, slot: Slot, reason: &str, message: Option<String>) {
        self.change(slot, |view| {
            let reason = reason.to_owned();
            view.state = State::Waiting { reason, message };
            (view.is_ready, view.is_started) = (false, false);
        });
    }

    /// Says how a run of a container ended.
    fn end(&self, slot: Slot, termination: Termination) {
        self.change(slot, |view| {
            view.last = Some(termination.clone());
            view.is_ready = matches!(slot, Slot::Init(_)) && termination.code == 0;
            view.is_started = false;
            view.state = State::Terminated(termination);
        });
    }

    async fn tell(&self, tone: Tone, reason: &str, message: &str) {
        events::tell(&self.node.client, &*self.first, tone, reason, message).await;
    }
}

/// Runs a pod until it is gone.
pub(super) async fn run(node: Arc<Node>, object: watch::Receiver<Option<Arc<Pod>>>) {
    let Some(first) = object.borrow().clone() else { return };
    let Some(network) = make_network(&node, &first, &object).await else {
        delete(&node, &first).await;
        return;
    };
    let folder = node.settings.folder.join(first.uid().unwrap_or_default());
    let context = Arc::new(PodContext {
        namespace: first.namespace().unwrap_or_default(),
        name: first.name_any(),
        uid: first.uid().unwrap_or_default(),
        network,
        folder,
        started: Timestamp::now(),
        object: object.clone(),
        view: watch::Sender::new(first_view(&first)),
        first,
        node,
    });
    let (end, deadline) = watch::channel(None);
    let mut helpers = JoinSet::new();
    helpers.spawn(report(Arc::clone(&context)));
    let work = tokio::spawn(work(Arc::clone(&context), deadline));
    watch_for_the_end(object, &end).await;
    let _ = work.await;
    helpers.shutdown().await;
    remove(&context).await;
}

/// Makes the pod's network, again and again until it can be made; none if the pod is to end before.
async fn make_network(node: &Arc<Node>, pod: &Pod, object: &watch::Receiver<Option<Arc<Pod>>>) -> Option<PodNetwork> {
    let is_on_host = pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    if is_on_host {
        return Some(PodNetwork {
            namespace: node.settings.network.path(),
            address: node.address(),
        });
    }
    loop {
        if is_to_end(object.borrow().as_deref()) {
            return None;
        }
        let number = node.pods.fetch_add(1, Ordering::Relaxed) + 1;
        let network = node.settings.network.clone();
        match spawn_blocking(move || network.add_pod(number)).await {
            Ok(Ok(network)) => return Some(network),
            Ok(Err(error)) => {
                events::tell(
                    &node.client,
                    pod,
                    Tone::Warning,
                    "FailedCreatePodSandBox",
                    &format!("{error:#}"),
                )
                .await;
            }
            Err(_) => return None,
        }
        sleep(RETRY).await;
    }
}

fn first_view(pod: &Pod) -> PodView {
    let Some(spec) = &pod.spec else {
        return PodView::default();
    };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let reason = if init.is_empty() {
        "ContainerCreating"
    } else {
        "PodInitializing"
    };
    PodView {
        init_containers: init
            .iter()
            .map(|container| ContainerView::of(container, "PodInitializing"))
            .collect(),
        containers: spec
            .containers
            .iter()
            .map(|container| ContainerView::of(container, reason))
            .collect(),
        is_initialized: init.is_empty(),
        end: None,
    }
}

fn is_to_end(pod: Option<&Pod>) -> bool {
    pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
}

/// Returns when the pod is to end, having said by when; goes on to cut the time short until the pod is gone.
async fn watch_for_the_end(mut object: watch::Receiver<Option<Arc<Pod>>>, end: &watch::Sender<Option<Instant>>) {
    loop {
        let grace = match object.borrow_and_update().as_deref() {
            None => Some(0),
            Some(pod) if is_to_end(Some(pod)) => Some(pod.metadata.deletion_grace_period_seconds.unwrap_or(0)),
            Some(_) => None,
        };
        if let Some(grace) = grace {
            let deadline = Instant::now() + Duration::from_secs(u64::try_from(grace).unwrap_or_default());
            end.send_modify(|known| *known = Some(known.map_or(deadline, |known| known.min(deadline))));
        }
        tokio::select! {
            // All containers have ended: nobody listens any more.
            () = end.closed() => if grace.is_some() { return },
            changed = object.changed() => if changed.is_err() {
                end.send_replace(Some(Instant::now()));
                return;
            },
        }
        if end.is_closed() && grace.is_none() {
            // The work is done, but the pod stays until somebody deletes it.
            let _ = object.wait_for(|pod| is_to_end(pod.as_deref())).await;
            return;
        }
    }
}

/// Everything that the pod is for.
async fn work(pod: Arc<PodContext>, deadline: Deadline) {
    let mut helpers = JoinSet::new();
    let mut volumes = Volumes::new(pod.folder.join("volumes"), &pod.first, pod.addresses());
    if !fill_volumes(&pod, &mut volumes, &deadline).await {
        return;
    }
    helpers.spawn(keep_volumes(Arc::clone(&pod), volumes));
    let spec = pod.first.spec.clone().unwrap_or_default();
    let policy = match spec.restart_policy.as_deref() {
        Some("Never") => RestartPolicy::Never,
        Some("OnFailure") => RestartPolicy::OnFailure,
        _ => RestartPolicy::Always,
    };
    let Some(sidecars) = initialize(&pod, spec.init_containers.unwrap_or_default(), policy, &deadline).await else {
        return;
    };
    pod.view.send_modify(|view| {
        view.is_initialized = true;
        for container in &mut view.containers {
            container.state = State::Waiting {
                reason: "ContainerCreating".to_owned(),
                message: None,
            };
        }
    });
    let containers =
        spec.containers.into_iter().enumerate().map(|(index, container)| {
            supervise(Arc::clone(&pod), Slot::Main(index), container, policy, deadline.clone())
        });
    let codes = join_all(containers).await;
    if deadline.borrow().is_some() {
        // They have been asked to end with the others.
        sidecars.join_all().await;
    } else {
        drop(sidecars);
        let end = if codes.iter().all(|code| *code == Some(0)) {
            End::Succeeded
        } else {
            End::Failed
        };
        pod.view.send_modify(|view| view.end = Some(end));
    }
}

/// Runs the init containers one after the other. Returns those that go on beside the others; none if the pod ends here.
async fn initialize(
    pod: &Arc<PodContext>,
    containers: Vec<Container>,
    policy: RestartPolicy,
    deadline: &Deadline,
) -> Option<JoinSet<Option<i32>>> {
    let policy = if policy == RestartPolicy::Never {
        policy
    } else {
        RestartPolicy::OnFailure
    };
    let mut sidecars = JoinSet::new();
    for (index, container) in containers.into_iter().enumerate() {
        let slot = Slot::Init(index);
        if container.restart_policy.as_deref() == Some("Always") {
            let task = supervise(
                Arc::clone(pod),
                slot,
                container,
                RestartPolicy::Always,
                deadline.clone(),
            );
            sidecars.spawn(task);
            let mut view = pod.view.subscribe();
            let mut deadline = deadline.clone();
            let is_started = |view: &PodView| view.init_containers.get(index).is_some_and(|view| view.is_started);
            let goes_on = tokio::select! {
                _ = view.wait_for(is_started) => true,
                () = is_ending(&mut deadline) => false,
            };
            if !goes_on {
                sidecars.join_all().await;
                return None;
            }
            continue;
        }
        let code = supervise(Arc::clone(pod), slot, container, policy, deadline.clone()).await;
        if deadline.borrow().is_some() {
            return None;
        }
        if code != Some(0) {
            pod.view.send_modify(|view| view.end = Some(End::Failed));
            return None;
        }
    }
    Some(sidecars)
}

/// Writes the volumes for the first time. Returns whether it came to that.
async fn fill_volumes(pod: &Arc<PodContext>, volumes: &mut Volumes, deadline: &Deadline) -> bool {
    let mut told = None;
    let mut deadline = deadline.clone();
    loop {
        if deadline.borrow().is_some() {
            return false;
        }
        let Err(problem) = volumes.refresh(&pod.node, &pod.object()).await else {
            return true;
        };
        if told.as_ref() != Some(&problem) {
            pod.tell(Tone::Warning, problem.reason, &problem.message).await;
            told = Some(problem);
        }
        tokio::select! {
            () = sleep(RETRY) => {}
            () = is_ending(&mut deadline) => return false,
        }
    }
}

/// Keeps the volumes as their sources are.
async fn keep_volumes(pod: Arc<PodContext>, mut volumes: Volumes) {
    let mut sources = pod.node.sources.clone();
    let mut object = pod.object.clone();
    loop {
        tokio::select! {
            Ok(()) = sources.changed() => {}
            Ok(()) = object.changed() => {}
            () = sleep(ROUND) => {}
        }
        sleep(BURST).await;
        // What is missing now was there before, and stays as it was.
        let _ = volumes.refresh(&pod.node, &pod.object()).await;
        sources.mark_unchanged();
        object.mark_unchanged();
    }
}

/// Shows the API server what is known of the pod, whenever it changes.
async fn report(pod: Arc<PodContext>) {
    let pods: Api<Pod> = Api::namespaced(pod.node.client.clone(), &pod.namespace);
    let mut view = pod.view.subscribe();
    let mut object = pod.object.clone();
    let mut transitions = view::Transitions::new();
    let mut shown: Option<PodStatus> = None;
    loop {
        let current = view.borrow_and_update().clone();
        object.mark_unchanged();
        let (address, node) = (pod.network.address, pod.node.address());
        let status = view::status(&current, &pod.object(), address, node, pod.started, &mut transitions);
        if shown.as_ref() != Some(&status) {
            let patch = json!({ "metadata": { "uid": pod.uid }, "status": status });
            match pods
                .patch_status(&pod.name, &PatchParams::default(), &Patch::Strategic(patch))
                .await
            {
                Ok(_) => shown = Some(status),
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => return,
                Err(_) => {
                    sleep(RETRY).await;
                    continue;
                }
            }
        }
        tokio::select! {
            Ok(()) = view.changed() => {}
            Ok(()) = object.changed() => {}
        }
    }
}

/// Removes what the pod was made of, then the pod.
async fn remove(pod: &Arc<PodContext>) {
    if pod.network.namespace != pod.node.settings.network.path() {
        let network = pod.network.clone();
        if let Ok(Err(error)) = spawn_blocking(move || Network::remove_pod(&network)).await {
            pod.tell(Tone::Warning, "FailedKillPod", &format!("{error:#}")).await;
        }
    }
    pod.node.logs.forget(&pod.folder);
    let _ = fs::remove_dir_all(&pod.folder);
    delete(&pod.node, &pod.first).await;
}

/// Says that nothing is left of the pod, which lets the API server forget it.
async fn delete(node: &Node, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(node.client.clone(), &pod.namespace().unwrap_or_default());
    let mut parameters = DeleteParams::default().grace_period(0);
    parameters.preconditions = Some(Preconditions {
        uid: pod.uid(),
        resource_version: None,
    });
    loop {
        match pods.delete(&pod.name_any(), &parameters).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
            Err(_) => sleep(RETRY).await,
        }
    }
}
