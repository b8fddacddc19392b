//! What is reported about a pod: the state of its containers, and the status that follows from it.

use std::{collections::BTreeMap, net::Ipv4Addr};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

/// The state of a pod.
#[derive(Clone, Debug, Default)]
pub(super) struct PodView {
    pub(super) init_containers: Vec<ContainerView>,
    pub(super) containers: Vec<ContainerView>,
    /// All init containers have done their work.
    pub(super) is_initialized: bool,
    /// All work is done, well or badly, and none will be started again.
    pub(super) end: Option<End>,
}

/// How a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
}

/// The state of a container.
#[derive(Clone, Debug)]
pub(super) struct ContainerView {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) state: State,
    pub(super) last: Option<Termination>,
    pub(super) is_started: bool,
    pub(super) is_ready: bool,
    pub(super) restarts: i32,
    /// Which process it is or was.
    pub(super) process: Option<u32>,
}

/// What a container is doing.
#[derive(Clone, Debug)]
pub(super) enum State {
    Waiting { reason: String, message: Option<String> },
    Running { since: Timestamp },
    Terminated(Termination),
}

/// How a run of a container ended.
#[derive(Clone, Debug)]
pub(super) struct Termination {
    pub(super) code: i32,
    pub(super) signal: Option<i32>,
    pub(super) message: Option<String>,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
}

impl ContainerView {
    pub(super) fn of(container: &Container, reason: &str) -> Self {
        Self {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            state: State::Waiting {
                reason: reason.to_owned(),
                message: None,
            },
            last: None,
            is_started: false,
            is_ready: false,
            restarts: 0,
            process: None,
        }
    }

    fn status(&self) -> ContainerStatus {
        ContainerStatus {
            name: self.name.clone(),
            image: self.image.clone(),
            image_id: self.image.clone(),
            container_id: self.process.map(|process| format!("process://{process}")),
            ready: self.is_ready,
            started: Some(self.is_started),
            restart_count: self.restarts,
            state: Some(self.state.render()),
            last_state: self.last.as_ref().map(|last| ContainerState {
                terminated: Some(last.render()),
                ..ContainerState::default()
            }),
            ..ContainerStatus::default()
        }
    }
}

impl State {
    fn render(&self) -> ContainerState {
        let mut state = ContainerState::default();
        match self {
            Self::Waiting { reason, message } => {
                state.waiting = Some(ContainerStateWaiting {
                    reason: Some(reason.clone()),
                    message: message.clone(),
                });
            }
            Self::Running { since } => {
                state.running = Some(ContainerStateRunning {
                    started_at: Some(Time(*since)),
                });
            }
            Self::Terminated(termination) => state.terminated = Some(termination.render()),
        }
        state
    }
}

impl Termination {
    fn render(&self) -> ContainerStateTerminated {
        let reason = if self.code == 0 { "Completed" } else { "Error" };
        ContainerStateTerminated {
            exit_code: self.code,
            signal: self.signal,
            message: self.message.clone(),
            reason: Some(reason.to_owned()),
            started_at: Some(Time(self.started)),
            finished_at: Some(Time(self.finished)),
            ..ContainerStateTerminated::default()
        }
    }
}

/// The conditions of a pod as they were, so that their times move only when they change.
pub(super) type Transitions = BTreeMap<&'static str, (bool, Timestamp)>;

/// The status of a pod.
pub(super) fn status(
    view: &PodView,
    pod: &Pod,
    address: Ipv4Addr,
    node: Ipv4Addr,
    started: Timestamp,
    transitions: &mut Transitions,
) -> PodStatus {
    let phase = match view.end {
        Some(End::Succeeded) => "Succeeded",
        Some(End::Failed) => "Failed",
        None if view.is_initialized && view.containers.iter().any(has_run) => "Running",
        None => "Pending",
    };
    let are_ready = view.end.is_none() && view.containers.iter().all(|container| container.is_ready);
    let is_ready = are_ready && gates_are_open(pod);
    let mut condition = |kind: &'static str, holds: bool, reason: &str| {
        let entry = transitions.entry(kind).or_insert_with(|| (holds, Timestamp::now()));
        if entry.0 != holds {
            *entry = (holds, Timestamp::now());
        }
        PodCondition {
            type_: kind.to_owned(),
            status: if holds { "True" } else { "False" }.to_owned(),
            reason: (!holds).then(|| reason.to_owned()),
            last_transition_time: Some(Time(entry.1)),
            ..PodCondition::default()
        }
    };
    let unready = if view.end.is_some() {
        "PodCompleted"
    } else {
        "ContainersNotReady"
    };
    let conditions = vec![
        condition("PodReadyToStartContainers", true, ""),
        condition("Initialized", view.is_initialized, "ContainersNotInitialized"),
        condition(
            "Ready",
            is_ready,
            if are_ready { "ReadinessGatesNotReady" } else { unready },
        ),
        condition("ContainersReady", are_ready, unready),
        condition("PodScheduled", true, ""),
    ];
    let statuses = |views: &[ContainerView]| views.iter().map(ContainerView::status).collect::<Vec<_>>();
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        host_ip: Some(node.to_string()),
        host_ips: Some(vec![HostIP { ip: node.to_string() }]),
        pod_ip: Some(address.to_string()),
        pod_ips: Some(vec![PodIP {
            ip: address.to_string(),
        }]),
        start_time: Some(Time(started)),
        init_container_statuses: (!view.init_containers.is_empty()).then(|| statuses(&view.init_containers)),
        container_statuses: Some(statuses(&view.containers)),
        qos_class: pod.status.as_ref().and_then(|status| status.qos_class.clone()),
        ..PodStatus::default()
    }
}

/// A container that only waits to be started again has run.
fn has_run(container: &ContainerView) -> bool {
    container.last.is_some() || !matches!(container.state, State::Waiting { .. })
}

/// Conditions that others must set before the pod counts as ready.
fn gates_are_open(pod: &Pod) -> bool {
    let gates = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.readiness_gates.as_deref())
        .unwrap_or_default();
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    gates.iter().all(|gate| {
        let condition = conditions
            .iter()
            .find(|condition| condition.type_ == gate.condition_type);
        condition.is_some_and(|condition| condition.status == "True")
    })
}
