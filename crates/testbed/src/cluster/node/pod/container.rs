//! One container of a pod: started, watched, started again, ended.

use std::{
    collections::BTreeMap,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, LifecycleHandler};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    process::Child,
    sync::watch,
    task::JoinSet,
    time::{sleep, sleep_until, timeout, timeout_at},
};

use super::{
    PodContext, Problem, Slot,
    environment::environment,
    expansion::expand,
    logs::{self, ContainerKey, Log},
    probes::{self, Probed},
    sandbox::{self, Mount, Sandbox},
    view::{State, Termination},
};
use crate::cluster::{Image, node::events::Tone};

/// When the pod's containers must have ended; none while it lives.
pub(super) type Deadline = watch::Receiver<Option<Instant>>;

/// Returns when the pod is to end.
pub(super) async fn is_ending(deadline: &mut Deadline) {
    if deadline.wait_for(Option::is_some).await.is_err() {
        // Without anybody who could say so, it never is.
        std::future::pending::<()>().await;
    }
}

/// When a container is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

/// How long a container runs until its crashes are forgotten.
const CALM: Duration = Duration::from_mins(10);
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);

/// How often something that is missing is looked for again.
const RETRY: Duration = Duration::from_millis(500);

/// Runs a container until it has ended for good. Returns its last exit code, or none if it never ran.
pub(super) async fn supervise(
    pod: Arc<PodContext>,
    slot: Slot,
    container: Container,
    policy: RestartPolicy,
    mut deadline: Deadline,
) -> Option<i32> {
    let mut crashes = 0;
    loop {
        let (environment, sandbox) = prepare(&pod, slot, &container, &mut deadline).await?;
        let run_started = Instant::now();
        let code = run(&pod, slot, &container, &environment, &sandbox, &mut deadline).await;
        if deadline.borrow().is_some() {
            return Some(code);
        }
        let is_wanted = match policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => code != 0,
            RestartPolicy::Never => false,
        };
        if !is_wanted {
            return Some(code);
        }
        crashes = if run_started.elapsed() > CALM { 0 } else { crashes + 1 };
        if let Some(pause) = back_off(crashes) {
            let message = format!(
                "back-off {}s restarting failed container={}",
                pause.as_secs(),
                container.name
            );
            pod.tell(Tone::Warning, "BackOff", &message).await;
            pod.wait(slot, "CrashLoopBackOff", Some(message));
            tokio::select! {
                () = sleep(pause) => {}
                () = is_ending(&mut deadline) => return Some(code),
            }
        }
        pod.change(slot, |view| view.restarts += 1);
    }
}

/// How long to wait after so many crashes in a row: after the first not at all.
fn back_off(crashes: u32) -> Option<Duration> {
    let doublings = crashes.checked_sub(2)?;
    let factor = 2_u32.saturating_pow(doublings);
    Some(FIRST_BACK_OFF.saturating_mul(factor).min(LONGEST_BACK_OFF))
}

/// Waits until everything that the container refers to is there; none if the pod ends before.
async fn prepare(
    pod: &Arc<PodContext>,
    slot: Slot,
    container: &Container,
    deadline: &mut Deadline,
) -> Option<(BTreeMap<String, String>, Sandbox)> {
    let mut pulls = 0;
    let mut told = None;
    loop {
        if deadline.borrow().is_some() {
            return None;
        }
        let prepared = tokio::select! {
            pulled = pull(pod, container) => pulled.and_then(|(image, program)| plan(pod, container, image, program)),
            () = is_ending(deadline) => return None,
        };
        let problem = match prepared {
            Ok(planned) => return Some(planned),
            Err(problem) => problem,
        };
        if told.as_ref() != Some(&problem.message) {
            pod.tell(Tone::Warning, "Failed", &problem.message).await;
            told = Some(problem.message.clone());
        }
        let is_pull = problem.reason == PULL;
        pod.wait(slot, problem.reason, Some(problem.message.clone()));
        let mut pause = RETRY;
        if is_pull {
            pulls += 1;
            pause = back_off(pulls + 1).unwrap_or(FIRST_BACK_OFF);
            // The failure is to be seen before the waiting for the next try is.
            sleep(RETRY).await;
            let image = container.image.as_deref().unwrap_or_default();
            pod.wait(
                slot,
                "ImagePullBackOff",
                Some(format!("Back-off pulling image {image:?}")),
            );
        }
        tokio::select! {
            () = sleep(pause) => {}
            () = is_ending(deadline) => return None,
        }
    }
}

const PULL: &str = "ErrImagePull";

/// The container's image, and where its program is.
async fn pull<'a>(pod: &'a PodContext, container: &Container) -> Result<(&'a Image, PathBuf), Problem> {
    let name = container.image.as_deref().unwrap_or_default();
    let refused = |why: String| Problem::new(PULL, format!("failed to pull image {name:?}: {why}"));
    let image = pod.node.settings.images.find(name).ok_or_else(|| {
        let hint = "the testbed's table of images has no program for it";
        refused(format!("not found: {hint}"))
    })?;
    let program = image.program.pull().await;
    Ok((image, program.map_err(|error| refused(format!("{error:#}")))?))
}

fn plan(
    pod: &Arc<PodContext>,
    container: &Container,
    image: &Image,
    program: PathBuf,
) -> Result<(BTreeMap<String, String>, Sandbox), Problem> {
    let node = &pod.node;
    let object = pod.object();
    let environment = environment(node, &object, container, pod.addresses())?;
    let words = image.words(container.command.as_deref(), container.args.as_deref());
    let words = words.iter().map(|word| expand(word, &environment)).collect();
    let mounts = container.volume_mounts.iter().flatten().map(|mount| {
        let below = mount.sub_path.as_deref().map(str::to_owned);
        let below = below.or_else(|| mount.sub_path_expr.as_deref().map(|text| expand(text, &environment)));
        let below = below
            .filter(|path| !path.is_empty() && !path.contains(".."))
            .map(|path| format!("/{path}"));
        Mount {
            source: format!("{}{}", sandbox::volume_folder(&mount.name), below.unwrap_or_default()),
            path: mount.mount_path.clone(),
            is_read_only: mount.read_only == Some(true),
        }
    });
    let spec = object.spec.as_ref();
    let of_pod = spec.and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let user = own
        .and_then(|own| own.run_as_user)
        .or_else(|| of_pod.and_then(|of_pod| of_pod.run_as_user));
    let group = own
        .and_then(|own| own.run_as_group)
        .or_else(|| of_pod.and_then(|of_pod| of_pod.run_as_group));
    let groups = of_pod.and_then(|of_pod| of_pod.fs_group);
    let number = |id: i64| u32::try_from(id).ok();
    let user = user
        .and_then(number)
        .map(|user| (user, group.or(groups).and_then(number).unwrap_or(0)));
    let sandbox = Sandbox {
        network: pod.network.namespace.clone(),
        pod_folder: pod.folder.clone(),
        container: sandbox::container_folder(&container.name),
        host_name: pod.name.clone(),
        program: (program, image.path.clone()),
        mounts: mounts.collect(),
        environment: environment.clone(),
        working_folder: container
            .working_dir
            .clone()
            .filter(|folder| !folder.is_empty())
            .unwrap_or_else(|| "/".into()),
        user,
        is_read_only: own.is_some_and(|own| own.read_only_root_filesystem == Some(true)),
        words,
    };
    Ok((environment, sandbox))
}

/// Runs a container once and returns its exit code.
async fn run(
    pod: &Arc<PodContext>,
    slot: Slot,
    container: &Container,
    environment: &BTreeMap<String, String>,
    sandbox: &Sandbox,
    deadline: &mut Deadline,
) -> i32 {
    let started = Timestamp::now();
    let mut running = match Running::start(pod, slot, sandbox) {
        Ok(running) => running,
        Err(error) => {
            let code = 128;
            let message = Some(format!("cannot start: {error}"));
            pod.end(
                slot,
                Termination {
                    code,
                    signal: None,
                    message,
                    started,
                    finished: Timestamp::now(),
                },
            );
            return code;
        }
    };
    pod.change(slot, |view| {
        view.state = State::Running { since: started };
        view.process = Some(running.process);
    });
    let pod_for_event = Arc::clone(pod);
    let message = format!("Started container {}", container.name);
    tokio::spawn(async move { pod_for_event.tell(Tone::Normal, "Started", &message).await });
    let probed = Probed {
        pod,
        slot,
        container,
        environment,
        process: running.process,
    };
    let mut message = None;
    let status = tokio::select! {
        status = running.child.wait() => status,
        reason = probed.watch_over() => {
            let grace = pod.object().spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
            pod.tell(Tone::Normal, "Killing", &format!("Container {} will be restarted: {reason}", container.name)).await;
            message = Some(reason);
            let (_sender, until) = watch::channel(Some(Instant::now() + grace));
            running.end(&probed, until).await
        }
        () = is_ending(deadline) => {
            pod.tell(Tone::Normal, "Killing", &format!("Stopping container {}", container.name)).await;
            running.end(&probed, deadline.clone()).await
        }
    };
    running.finish().await;
    let (code, signal) = status.map_or((137, None), exit_code);
    pod.end(
        slot,
        Termination {
            code,
            signal,
            message,
            started,
            finished: Timestamp::now(),
        },
    );
    code
}

/// As shells and kubelets count: a signal is 128 and its number.
fn exit_code(status: ExitStatus) -> (i32, Option<i32>) {
    match (status.code(), status.signal()) {
        (Some(code), _) => (code, None),
        (None, Some(signal)) => (128 + signal, Some(signal)),
        (None, None) => (255, None),
    }
}

/// A process and what it prints.
struct Running {
    child: Child,
    process: u32,
    log: Arc<Log>,
    readers: JoinSet<()>,
}

impl Running {
    fn start(pod: &PodContext, slot: Slot, sandbox: &Sandbox) -> std::io::Result<Self> {
        let mut child = sandbox.command()?.spawn()?;
        let process = child.id().ok_or_else(|| std::io::Error::other("it ended at once"))?;
        let key = ContainerKey {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            container: pod.view_of(slot).name,
        };
        let restarts = pod.view_of(slot).restarts;
        let log = pod
            .node
            .logs
            .begin(key, &pod.folder.join(&sandbox.container), restarts)?;
        let mut readers = JoinSet::new();
        if let Some(stream) = child.stdout.take() {
            readers.spawn(logs::record(Arc::clone(&log), stream));
        }
        if let Some(stream) = child.stderr.take() {
            readers.spawn(logs::record(Arc::clone(&log), stream));
        }
        Ok(Self {
            child,
            process,
            log,
            readers,
        })
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.process).ok().and_then(Pid::from_raw)
    }

    /// Asks the process to end, and ends it when the time is up; the time may be cut short meanwhile.
    async fn end(&mut self, probed: &Probed<'_>, mut deadline: Deadline) -> std::io::Result<ExitStatus> {
        let hook = probed
            .container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        if let Some(hook) = hook {
            let until = *deadline.borrow();
            let hook = before_stop(hook, probed);
            // A hook that fails or takes too long keeps nothing from ending.
            let _ = timeout_at(until.unwrap_or_else(Instant::now).into(), hook).await;
        }
        let signal = |signal: Signal| {
            // Not waited for yet, so the id is still this process's.
            if self.child.id().is_some()
                && let Some(pid) = self.pid()
            {
                let _ = kill_process(pid, signal);
            }
        };
        signal(Signal::TERM);
        let mut is_killed = false;
        loop {
            let until = deadline.borrow_and_update().unwrap_or_else(Instant::now);
            tokio::select! {
                status = self.child.wait() => return status,
                () = sleep_until(until.into()), if !is_killed => {
                    if let Some(pid) = self.pid() {
                        let _ = kill_process_group(pid, Signal::KILL);
                    }
                    is_killed = true;
                }
                Ok(()) = deadline.changed() => {}
            }
        }
    }

    /// Ends what the process left behind and reads the last of what was printed.
    async fn finish(&mut self) {
        if let Some(pid) = self.pid() {
            // The group keeps its number for as long as anybody is in it; if nobody is, nobody is hit, for a number that
            // was a group's a moment ago is not yet given out again.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let drained = async { while self.readers.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_secs(2), drained).await;
        self.readers.abort_all();
        self.log.close();
    }
}

async fn before_stop(hook: &LifecycleHandler, probed: &Probed<'_>) {
    if let Some(action) = &hook.sleep {
        sleep(Duration::from_secs(u64::try_from(action.seconds).unwrap_or_default())).await;
    }
    let outcome = if let Some(action) = &hook.exec {
        probes::run(
            probed.process,
            probed.environment,
            action.command.as_deref().unwrap_or_default(),
        )
        .await
    } else if let Some(action) = &hook.http_get {
        match probes::port_number(probed.container, &action.port) {
            Ok(port) => probes::get(action, (probed.pod.network.address, port).into()).await,
            Err(message) => Err(message),
        }
    } else {
        Ok(())
    };
    if let Err(message) = outcome {
        probed.pod.tell(Tone::Warning, "FailedPreStopHook", &message).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::back_off;

    #[test]
    fn the_first_crash_costs_nothing_and_every_further_one_twice_the_one_before() {
        let seconds: Vec<Option<u64>> = (0..9)
            .map(|crashes| back_off(crashes).map(|pause| pause.as_secs()))
            .collect();
        assert_eq!(
            seconds,
            [
                None,
                None,
                Some(10),
                Some(20),
                Some(40),
                Some(80),
                Some(160),
                Some(300),
                Some(300)
            ]
        );
        assert_eq!(back_off(u32::MAX), Some(Duration::from_mins(5)));
    }
}
